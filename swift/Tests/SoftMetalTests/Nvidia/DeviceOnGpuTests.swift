import Glibc
import Testing

@testable import SoftMetal

/// What the device asks of a driver, which a double answers.
@Suite(.serialized) struct DeviceOnGpuTests {
  private let double: DriverDouble

  init() throws { double = try DriverDouble() }

  private static let source = """
    #include <metal_stdlib>
    using namespace metal;
    constant bool flag [[function_constant(0)]];
    constant uchar twice = flag ? 2 : 1;
    kernel void fill(device uint *out [[buffer(0)]], constant uint &value [[buffer(1)]],
                     device const uint *more [[buffer(2), function_constant(flag)]],
                     threadgroup uint *scratch [[threadgroup(0)]], threadgroup uint *rest [[threadgroup(1)]],
                     uint3 i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
      threadgroup uint tile[16];
      tile[l & 15] = scratch[l & 3] = rest[l & 3] = l;
      threadgroup_barrier(mem_flags::mem_threadgroup);
      out[i.x] = value * twice + tile[15 - (l & 15)] + scratch[0] + rest[0] + (flag ? more[i.x] : 0);
    }
    """

  private func pipeline(_ device: SoftDevice, flag: Bool = false) throws -> any MTLComputePipelineState {
    let values = MTLFunctionConstantValues()
    withUnsafeBytes(of: flag) { bytes in
      if let start = bytes.baseAddress { values.setConstantValue(start, type: .bool, index: 0) }
    }
    let library = try device.makeLibrary(source: Self.source, options: nil)
    return try device.makeComputePipelineState(function: library.makeFunction(name: "fill", constantValues: values))
  }

  /// Dispatches `fill` once for each grid, and gives the command buffer once it has ended.
  private func run(
    _ device: SoftDevice, _ grids: [(threads: MTLSize, perThreadgroup: MTLSize)], queue: (any MTLCommandQueue)? = nil
  ) throws -> (any MTLCommandBuffer, any MTLBuffer) {
    let buffer = try #require(device.makeBuffer(length: 4096, options: []))
    let queue = try #require(queue ?? device.makeCommandQueue())
    let commands = try #require(queue.makeCommandBuffer())
    let encoder = try #require(commands.makeComputeCommandEncoder())
    encoder.setComputePipelineState(try pipeline(device))
    encoder.setBuffer(buffer, offset: 0, index: 0)
    encoder.setValue(7, index: 1)
    encoder.setThreadgroupMemoryLength(16, index: 0)
    encoder.setThreadgroupMemoryLength(32, index: 1)
    for grid in grids { encoder.dispatchThreads(grid.threads, threadsPerThreadgroup: grid.perThreadgroup) }
    encoder.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()
    return (commands, buffer)
  }

  @Test func isNamedAndHasTheGpusLimits() throws {
    let device = try double.device()
    #expect(device.name == "SoftMetal (Double)")
    #expect(!device.hasUnifiedMemory)
    #expect(device.coreCount == 132)
    #expect(device.recommendedMaxWorkingSetSize == 1 << 37)
    #expect(device.maxThreadgroupMemoryLength == 32768)
  }

  @Test func aPipelineHasWhatTheDriverSaysAndTheConstants() throws {
    let device = try double.device()
    _ = try double.takeCalls()
    let state = try pipeline(device, flag: true)
    #expect(state.maxTotalThreadsPerThreadgroup == 768)
    #expect(state.staticThreadgroupMemoryLength == 64)
    // The value, that it has one, and what derives from it.
    #expect(try double.takeCalls().sorted() == ["copy c0 1 1", "copy de 1 2", "copy df 1 1"])
  }

  @Test func launchesHaveThreadgroupsOfOneSize() throws {
    let (commands, buffer) = try run(try double.device(), [(MTLSizeMake(70, 5, 1), MTLSizeMake(32, 2, 1))])
    #expect(commands.status == .completed, "\(commands.error.map { "\($0)" } ?? "")")
    let launches = try double.takeCalls().filter { $0.hasPrefix("launch") }
    #expect(
      launches == [
        "launch 2,2,1 of 32,2,1 from 0,0,0 shared 48 early", "launch 1,2,1 of 6,2,1 from 2,0,0 shared 48 partial early",
        "launch 2,1,1 of 32,1,1 from 0,2,0 shared 48 early", "launch 1,1,1 of 6,1,1 from 2,2,0 shared 48 partial early",
      ])
    #expect(buffer.values.first == 4)
    #expect(abs(commands.gpuEndTime - commands.gpuStartTime - 0.002) < 1e-6)
  }

  @Test func aGridOfBillionsOfLaunchesIsStoppedAndTheDeviceGoesOn() throws {
    var settings = DeviceSettings(threads: 1)
    settings.timeLimit = 0.05
    let device = try double.device(settings)
    let most = Int(UInt32.max)
    let (commands, _) = try run(device, [(MTLSizeMake(1, most, most), .line(1))])
    #expect((commands.error as? MTLCommandBufferError)?.code == .timeout)
    #expect("\(try #require(commands.error))".contains("kernel 'fill' was stopped after 0.05 seconds"))
    // A portion that does not end by itself has no more time than one launch.
    try double.misbehave(.stoppable, from: 3000)
    let start = Processor.time
    let (stopped, _) = try run(device, [(MTLSizeMake(1, most, most), .line(1))])
    #expect("\(try #require(stopped.error))".contains("kernel 'fill' was stopped after 0.05 seconds"))
    #expect(Processor.time - start < 2)
    try double.misbehave(.none)
    _ = try double.takeCalls()
    #expect(try run(device, [(MTLSizeMake(32, 65_536, 1), .line(32))]).0.status == .completed)
    let launches = try double.takeCalls().filter { $0.hasPrefix("launch") }
    #expect(
      launches == [
        "launch 1,65535,1 of 32,1,1 from 0,0,0 shared 48 early",
        "launch 1,1,1 of 32,1,1 from 0,65535,0 shared 48 early",
      ])
  }

  @Test func aGridOfBillionsOfLaunchesThatDoesNotEndIsGivenUpOnce() throws {
    var settings = DeviceSettings(threads: 1)
    settings.timeLimit = 0.05
    let device = try double.device(settings)
    try double.misbehave(.endless)
    let start = Processor.time
    let (commands, _) = try run(device, [(MTLSizeMake(1, Int(UInt32.max), Int(UInt32.max)), .line(1))])
    #expect((commands.error as? MTLCommandBufferError)?.code == .timeout)
    #expect("\(try #require(commands.error))".contains("kernel 'fill' was given up after 0.05 seconds"))
    // The limit, and 2 s for its threads to end.
    #expect(Processor.time - start < 3.5)
  }

  @Test func olderGpusLaunchNothingEarly() throws {
    try double.misbehave(.old)
    _ = try run(try double.device(), [(.line(64), .line(32))])
    #expect(try double.takeCalls().filter { $0.hasPrefix("launch") } == ["launch 2,1,1 of 32,1,1 from 0,0,0 shared 48"])
  }

  @Test func bytesAreReadInTheGpusOwnMemory() throws {
    let device = try double.device()
    _ = try double.takeCalls()
    _ = try run(device, [(.line(8), .line(8))])
    let calls = try double.takeCalls()
    #expect(calls.contains("allocate 65536"))
    #expect(calls.filter { $0.hasPrefix("upload") || $0.hasPrefix("reads") } == ["upload 64", "reads 7"])
  }

  @Test func moreThreadsAlongZThanCudaHasAreOneRow() throws {
    _ = try run(try double.device(), [(MTLSizeMake(2, 1, 128), MTLSizeMake(2, 1, 128))])
    #expect(try double.takeCalls().contains("launch 1,1,1 of 256,1,1 from 0,0,0 shared 48 early"))
  }

  @Test func aFaultNamesTheKernelAndEndsTheDriversWorkInTheProcess() throws {
    let device = try double.device()
    try double.misbehave(.fault, from: 2)
    let (commands, _) = try run(device, [(.line(8), .line(8)), (.line(8), .line(8)), (.line(8), .line(8))])
    #expect(commands.status == .error)
    let text = "\(try #require(commands.error))"
    #expect(text.contains("kernel 'fill' (dispatch 2 of 3)") && text.contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"))
    try double.misbehave(.none)
    let queue = try #require(device.makeCommandQueue())
    let after = try #require(queue.makeCommandBuffer())
    after.commit()
    after.waitUntilCompleted()
    #expect((after.error as? MTLCommandBufferError)?.code == .deviceRemoved)
    #expect("\(try #require(after.error))".contains("No NVIDIA GPU opens in this process any more"))
    #expect {
      _ = try double.device()
    } throws: { "\($0)".contains("kernel 'fill' (dispatch 2 of 3)") && "\($0)".contains("start another process") }
  }

  @Test func aKernelThatWritesOverItsNumberEndsNothingElse() throws {
    let device = try double.device()
    try double.misbehave(.stray)
    let (commands, _) = try run(device, [(.line(8), .line(8)), (.line(8), .line(8))])
    #expect("\(try #require(commands.error))".contains("kernel 'fill' (dispatch 2 of 2)"))
  }

  @Test func anEndlessKernelIsGivenUp() throws {
    var settings = DeviceSettings(threads: 1)
    settings.timeLimit = 0.05
    let device = try double.device(settings)
    try double.misbehave(.endless)
    let (commands, _) = try run(device, [(.line(8), .line(8))])
    #expect((commands.error as? MTLCommandBufferError)?.code == .timeout)
    #expect("\(try #require(commands.error))".contains("kernel 'fill' was given up after 0.05 seconds"))
    #expect {
      _ = try double.device()
    } throws: { "\($0)".contains("a kernel that was given up goes on in this process") }
  }

  @Test func aKernelThatCanBeStoppedIsAndTheDeviceGoesOn() throws {
    var settings = DeviceSettings(threads: 1)
    settings.timeLimit = 0.05
    let device = try double.device(settings)
    let queue = device.makeCommandQueue()
    try double.misbehave(.stoppable, from: 2)
    let (commands, _) = try run(device, [(.line(8), .line(8)), (.line(8), .line(8))], queue: queue)
    #expect((commands.error as? MTLCommandBufferError)?.code == .timeout)
    #expect("\(try #require(commands.error))".contains("kernel 'fill' was stopped after 0.05 seconds"))
    // The word is 0 again: the next one is stopped by its own limit.
    try double.misbehave(.stoppable)
    #expect((try run(device, [(.line(8), .line(8))], queue: queue).0.error as? MTLCommandBufferError)?.code == .timeout)
    try double.misbehave(.none)
    #expect(try run(device, [(.line(8), .line(8))], queue: queue).0.status == .completed)
  }

  /// Else its addresses would come again, and another device take them for registered.
  @Test(arguments: [DriverDouble.Misbehaviour.fault, .endless])
  func memoryThatALostDeviceMayReachIsKept(how: DriverDouble.Misbehaviour) throws {
    var settings = DeviceSettings(threads: 1)
    settings.timeLimit = 0.05
    do {
      let device = try double.device(settings)
      try double.misbehave(how)
      #expect(try run(device, [(.line(8), .line(8))]).0.status == .error)
    }
    // The thread of the queue is the last to go.
    var calls: [String] = []
    for _ in 0..<100 where !calls.contains("destroy context") {
      calls += try double.takeCalls()
      usleep(how == .fault ? 20_000 : 1_000)
    }
    #expect(!calls.contains("unregister"))
    #expect(calls.contains("destroy context") == (how == .fault))
  }

  @Test func privateMemoryIsTheGpusOwn() throws {
    let device = try double.device()
    let before = device.currentAllocatedSize
    _ = try double.takeCalls()
    do {
      let buffer = try #require(device.makeBuffer(length: 5000, options: .storageModePrivate))
      #expect(UInt(bitPattern: buffer.contents()) == 0)
      #expect(buffer.gpuAddress != 0)
      #expect(buffer.allocatedSize == 8192)
      #expect(device.currentAllocatedSize == before + 8192)
      // As long as the buffer, so that its end is known; zeros before any stream can look; nothing is mapped.
      #expect(try double.takeCalls() == ["allocate 5000", "fill 0 5000", "synchronize 0"])
    }
    #expect(try double.takeCalls() == ["free"])
    #expect(device.currentAllocatedSize == before)
    try double.misbehave(.noMemory)
    #expect(device.makeBuffer(length: 5000, options: .storageModePrivate) == nil)
    #expect(device.currentAllocatedSize == before)
  }

  @Test func privateMemoryIsLeftUnwrittenWhereThatIsAskedFor() throws {
    var settings = DeviceSettings(threads: 1)
    settings.zeroesPrivate = false
    let device = try double.device(settings)
    _ = try double.takeCalls()
    let buffer = try #require(device.makeBuffer(length: 5000, options: .storageModePrivate))
    #expect(try double.takeCalls() == ["allocate 5000"])
    #expect(buffer.length == 5000)
  }

  @Test func memoryThatCannotBeMappedIsNil() throws {
    let device = try double.device()
    try double.misbehave(.noMemory, from: 0)
    #expect(device.makeBuffer(length: 4096, options: []) == nil)
    #expect(device.currentAllocatedSize == 0)
  }

  @Test func whatIsMissingIsNamed() throws {
    #expect {
      try CudaDriver("/nowhere/libcuda.so.1")
    } throws: { "\($0)".contains("/nowhere/libcuda.so.1") && "\($0)".contains("'cpu'") }
    #expect {
      try CudaDriver("libm.so.6")
    } throws: { "\($0)" == "libm.so.6 lacks cuInit: the NVIDIA driver has to be of version 520 or newer" }
    let driver = try double.driver()
    #expect {
      try CudaContext(driver, ordinal: 3)
    } throws: { "\($0)".contains("NVIDIA GPU 3: cuDeviceGet gave") }
  }
}
