/// Which floating-point transformations the compiler may make.
public enum MTLMathMode: Int, Sendable {
  /// IEEE semantics: infinities and NaN are kept.
  case safe = 0
  case relaxed = 1
  case fast = 2
}
