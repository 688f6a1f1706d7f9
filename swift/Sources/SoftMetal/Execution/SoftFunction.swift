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
}
