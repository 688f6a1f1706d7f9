import CSoftMetal

/// A kernel in a loaded object, which holds its function constants.
final class SoftFunction: MTLFunction {
  let name: String
  let shader: LoadedShader
  let kernel: UnsafePointer<SmKernel>
  /// The same with every thread by itself, to compare with.
  let reference: (shader: LoadedShader, kernel: UnsafePointer<SmKernel>)?

  init(
    name: String, shader: LoadedShader, kernel: UnsafePointer<SmKernel>,
    reference: (shader: LoadedShader, kernel: UnsafePointer<SmKernel>)? = nil
  ) {
    self.name = name
    self.shader = shader
    self.kernel = kernel
    self.reference = reference
  }

  var functionConstantsDictionary: [String: MTLFunctionConstant] {
    // Of two in namespaces of their own one has the name.
    Dictionary(shader.constants(of: kernel).map { ($0.name, $0) }) { first, _ in first }
  }

  /// Throws where the kernel needs a constant that has no value.
  func requireConstants() throws {
    let missing = shader.missingConstants(of: kernel)
    guard missing.isEmpty else {
      throw MTLLibraryError(
        .compileFailure,
        "function '\(name)' needs values for the function constants \(missing.joined(separator: ", "))")
    }
  }
}
