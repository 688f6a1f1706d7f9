import CSoftMetal

/// Runs the commands of a queue, on the queue's thread: a processor at once, a GPU some time until the end of the list.
protocol CommandRunner: AnyObject {
  /// Before the commands of a list.
  ///
  /// - Parameter uploads: what they read, and the device does not have yet.
  func begin(_ uploads: [ByteArena.Upload]) throws(MTLCommandBufferError)

  /// - Parameter dispatch: what the list has, to be completed by the kernel's code.
  func run(_ dispatch: SmDispatch, _ command: DispatchPlace) throws(MTLCommandBufferError)

  /// Writes the time at which the commands so far have run.
  func sample(_ buffer: SoftCounterSampleBuffer, at index: Int)

  /// Waits for what has begun, whether or not all of it went well.
  ///
  /// - Returns: when the first command began and the last ended, by the clock of command buffers.
  func finish() throws(MTLCommandBufferError) -> ClosedRange<Double>
}

/// A dispatch within its list.
struct DispatchPlace {
  let pipeline: SoftComputePipelineState
  /// From 0.
  let number: Int
  let list: CommandStorage

  /// For messages.
  var described: String { "kernel '\(pipeline.name)' (dispatch \(number + 1) of \(list.commands.count))" }
}
