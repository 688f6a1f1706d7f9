import CSoftMetal

/// PTX as text.
package enum GpuCode {
  /// A kernel of a source.
  package struct Unit: Sendable {
    package let kernel: String
    let source: String
    let options: ShaderCompiler.Options

    /// - Throws: `ShaderCompilerError`.
    package func compile() throws -> String {
      let compiled = try ShaderCompiler.compile(source: source, options: options, kernel: kernel, for: .nvptx)
      let shader = try LoadedShader(compiled, constants: [:])
      return shader.ptx.map { String(cString: $0) } ?? ""
    }
  }

  /// - Throws: `ShaderCompilerError`.
  package static func units(of source: String, options: MTLCompileOptions) throws -> [Unit] {
    let options = ShaderCompiler.Options(options)
    let library = try ShaderCompiler.compile(source: source, options: options, for: .nvptx)
    return library.functionNames.map { Unit(kernel: $0, source: source, options: options) }
  }
}
