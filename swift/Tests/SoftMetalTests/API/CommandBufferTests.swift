import Testing

@testable import SoftMetal

@Suite struct CommandBufferTests {
  let bench: Workbench
  let increment: any MTLComputePipelineState
  let data: any MTLBuffer

  init() throws {
    bench = try Workbench()
    increment = try bench.pipeline("increment")
    data = try bench.buffer([0, 0, 0, 0])
  }

  private func encodeIncrement(_ encoder: any MTLComputeCommandEncoder) {
    encoder.setComputePipelineState(increment)
    encoder.setBuffer(data, offset: 0, index: 0)
    encoder.dispatchThreads(.line(4), threadsPerThreadgroup: .line(3))
  }

  @Test func lifecycle() throws {
    let commands = try bench.commandBuffer()
    #expect(commands.status == .notEnqueued)
    let encoder = try #require(commands.makeComputeCommandEncoder())
    encodeIncrement(encoder)
    encoder.endEncoding()
    #expect(commands.status == .notEnqueued)
    #expect(data.values == [0, 0, 0, 0])
    #expect(commands.gpuStartTime == 0)
    commands.commit()
    commands.waitUntilCompleted()
    #expect(commands.status == .completed)
    #expect(commands.error == nil)
    #expect(data.values == [1, 1, 1, 1])
    #expect(commands.gpuStartTime > 0)
    #expect(commands.gpuEndTime >= commands.gpuStartTime)
  }

  @Test func anEmptyCommandBufferCompletes() throws {
    let commands = try bench.commandBuffer()
    commands.commit()
    commands.waitUntilCompleted()
    #expect(commands.status == .completed)
  }

  @Test func handlersAreCalledOnceTheStatusIsFinal() throws {
    let commands = try bench.commandBuffer()
    let encoder = try #require(commands.makeComputeCommandEncoder())
    encodeIncrement(encoder)
    encoder.endEncoding()
    nonisolated(unsafe) var seen: [MTLCommandBufferStatus] = []
    for _ in 0..<2 { commands.addCompletedHandler { seen.append($0.status) } }
    #expect(seen.isEmpty)
    commands.commit()
    commands.waitUntilCompleted()
    #expect(seen == [.completed, .completed])
    // Too late to be called.
    commands.addCompletedHandler { seen.append($0.status) }
    try bench.runCleanly(encode: encodeIncrement)
    #expect(seen.count == 2)
  }

  @Test func aSecondCommitDoesNothing() throws {
    let commands = try bench.commandBuffer()
    let encoder = try #require(commands.makeComputeCommandEncoder())
    encodeIncrement(encoder)
    encoder.endEncoding()
    commands.commit()
    commands.commit()
    commands.waitUntilCompleted()
    let endTime = commands.gpuEndTime
    commands.commit()
    try bench.runCleanly(encode: encodeIncrement)
    #expect(commands.status == .completed)
    #expect(commands.gpuEndTime == endTime)
    #expect(data.values == [2, 2, 2, 2])
  }

  @Test func waitingBeforeTheCommitReturns() throws {
    let commands = try bench.commandBuffer()
    commands.waitUntilCompleted()
    #expect(commands.status == .notEnqueued)
    #expect(commands.error == nil)
  }

  @Test func nothingIsEncodedAfterTheCommit() throws {
    let commands = try bench.commandBuffer()
    let encoder = try #require(commands.makeComputeCommandEncoder())
    encodeIncrement(encoder)
    encoder.endEncoding()
    commands.commit()
    encodeIncrement(encoder)
    encoder.endEncoding()
    #expect(commands.makeComputeCommandEncoder() == nil)
    commands.waitUntilCompleted()
    encodeIncrement(encoder)
    #expect(commands.status == .completed)
    #expect(data.values == [1, 1, 1, 1])
  }

  @Test func anOpenEncoderAtTheCommitIsAnError() throws {
    let commands = try bench.commandBuffer()
    let encoder = try #require(commands.makeComputeCommandEncoder())
    encodeIncrement(encoder)
    commands.commit()
    encodeIncrement(encoder)
    commands.waitUntilCompleted()
    #expect(commands.status == .error)
    #expect("\(try #require(commands.error))".contains("endEncoding"))
    #expect(data.values == [1, 1, 1, 1])
  }

  @Test func twoOpenEncodersAreAnError() throws {
    let commands = try bench.commandBuffer()
    let encoder = try #require(commands.makeComputeCommandEncoder())
    #expect(commands.makeComputeCommandEncoder() == nil)
    encoder.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()
    #expect(commands.status == .error)
  }

  @Test func encodersFollowEachOther() throws {
    let commands = try bench.commandBuffer()
    for type in [MTLDispatchType.serial, .concurrent, .serial] {
      let encoder = try #require(commands.makeComputeCommandEncoder(dispatchType: type))
      encodeIncrement(encoder)
      encoder.endEncoding()
    }
    commands.commit()
    commands.waitUntilCompleted()
    #expect(data.values == [3, 3, 3, 3])
  }

  /// Bytes are copied when they are set, and each dispatch sees its own.
  @Test func tenThousandDispatchesInOrder() throws {
    let accumulate = try bench.pipeline("accumulate")
    try bench.runCleanly { encoder in
      encoder.setComputePipelineState(accumulate)
      encoder.setBuffer(data, offset: 4, index: 0)
      for value in 0..<UInt32(10_000) {
        encoder.setValue(value, index: 1)
        encoder.dispatchThreads(.line(2), threadsPerThreadgroup: .line(2))
      }
    }
    let expected = (0..<UInt32(10_000)).reduce(UInt32(0)) { 3 &* $0 &+ $1 }
    #expect(data.values == [0, expected, expected, 0])
  }

  @Test func threadgroupsMayBePartial() throws {
    let large = try #require(bench.device.makeBuffer(length: 4 * 1000))
    try bench.runCleanly { encoder in
      encoder.setComputePipelineState(increment)
      encoder.setBuffer(large, offset: 0, index: 0)
      encoder.dispatchThreads(.line(999), threadsPerThreadgroup: .line(64))
    }
    #expect(large.values == [UInt32](repeating: 1, count: 999) + [0])
    try bench.runCleanly { encoder in
      encoder.setComputePipelineState(increment)
      encoder.setBuffer(large, offset: 0, index: 0)
      encoder.dispatchThreadgroups(.line(10), threadsPerThreadgroup: .line(100))
    }
    #expect(large.values == [UInt32](repeating: 2, count: 999) + [1])
  }

  @Test func dynamicThreadgroupMemory() throws {
    let row = try bench.buffer((0..<128).map { $0 })
    try bench.runCleanly { encoder in
      encoder.setComputePipelineState(try bench.pipeline("reverse_threadgroup"))
      encoder.setBuffer(row, offset: 0, index: 0)
      encoder.setThreadgroupMemoryLength(256, index: 0)
      encoder.dispatchThreadgroups(.line(2), threadsPerThreadgroup: .line(64))
    }
    #expect(row.values == Array((0..<64).reversed()) + Array((64..<128).reversed()))
  }

  @Test func staticAndDynamicThreadgroupMemoryUpToTheLimit() throws {
    let row = try bench.buffer([UInt32](repeating: 0, count: 64))
    try bench.runCleanly { encoder in
      encoder.setComputePipelineState(try bench.pipeline("static_and_dynamic"))
      encoder.setBuffer(row, offset: 0, index: 0)
      encoder.setThreadgroupMemoryLength(16384, index: 0)
      encoder.dispatchThreadgroups(.line(1), threadsPerThreadgroup: .line(64))
    }
    #expect(row.values == (0..<64).map { 2 * $0 })
  }

  @Test func resourcesLiveUntilTheWorkIsDone() throws {
    let before = bench.device.currentAllocatedSize
    let commands = try bench.commandBuffer()
    let encoder = try #require(commands.makeComputeCommandEncoder())
    encoder.setComputePipelineState(increment)
    var temporary = bench.device.makeBuffer(length: 4096)
    encoder.setBuffer(temporary, offset: 0, index: 0)
    temporary = nil
    encoder.dispatchThreads(.line(1024), threadsPerThreadgroup: .line(64))
    encoder.endEncoding()
    #expect(bench.device.currentAllocatedSize == before + 4096)
    commands.commit()
    commands.waitUntilCompleted()
    #expect(commands.status == .completed)
    #expect(bench.device.currentAllocatedSize == before)
  }

  @Test func unretainedReferencesAreNotRetained() throws {
    let before = bench.device.currentAllocatedSize
    let commands = try #require(bench.queue.makeCommandBufferWithUnretainedReferences())
    let encoder = try #require(commands.makeComputeCommandEncoder())
    var temporary = bench.device.makeBuffer(length: 4096)
    encoder.setBuffer(temporary, offset: 0, index: 0)
    temporary = nil
    #expect(bench.device.currentAllocatedSize == before)
    encodeIncrement(encoder)
    encoder.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()
    #expect(commands.status == .completed)
    #expect(data.values == [1, 1, 1, 1])
  }

  @Test func aKernelThatDoesNotEndIsStopped() throws {
    let bench = try Workbench(DeviceSettings(threads: 2, timeLimit: 0.3))
    let flag = try bench.buffer([0, 0])
    let commands = try bench.run { encoder in
      encoder.setComputePipelineState(try bench.pipeline("wait_for_flag"))
      encoder.setBuffer(flag, offset: 0, index: 0)
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    }
    #expect(commands.status == .error)
    let error = try #require(commands.error as? MTLCommandBufferError)
    #expect(error.code == .timeout)
    #expect("\(error)".contains("'wait_for_flag'"))
    #expect(commands.gpuEndTime - commands.gpuStartTime < 10)
    #expect(flag.values == [0, 0])
    flag.contents().storeBytes(of: 1, as: UInt32.self)
    try bench.runCleanly { encoder in
      encoder.setComputePipelineState(try bench.pipeline("wait_for_flag"))
      encoder.setBuffer(flag, offset: 0, index: 0)
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    }
    #expect(flag.values == [1, 1])
  }
}
