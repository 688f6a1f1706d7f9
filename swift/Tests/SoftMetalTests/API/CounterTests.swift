import Testing

@testable import SoftMetal

@Suite struct CounterTests {
  let bench: Workbench
  let increment: any MTLComputePipelineState
  let data: any MTLBuffer

  init() throws {
    bench = try Workbench()
    increment = try bench.pipeline("increment")
    data = try bench.buffer([0, 0, 0, 0])
  }

  private func sampleBuffer(_ count: Int, of device: (any MTLDevice)? = nil) throws -> any MTLCounterSampleBuffer {
    let device = device ?? bench.device
    let descriptor = MTLCounterSampleBufferDescriptor()
    descriptor.counterSet = device.counterSets?.first { $0.name == MTLCommonCounterSet.timestamp.rawValue }
    descriptor.sampleCount = count
    return try device.makeCounterSampleBuffer(descriptor: descriptor)
  }

  private func encode(_ commands: any MTLCommandBuffer, _ samples: any MTLCounterSampleBuffer, from start: Int) throws {
    let descriptor = MTLComputePassDescriptor()
    let attachment = try #require(descriptor.sampleBufferAttachments[0])
    attachment.sampleBuffer = samples
    attachment.startOfEncoderSampleIndex = start
    attachment.endOfEncoderSampleIndex = start + 1
    let encoder = try #require(commands.makeComputeCommandEncoder(descriptor: descriptor))
    encoder.setComputePipelineState(increment)
    encoder.setBuffer(data, offset: 0, index: 0)
    encoder.dispatchThreads(.line(4), threadsPerThreadgroup: .line(4))
    encoder.endEncoding()
  }

  private func ticks(_ samples: any MTLCounterSampleBuffer) throws -> [UInt64] {
    let data = try #require(try samples.resolveCounterRange(0..<samples.sampleCount))
    return data.withUnsafeBytes { Array($0.bindMemory(to: UInt64.self)) }
  }

  @Test func timestampsLieAroundEachEncoder() throws {
    #expect(bench.device.supportsCounterSampling(.atStageBoundary))
    #expect(!bench.device.supportsCounterSampling(.atDispatchBoundary))
    let samples = try sampleBuffer(6)
    let commands = try bench.commandBuffer()
    for start in [0, 2, 4] { try encode(commands, samples, from: start) }
    #expect(try ticks(samples) == [0, 0, 0, 0, 0, 0])
    commands.commit()
    commands.waitUntilCompleted()
    #expect(commands.status == .completed)
    #expect(data.values == [3, 3, 3, 3])
    let times = try ticks(samples).map { Double($0) * 1e-9 }
    #expect(times == times.sorted() && times[0] < times[5])
    #expect(times[0] >= commands.gpuStartTime - 1e-6 && times[5] <= commands.gpuEndTime + 1e-6)
  }

  private func encodeBetweenDispatches(_ bench: Workbench, into samples: any MTLCounterSampleBuffer) throws
    -> any MTLCommandBuffer
  {
    let data = try bench.buffer([0, 0, 0, 0])
    let commands = try bench.commandBuffer()
    let encoder = try #require(commands.makeComputeCommandEncoder(dispatchType: .concurrent))
    encoder.setComputePipelineState(try bench.pipeline("increment"))
    encoder.setBuffer(data, offset: 0, index: 0)
    for number in 0..<3 {
      encoder.sampleCounters(sampleBuffer: samples, sampleIndex: 2 * number, barrier: true)
      encoder.dispatchThreads(.line(4), threadsPerThreadgroup: .line(4))
      encoder.sampleCounters(sampleBuffer: samples, sampleIndex: 2 * number + 1, barrier: true)
    }
    encoder.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()
    #expect(commands.status == .error || data.values == [3, 3, 3, 3])
    return commands
  }

  @Test func timestampsLieBetweenDispatchesWhereTheDeviceHasThem() throws {
    var settings = DeviceSettings(threads: 2)
    settings.samplesDispatches = true
    let bench = try Workbench(settings)
    let device = bench.device
    #expect(device.supportsCounterSampling(.atDispatchBoundary))
    let samples = try sampleBuffer(6, of: device)
    let commands = try encodeBetweenDispatches(bench, into: samples)
    #expect(commands.status == .completed)
    let times = try ticks(samples).map { Double($0) * 1e-9 }
    #expect(times == times.sorted() && times[0] < times[5])
    #expect(times[0] >= commands.gpuStartTime - 1e-6 && times[5] <= commands.gpuEndTime + 1e-6)
  }

  @Test func aDeviceThatSamplesNoDispatchesRefusesTo() throws {
    #expect(try encodeBetweenDispatches(bench, into: sampleBuffer(6)).status == .error)
  }

  @Test func aSampleThatTheBufferDoesNotHaveIsAnError() throws {
    let commands = try bench.commandBuffer()
    try encode(commands, sampleBuffer(2), from: 2)
    commands.commit()
    commands.waitUntilCompleted()
    #expect(commands.status == .error)
  }

  @Test func aRangeThatTheBufferDoesNotHaveIsNil() throws {
    #expect(try sampleBuffer(2).resolveCounterRange(1..<3) == nil)
  }

  @Test func tooManySamplesAreRefused() {
    #expect(throws: MTLLibraryError.self) { try sampleBuffer(4097) }
    #expect(throws: MTLLibraryError.self) { try sampleBuffer(0) }
  }
}
