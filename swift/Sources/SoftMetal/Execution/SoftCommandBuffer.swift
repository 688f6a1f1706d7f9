import Glibc
import Synchronization

/// Encoded work with its way through the queue.
///
/// One thread at a time may encode. `status`, `error` and waiting are free for
/// all threads.
final class SoftCommandBuffer: MTLCommandBuffer, @unchecked Sendable {
  /// Seconds that a waiting thread polls before it sleeps.
  private static let pollingTime = 20e-6

  var label: String?
  private let list: CommandList
  private let executor: QueueExecutor
  /// Keeps the queue's thread alive up to the commit.
  private var queue: SoftCommandQueue?
  private let rawStatus = Atomic<UInt>(MTLCommandBufferStatus.notEnqueued.rawValue)

  private var handlers: [MTLCommandBufferHandler] = []
  /// Set once the handlers have returned, which those who wait do not overtake.
  private let isHandled = Atomic<Bool>(false)

  // Written by the queue's thread before it sets a final status.
  private var result: MTLCommandBufferError?
  private var startTime = 0.0
  private var endTime = 0.0

  init(queue: SoftCommandQueue, retainsBuffers: Bool) {
    self.queue = queue
    executor = queue.executor
    list = CommandList(
      memory: queue.memory, storage: queue.executor.storage.take(), retainsBuffers: retainsBuffers)
  }

  /// What was never committed has no other end at which to hand its memory on.
  deinit {
    guard status == .notEnqueued else { return }
    list.seal()
    executor.storage.give(list.storage)
  }

  var status: MTLCommandBufferStatus {
    MTLCommandBufferStatus(rawValue: rawStatus.load(ordering: .acquiring)) ?? .error
  }

  var isFinished: Bool {
    rawStatus.load(ordering: .acquiring) >= MTLCommandBufferStatus.completed.rawValue
  }

  /// Whether nobody has to wait any longer.
  var hasCompleted: Bool { isHandled.load(ordering: .acquiring) }

  var error: (any Error)? { isFinished ? result : nil }
  var gpuStartTime: CFTimeInterval { isFinished ? startTime : 0 }
  var gpuEndTime: CFTimeInterval { isFinished ? endTime : 0 }

  func makeComputeCommandEncoder() -> (any MTLComputeCommandEncoder)? {
    makeComputeCommandEncoder(dispatchType: .serial)
  }

  /// Nil after the commit, and with an encoder open, which is an error of the
  /// command buffer.
  func makeComputeCommandEncoder(dispatchType: MTLDispatchType) -> (any MTLComputeCommandEncoder)? {
    list.openNewEncoder().map { number in
      SoftComputeCommandEncoder(list: list, number: number, dispatchType: dispatchType)
    }
  }

  func makeComputeCommandEncoder(
    descriptor computePassDescriptor: MTLComputePassDescriptor
  ) -> (any MTLComputeCommandEncoder)? {
    let attachment = computePassDescriptor.sampleBufferAttachments[0]
    let samples = attachment.flatMap { attachment in
      (attachment.sampleBuffer as? SoftCounterSampleBuffer).map { buffer in
        EncoderSamples(
          buffer: buffer, start: attachment.startOfEncoderSampleIndex, end: attachment.endOfEncoderSampleIndex)
      }
    }
    return list.openNewEncoder().map { number in
      if let samples { list.sample(samples.buffer, at: samples.start) }
      return SoftComputeCommandEncoder(
        list: list, number: number, dispatchType: computePassDescriptor.dispatchType, samples: samples)
    }
  }

  /// After the commit it comes too late, and is not called.
  func addCompletedHandler(_ block: @escaping MTLCommandBufferHandler) {
    guard status == .notEnqueued else { return }
    handlers.append(block)
  }

  /// A second commit does nothing.
  func commit() {
    let (isFirst, _) = rawStatus.compareExchange(
      expected: MTLCommandBufferStatus.notEnqueued.rawValue,
      desired: MTLCommandBufferStatus.committed.rawValue, ordering: .acquiringAndReleasing)
    guard isFirst else { return }
    list.seal()
    executor.submit(self)
    queue = nil
  }

  /// Returns at once before the commit: there is nothing to wait for.
  func waitUntilCompleted() {
    guard status != .notEnqueued else { return }
    let deadline = Processor.time + Self.pollingTime
    while !hasCompleted, Processor.time < deadline { sched_yield() }
    executor.wait(for: self)
  }

  // MARK: The queue's thread

  /// Runs the commands, by `body`, and lets go of them.
  func execute(_ body: (CommandStorage) throws(MTLCommandBufferError) -> ClosedRange<Double>) {
    rawStatus.store(MTLCommandBufferStatus.scheduled.rawValue, ordering: .releasing)
    startTime = Processor.time
    do throws(MTLCommandBufferError) {
      let times = try body(list.storage)
      (startTime, endTime) = (times.lowerBound, times.upperBound)
      result = list.failure
    } catch {
      endTime = Processor.time
      result = error
    }
    // Looked for after a failure too: a kernel that ends by a fault may have left its buffers before.
    if let violation = list.storage.takeViolation() {
      result = result.map { MTLCommandBufferError($0.code, "\($0); \(violation)") } ?? violation
    }
    executor.storage.give(list.storage)
  }

  /// Sets the final status and calls the handlers, which see it.
  func finish() {
    let final: MTLCommandBufferStatus = result == nil ? .completed : .error
    rawStatus.store(final.rawValue, ordering: .releasing)
    for handler in handlers { handler(self) }
    handlers = []
  }

  /// Lets go of those who wait.
  func release() {
    isHandled.store(true, ordering: .releasing)
  }
}
