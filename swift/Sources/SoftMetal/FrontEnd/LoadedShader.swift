import CSoftMetal

/// One copy of a compiled shader in memory, with its function constants set.
///
/// Each combination of constants is its own copy, as the constants are plain
/// variables of the object. Pointers into the object live as long as this does.
final class LoadedShader: @unchecked Sendable {
  let functionNames: [String]
  let object: UnsafePointer<SmObject>

  /// Loads `shader` and sets its function constants.
  ///
  /// - Parameters:
  ///   - constants: values by index. An index the shader lacks is ignored.
  ///   - namedConstants: values by name; they win over `constants`.
  /// - Throws: `ShaderCompilerError`.
  init(
    _ shader: CompiledShader, constants: [UInt32: ConstantValue],
    namedConstants: [String: ConstantValue] = [:]
  ) throws {
    throw ShaderCompilerError(kind: .hostFailure, message: "cannot load \(shader.label)")
  }

  /// The kernel with this host name, or nil.
  func kernel(named name: String) -> UnsafePointer<SmKernel>? {
    nil
  }

  /// Names of the function constants that `kernel` reaches and that have no
  /// value. A constant the source asks about with
  /// `is_function_constant_defined` may stay without one.
  func missingConstants(of kernel: UnsafePointer<SmKernel>) -> [String] {
    []
  }
}
