/// Whether an encoder orders its dispatches.
public enum MTLDispatchType: UInt, Sendable {
  /// Each dispatch waits for the one before it.
  case serial = 0

  /// Only barriers order dispatches.
  case concurrent = 1
}
