import Glibc
import Testing

@testable import SoftMetal

@Suite struct QueueTests {
  /// Encodes 3 * data + value for each value, in one command buffer each.
  private func submit(_ values: [UInt32], to queue: any MTLCommandQueue, _ bench: Workbench, _ data: any MTLBuffer)
    throws -> [any MTLCommandBuffer]
  {
    let accumulate = try bench.pipeline("accumulate")
    return try values.map { value in
      let commands = try #require(queue.makeCommandBuffer())
      let encoder = try #require(commands.makeComputeCommandEncoder())
      encoder.setComputePipelineState(accumulate)
      encoder.setBuffer(data, offset: 0, index: 0)
      encoder.setValue(value, index: 1)
      encoder.dispatchThreads(.line(data.length / 4), threadsPerThreadgroup: .line(64))
      encoder.endEncoding()
      commands.commit()
      return commands
    }
  }

  private func accumulated(_ values: [UInt32]) -> UInt32 { values.reduce(0) { 3 &* $0 &+ $1 } }

  @Test func commandBuffersRunInTheOrderOfTheirCommit() throws {
    let bench = try Workbench()
    let data = try bench.buffer([0])
    let values = (1...200).map { UInt32($0) }
    let all = try submit(values, to: bench.queue, bench, data)
    all.last?.waitUntilCompleted()
    #expect(all.allSatisfy { $0.status == .completed })
    #expect(data.values == [accumulated(values)])
    for (earlier, later) in zip(all, all.dropFirst()) {
      #expect(earlier.gpuEndTime <= later.gpuStartTime)
    }
  }

  @Test func twoQueuesShareADevice() throws {
    let bench = try Workbench()
    let other = try #require(bench.device.makeCommandQueue())
    let first = try bench.buffer([UInt32](repeating: 0, count: 500))
    let second = try bench.buffer([UInt32](repeating: 7, count: 500))
    let values = (1...100).map { UInt32($0) }
    let all = try submit(values, to: bench.queue, bench, first) + submit(values, to: other, bench, second)
    for commands in all { commands.waitUntilCompleted() }
    #expect(all.allSatisfy { $0.status == .completed })
    let expected = values.reduce(UInt32(7)) { 3 &* $0 &+ $1 }
    #expect(first.values.allSatisfy { $0 == accumulated(values) })
    #expect(second.values.allSatisfy { $0 == expected })
  }

  /// A kernel's fault ends its command buffer and no other, of its queue or of another's.
  @Test func faultsBesideWorkOfAnotherQueue() throws {
    let bench = try Workbench()
    let other = try #require(bench.device.makeCommandQueue())
    let fault = try bench.pipeline("write_far")
    let data = try bench.buffer([UInt32](repeating: 0, count: 500))
    let values = (1...100).map { UInt32($0) }
    let all = try submit(values, to: other, bench, data)
    let faulty = try (1...100).map { _ in
      let commands = try #require(bench.queue.makeCommandBuffer())
      let encoder = try #require(commands.makeComputeCommandEncoder())
      encoder.setComputePipelineState(fault)
      encoder.setBuffer(data, offset: 0, index: 0)
      encoder.dispatchThreads(.line(256), threadsPerThreadgroup: .line(4))
      encoder.endEncoding()
      commands.commit()
      return commands
    }
    for commands in all + faulty { commands.waitUntilCompleted() }
    #expect(all.allSatisfy { $0.status == .completed })
    #expect(faulty.allSatisfy { ($0.error as? MTLCommandBufferError)?.code == .pageFault })
    #expect(data.values.allSatisfy { $0 == accumulated(values) })
  }

  @Test func manyThreadsMayWait() throws {
    let bench = try Workbench()
    let data = try bench.buffer([UInt32](repeating: 0, count: 100_000))
    let last = try #require(try submit([1, 2, 3], to: bench.queue, bench, data).last)
    let threads = (0..<4).map { _ in
      TestThread { last.waitUntilCompleted() }
    }
    for thread in threads { thread.join() }
    #expect(last.status == .completed)
  }

  /// All that the caller holds goes while the work is in flight: the work
  /// still ends, in a buffer whose memory the test owns.
  @Test func everythingMayGoInFlight() throws {
    let length = 1 << 20
    var pointer: UnsafeMutableRawPointer?
    try #require(posix_memalign(&pointer, 4096, length) == 0)
    let memory = try #require(pointer)
    defer { free(memory) }
    memset(memory, 0, length)
    let values = (1...20).map { UInt32($0) }
    do {
      let bench = try Workbench()
      let data = try #require(bench.device.makeBuffer(bytesNoCopy: memory, length: length))
      _ = try submit(values, to: bench.queue, bench, data)
    }
    // The queue's end has waited for its thread.
    let words = UnsafeRawBufferPointer(start: memory, count: length).bindMemory(to: UInt32.self)
    #expect(words.allSatisfy { $0 == accumulated(values) })
  }

  @Test func aCommandBufferOutlivesTheNameOfItsQueue() throws {
    let bench = try Workbench()
    let data = try bench.buffer([0])
    var queue: (any MTLCommandQueue)? = try #require(bench.device.makeCommandQueue())
    let commands = try #require(queue?.makeCommandBuffer())
    queue = nil
    let encoder = try #require(commands.makeComputeCommandEncoder())
    encoder.setComputePipelineState(try bench.pipeline("increment"))
    encoder.setBuffer(data, offset: 0, index: 0)
    encoder.dispatchThreads(.line(1), threadsPerThreadgroup: .line(1))
    encoder.endEncoding()
    commands.commit()
    commands.waitUntilCompleted()
    #expect(commands.status == .completed)
    #expect(data.values == [1])
  }

  @Test func aQueueMayEndOnItsOwnThread() throws {
    let device: any MTLDevice = try SoftDevice(settings: DeviceSettings(threads: 1))
    var pointer: UnsafeMutableRawPointer?
    try #require(posix_memalign(&pointer, 4096, 4096) == 0)
    let memory = try #require(pointer)
    let ended = Monitor()
    var hasEnded = false
    do {
      let queue = try #require(device.makeCommandQueue())
      var holder: (any MTLCommandQueue)? = queue
      // The deallocator runs on the queue's thread and drops the queue.
      let buffer = device.makeBuffer(bytesNoCopy: memory, length: 4096) { pointer, _ in
        holder = nil
        free(pointer)
        ended.notify { hasEnded = true }
      }
      let commands = try #require(queue.makeCommandBuffer())
      let encoder = try #require(commands.makeComputeCommandEncoder())
      encoder.setBuffer(buffer, offset: 0, index: 0)
      encoder.endEncoding()
      withExtendedLifetime(holder) {}
      commands.commit()
    }
    ended.wait(until: { hasEnded }, then: {})
    #expect(hasEnded)
  }
}
