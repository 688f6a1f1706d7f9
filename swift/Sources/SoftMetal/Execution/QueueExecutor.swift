import CSoftMetal
import Glibc

/// The thread of a command queue: takes committed command buffers in order and
/// has their dispatches run.
final class QueueExecutor: @unchecked Sendable {
  let storage: CommandStoragePool
  private let runner: any CommandRunner
  private let order: ExecutionOrder
  private var generator: SplitMix64
  private var thread = pthread_t()

  private let submission = Monitor()
  private var submitted: [SoftCommandBuffer] = []
  private var isClosing = false
  private let completion = Monitor()

  /// Starts the thread; nil when the system has none left.
  init?(runner: any CommandRunner, order: ExecutionOrder, mapping: (any MemoryMapping)?) {
    self.runner = runner
    storage = CommandStoragePool(mapping)
    self.order = order
    if case .shuffle(let seed) = order {
      generator = SplitMix64(seed: seed)
    } else {
      generator = SplitMix64(seed: 0)
    }
    let reference = Unmanaged.passRetained(self)
    let code = pthread_create(
      &thread, nil,
      { argument in
        if let argument { Unmanaged<QueueExecutor>.fromOpaque(argument).takeRetainedValue().run() }
        return nil
      }, reference.toOpaque())
    guard code == 0 else {
      reference.release()
      return nil
    }
  }

  func submit(_ commandBuffer: SoftCommandBuffer) {
    submission.notify { submitted.append(commandBuffer) }
  }

  func wait(for commandBuffer: SoftCommandBuffer) {
    guard !commandBuffer.hasCompleted else { return }
    completion.wait(until: { commandBuffer.hasCompleted }, then: {})
  }

  /// Ends the thread once all that is submitted has run.
  func close() {
    submission.notify { isClosing = true }
    if pthread_equal(thread, pthread_self()) != 0 {
      // The last reference to the queue went with a resource's deallocator.
      pthread_detach(thread)
    } else {
      pthread_join(thread, nil)
    }
  }

  private func run() {
    while true {
      let batch = submission.wait(until: { isClosing || !submitted.isEmpty }) {
        let batch = submitted
        submitted = []
        return batch
      }
      guard !batch.isEmpty else { return }
      for commandBuffer in batch {
        commandBuffer.execute(runCommands)
        commandBuffer.finish()
        completion.notify { commandBuffer.release() }
      }
    }
  }

  private func runCommands(of list: CommandStorage) throws(MTLCommandBufferError) -> ClosedRange<Double> {
    try runner.begin(list.bytes.uploads)
    do throws(MTLCommandBufferError) {
      try encode(list)
    } catch {
      // The first error counts, and what was begun before it has to end.
      _ = try? runner.finish()
      throw error
    }
    return try runner.finish()
  }

  private func encode(_ list: CommandStorage) throws(MTLCommandBufferError) {
    var samples = list.samples[...]
    defer { takeSamples(&samples, before: .max) }
    guard order != .forward else {
      for number in list.commands.indices {
        if !samples.isEmpty { takeSamples(&samples, before: number) }
        try run(number, list)
      }
      return
    }
    var remaining = list.commands[...]
    while let stage = remaining.first?.stage {
      let unordered = remaining.prefix { $0.stage == stage }
      takeSamples(&samples, before: unordered.startIndex)
      for number in reordered(unordered.indices) { try run(number, list) }
      remaining = remaining[unordered.endIndex...]
    }
  }

  /// Writes the timestamps that belong before a command.
  private func takeSamples(_ samples: inout ArraySlice<SampleCommand>, before command: Int) {
    while let sample = samples.first, sample.command <= command {
      runner.sample(sample.buffer, at: sample.index)
      samples.removeFirst()
    }
  }

  private func reordered(_ commands: Range<Int>) -> [Int] {
    switch order {
    case .forward: Array(commands)
    case .reverse: commands.reversed()
    case .shuffle: commands.shuffled(using: &generator)
    }
  }

  /// - Parameter number: of the command in the list.
  private func run(_ number: Int, _ list: CommandStorage) throws(MTLCommandBufferError) {
    let command = list.commands[number]
    let pipeline = command.pipeline.takeUnretainedValue()
    var dispatch = SmDispatch()
    dispatch.kernel = pipeline.kernel
    dispatch.threadgroups = command.grid.threadgroups
    dispatch.threadsPerThreadgroup = command.grid.threadsPerThreadgroup
    dispatch.threadsPerGrid = command.grid.threadsPerGrid
    var position = command.firstArgument
    withUnsafeMutableBytes(of: &dispatch.buffers) { bytes in
      let addresses = bytes.bindMemory(to: UInt.self)
      for argument in pipeline.buffers {
        addresses[argument.index] = list.arguments[position]
        position += 1
      }
    }
    withUnsafeMutableBytes(of: &dispatch.threadgroupLengths) { bytes in
      let lengths = bytes.bindMemory(to: UInt32.self)
      for argument in pipeline.threadgroupMemory {
        lengths[argument.index] = UInt32(list.arguments[position])
        position += 1
      }
    }
    try runner.run(dispatch, DispatchPlace(pipeline: pipeline, number: number, list: list))
  }
}
