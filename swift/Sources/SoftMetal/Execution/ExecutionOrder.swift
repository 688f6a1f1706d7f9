/// The order in which dispatches run that nothing orders.
enum ExecutionOrder: Equatable {
  case forward
  case reverse
  case shuffle(seed: UInt64)

  /// From `forward`, `reverse` or `shuffle:SEED`.
  init?(_ text: String) {
    switch text {
    case "forward": self = .forward
    case "reverse": self = .reverse
    default:
      let prefix = "shuffle:"
      guard text.hasPrefix(prefix), let seed = UInt64(text.dropFirst(prefix.count)) else { return nil }
      self = .shuffle(seed: seed)
    }
  }
}
