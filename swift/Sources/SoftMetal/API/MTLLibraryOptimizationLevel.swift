/// What the compiler of a library aims at.
public enum MTLLibraryOptimizationLevel: Int, Sendable {
  /// Speed.
  case `default` = 0
  /// Little code.
  case size = 1
}
