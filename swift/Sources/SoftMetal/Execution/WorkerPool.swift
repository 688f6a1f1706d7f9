import CSoftMetal

/// The worker threads of a device, shared by its queues.
final class WorkerPool: @unchecked Sendable {
  /// Seconds; 0 for none.
  let timeLimit: Double
  private let pool: OpaquePointer
  /// The pool takes one dispatch at a time.
  private let turn = Monitor()

  init(threads: Int, timeLimit: Double) throws(DeviceError) {
    guard let pool = sm_pool_create(UInt32(threads)) else {
      throw DeviceError("cannot start \(threads) worker threads; set SOFTMETAL_THREADS to fewer")
    }
    self.pool = pool
    self.timeLimit = timeLimit
  }

  deinit {
    sm_pool_destroy(pool)
  }

  /// How a dispatch ended.
  enum Outcome {
    case ok
    case timeout
    case divergentBarrier
    case fault(SmFault)
  }

  /// Runs a dispatch to its end.
  func run(_ dispatch: inout SmDispatch) -> Outcome {
    turn.withLock {
      switch Int(sm_pool_run(pool, &dispatch, timeLimit)) {
      case Int(SM_RUN_OK): .ok
      case Int(SM_RUN_TIMEOUT): .timeout
      case Int(SM_RUN_DIVERGENT_BARRIER): .divergentBarrier
      default: .fault(sm_pool_fault(pool))
      }
    }
  }
}
