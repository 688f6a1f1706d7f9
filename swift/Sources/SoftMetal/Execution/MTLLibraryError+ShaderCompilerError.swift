extension MTLLibraryError {
  /// The front end's error as Metal's.
  init(_ error: ShaderCompilerError) {
    let code: Code =
      switch error.kind {
      case .compileFailure, .compilerCrash, .constantMismatch: .compileFailure
      case .noCompiler: .unsupported
      case .hostFailure: .internal
      }
    self.init(code, error.message)
  }
}
