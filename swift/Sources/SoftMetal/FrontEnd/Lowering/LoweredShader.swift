/// A shader source after lowering: one C++ translation unit.
struct LoweredShader {
  let text: [UInt8]
  /// Host names of the kernels, in the order of the source.
  let functionNames: [String]
  /// Those of them that the object has; the n-th is number n, counted from 1.
  let describedNames: [String]
  /// Whether any of these runs as a loop.
  let hasLoops: Bool
  /// Whether it includes `<metal_stdlib>`.
  let includesLibrary: Bool
  /// Whether any of these has 8x8 matrices.
  let usesMatrices: Bool
  /// As `RareSwizzles` says.
  let usesRareSwizzles: Bool
  /// Whether each kernel is compiled alone when it is first asked for.
  let compilesSeparately: Bool
  let sourceMap: SourceMap

  /// Flags for macros that decide on what the headers have for an executor. The fewer sets there are, the fewer times
  /// they are parsed.
  func definitions(_ executor: Executor) -> [String] {
    let loops = if case .threads = executor { hasLoops } else { false }
    let matrices = executor.isGpu && usesMatrices
    return (loops ? ["-DSM_HAS_LOOPS"] : []) + (matrices ? ["-DSM_MATRIX_LANES"] : [])
      + (usesRareSwizzles ? ["-D\(RareSwizzles.macro)"] : [])
  }
}
