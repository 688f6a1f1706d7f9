import CSoftMetal

/// A kernel in a loaded object, which holds its function constants.
final class SoftFunction: MTLFunction {
  let name: String
  let shader: LoadedShader
  let kernel: UnsafePointer<SmKernel>

  init(name: String, shader: LoadedShader, kernel: UnsafePointer<SmKernel>) {
    self.name = name
    self.shader = shader
    self.kernel = kernel
  }
}
