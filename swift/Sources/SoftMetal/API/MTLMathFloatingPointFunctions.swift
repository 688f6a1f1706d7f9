/// Which functions of f32 a name without `fast::` or `precise::` stands for. SoftMetal has the precise ones for either.
public enum MTLMathFloatingPointFunctions: Int, Sendable {
  case fast = 0
  case precise = 1
}
