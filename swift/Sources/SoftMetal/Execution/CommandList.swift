import Synchronization

/// What has been encoded into one command buffer.
///
/// A misuse is kept as the list's failure: what was encoded before it runs,
/// nothing after it is recorded.
final class CommandList {
  private static let count = Atomic<UInt64>(0)

  /// Unique, not 0.
  let number = CommandList.count.wrappingAdd(1, ordering: .relaxed).newValue
  /// Memory of the device: buffers must come from it.
  let memory: DeviceMemory
  /// Another list's once this one has run: a sealed list does not touch it.
  let storage: CommandStorage
  private(set) var failure: MTLCommandBufferError?

  private let retainsBuffers: Bool
  private var stage = 0
  private var encoderCount = 0
  /// The encoder that has not ended; 0 for none.
  private var openEncoder = 0
  /// The open encoder as long as its commands count; 0 after a failure.
  private var recordingEncoder = 0
  private var isSealed = false

  init(memory: DeviceMemory, storage: CommandStorage, retainsBuffers: Bool) {
    self.memory = memory
    self.storage = storage
    self.retainsBuffers = retainsBuffers
  }

  // MARK: Encoders

  /// Opens an encoder; nil when none can be opened.
  func openNewEncoder() -> Int? {
    guard !isSealed, !memory.fails(.encoder) else { return nil }
    guard openEncoder == 0 else {
      fail(MTLCommandBufferError(.internal, "makeComputeCommandEncoder: the encoder before it has not ended"))
      return nil
    }
    encoderCount += 1
    openEncoder = encoderCount
    recordingEncoder = failure == nil ? openEncoder : 0
    stage += 1
    return openEncoder
  }

  func end(encoder: Int) {
    guard encoder == openEncoder else { return refuse("endEncoding") }
    openEncoder = 0
    recordingEncoder = 0
  }

  @inline(__always)
  func isRecording(_ encoder: Int) -> Bool { recordingEncoder == encoder }

  /// Accounts for a call to an encoder that is not recording.
  func refuse(_ call: StaticString) {
    fail(MTLCommandBufferError(.internal, "\(call): the encoder has ended"))
  }

  /// Keeps the first failure.
  func fail(_ error: MTLCommandBufferError) {
    guard !isSealed, failure == nil else { return }
    failure = error
    recordingEncoder = 0
  }

  /// Ends all encoding.
  func seal() {
    if openEncoder != 0 {
      fail(MTLCommandBufferError(.internal, "commit: an encoder has not ended; call endEncoding first"))
    }
    recordingEncoder = 0
    isSealed = true
  }

  // MARK: Recording

  @inline(__always)
  func retain(_ buffer: SoftBuffer) {
    if retainsBuffers, !hasRetained(buffer) { retainFirst(buffer) }
  }

  @inline(__always)
  func hasRetained(_ buffer: SoftBuffer) -> Bool { buffer.lastRetainer.load(ordering: .relaxed) == number }

  /// Apart from the test, so that a buffer which is bound again costs no count of references.
  @inline(never)
  private func retainFirst(_ buffer: SoftBuffer) {
    buffer.lastRetainer.store(number, ordering: .relaxed)
    storage.retained.append(buffer)
    if let zones = buffer.zones { storage.guards.append(zones) }
  }

  func retain(_ pipeline: SoftComputePipelineState) {
    guard pipeline.lastRetainer.load(ordering: .relaxed) != number else { return }
    pipeline.lastRetainer.store(number, ordering: .relaxed)
    storage.retained.append(pipeline)
  }

  /// Nil where the device has no room.
  func copy(_ source: UnsafeRawPointer, length: Int) -> UnsafeMutableRawPointer? {
    storage.bytes.copy(source, length: length)
  }

  func append(
    _ pipeline: SoftComputePipelineState, _ table: ArgumentTable, _ grid: DispatchGrid
  ) throws(MTLCommandBufferError) {
    let firstArgument = storage.arguments.count
    try table.append(for: pipeline, to: &storage.arguments)
    storage.commands.append(
      DispatchCommand(
        pipeline: .passUnretained(pipeline), firstArgument: firstArgument, stage: stage, grid: grid))
  }

  /// Has the time written once the commands so far have run.
  func sample(_ buffer: SoftCounterSampleBuffer, at index: Int) {
    guard 0..<buffer.sampleCount ~= index else {
      return fail(
        MTLCommandBufferError(
          .internal, "sample index is \(index); the sample buffer has \(buffer.sampleCount)"))
    }
    storage.samples.append(SampleCommand(command: storage.commands.count, buffer: buffer, index: index))
  }

  /// Orders the commands before it in front of those after it.
  func appendBarrier() {
    stage += 1
  }
}
