/// Which floating-point transformations the compiler may make.
public enum MTLMathMode: Int, Sendable {
  /// IEEE semantics.
  case safe = 0
  /// Transformations that keep infinities and NaN. SoftMetal makes none.
  case relaxed = 1
  /// Infinities, NaN and the order of a sum may be ignored.
  case fast = 2
}
