/// How a library is compiled.
open class MTLCompileOptions {
  public init() {}

  /// Deprecated by Apple in macOS 15 in favour of `mathMode`.
  open var fastMathEnabled: Bool {
    get { mathMode == .fast }
    set { mathMode = newValue ? .fast : .safe }
  }

  /// Since macOS 15.
  open var mathMode: MTLMathMode = .fast

  /// Since macOS 15.
  open var mathFloatingPointFunctions: MTLMathFloatingPointFunctions = .fast

  open var languageVersion: MTLLanguageVersion = .version3_1

  /// Since macOS 13. `size` compiles in less time here, to less code.
  open var optimizationLevel: MTLLibraryOptimizationLevel = .default

  /// SoftMetal's own: in all dispatches threadgroups are rows of whole SIMD groups, and others are refused. Kernels then
  /// lack the version that runs others, half of their code.
  package final var needsRowsOfSIMDGroups = false
}

extension ShaderCompiler.Options {
  init(_ options: MTLCompileOptions) {
    let version = options.languageVersion.rawValue
    self.init(
      fastMath: options.mathMode == .fast, isSmall: options.optimizationLevel == .size,
      needsRowsOfSIMDGroups: options.needsRowsOfSIMDGroups,
      languageVersion: Int((version >> 16) * 100 + (version & 0xFFFF) * 10))
  }
}
