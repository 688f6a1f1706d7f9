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

  open var languageVersion: MTLLanguageVersion = .version3_1

  /// Since macOS 13. `size` compiles in less time here, to less code.
  open var optimizationLevel: MTLLibraryOptimizationLevel = .default
}

extension ShaderCompiler.Options {
  init(_ options: MTLCompileOptions) {
    let version = options.languageVersion.rawValue
    self.init(
      fastMath: options.mathMode == .fast, isSmall: options.optimizationLevel == .size,
      languageVersion: Int((version >> 16) * 100 + (version & 0xFFFF) * 10))
  }
}
