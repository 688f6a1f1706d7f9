/// The memory of logs that passes of a device have left: fresh pages would cost
/// a pass of many dispatches more than its checks.
final class DispatchLogPool {
  private static let maxKept = 4

  private let lock = Lock()
  private var kept: [DispatchLog] = []

  /// An empty log.
  func take() -> DispatchLog {
    lock.withLock { kept.popLast() } ?? DispatchLog()
  }

  /// Takes the memory of a log that nobody reads any more.
  func give(_ log: consuming DispatchLog) {
    guard log.isWorthKeeping else { return }
    var empty = consume log
    empty.removeAll()
    lock.withLock {
      if kept.count < Self.maxKept { kept.append(empty) }
    }
  }
}
