import CSoftMetal

/// Runs commands one by one on the worker threads of a device.
final class ProcessorRunner: CommandRunner {
  private let workers: WorkerPool
  private var start = 0.0

  init(_ workers: WorkerPool) {
    self.workers = workers
  }

  func begin(_: [ByteArena.Upload]) {
    start = Processor.time
    // The process may have installed handlers of its own since.
    sm_watch_faults()
  }

  func sample(_ buffer: SoftCounterSampleBuffer, at index: Int) {
    buffer.write(Processor.time, at: index)
  }

  func finish() -> ClosedRange<Double> { start...max(start, Processor.time) }

  func run(_ dispatch: SmDispatch, _ command: DispatchPlace) throws(MTLCommandBufferError) {
    let pipeline = command.pipeline
    var dispatch = dispatch
    let comparison = pipeline.referenceKernel.map { Comparison(with: $0, command.list.retained) }
    switch workers.run(&dispatch) {
    case .ok:
      if let difference = comparison?.difference(after: dispatch, of: pipeline, workers) { throw difference }
    case .fault(let fault):
      throw KernelFault(fault, dispatch).error(in: command.described)
    case .timeout:
      throw MTLCommandBufferError(
        .timeout,
        "kernel '\(pipeline.name)' was stopped after \(workers.timeLimit) seconds; "
          + "SOFTMETAL_TIME_LIMIT sets the limit")
    case .divergentBarrier:
      throw MTLCommandBufferError(
        .internal,
        "kernel '\(pipeline.name)': lanes of one SIMD group wait at different threadgroup barriers; all of them that "
          + "have not returned must come to the same")
    }
  }
}
