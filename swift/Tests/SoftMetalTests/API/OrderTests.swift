import Testing

@testable import SoftMetal

/// The test orders change what runs between two barriers of a concurrent
/// encoder, and nothing else.
@Suite struct OrderTests {
  private func result(
    _ order: ExecutionOrder, _ dispatchType: MTLDispatchType, barrierBefore: Set<UInt32> = []
  ) throws -> UInt32 {
    let bench = try Workbench(DeviceSettings(threads: 1, order: order))
    let data = try bench.buffer([0])
    try bench.runCleanly(dispatchType) { encoder in
      encoder.setComputePipelineState(try bench.pipeline("accumulate"))
      encoder.setBuffer(data, offset: 0, index: 0)
      for value in 1...UInt32(6) {
        if barrierBefore.contains(value) { encoder.memoryBarrier(scope: .buffers) }
        encoder.setValue(value, index: 1)
        encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
      }
    }
    return data.values[0]
  }

  private func accumulated(_ values: [UInt32]) -> UInt32 { values.reduce(0) { 3 &* $0 &+ $1 } }

  @Test func forwardIsTheOrderOfTheCalls() throws {
    #expect(try result(.forward, .concurrent) == accumulated([1, 2, 3, 4, 5, 6]))
  }

  @Test(arguments: [ExecutionOrder.reverse, .shuffle(seed: 1)])
  func serialEncodersKeepTheirOrder(_ order: ExecutionOrder) throws {
    #expect(try result(order, .serial) == accumulated([1, 2, 3, 4, 5, 6]))
  }

  @Test func reverseStopsAtBarriers() throws {
    #expect(try result(.reverse, .concurrent) == accumulated([6, 5, 4, 3, 2, 1]))
    #expect(try result(.reverse, .concurrent, barrierBefore: [3, 4]) == accumulated([2, 1, 3, 6, 5, 4]))
  }

  @Test(arguments: [ExecutionOrder.reverse, .shuffle(seed: 1)])
  func barriersEverywhereKeepTheOrder(_ order: ExecutionOrder) throws {
    #expect(try result(order, .concurrent, barrierBefore: [2, 3, 4, 5, 6]) == accumulated([1, 2, 3, 4, 5, 6]))
  }

  @Test func encodersKeepTheirOrder() throws {
    let bench = try Workbench(DeviceSettings(threads: 1, order: .reverse))
    let data = try bench.buffer([0])
    let accumulate = try bench.pipeline("accumulate")
    let commands = try bench.commandBuffer()
    for value in 1...UInt32(3) {
      let encoder = try #require(commands.makeComputeCommandEncoder(dispatchType: .concurrent))
      encoder.setComputePipelineState(accumulate)
      encoder.setBuffer(data, offset: 0, index: 0)
      encoder.setValue(value, index: 1)
      encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
      encoder.endEncoding()
    }
    commands.commit()
    commands.waitUntilCompleted()
    #expect(data.values == [accumulated([1, 2, 3])])
  }

  @Test func shuffleFollowsItsSeed() throws {
    let results = try (0..<8).map { try result(.shuffle(seed: $0), .concurrent) }
    #expect(Set(results).count > 1)
    #expect(try result(.shuffle(seed: 3), .concurrent) == results[3])
  }
}
