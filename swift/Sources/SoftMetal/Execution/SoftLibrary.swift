import CSoftMetal
import Synchronization

/// Compiled source. Each combination of function constants in use is one
/// loaded object, shared by its functions.
final class SoftLibrary: MTLLibrary {
  private struct WeakShader {
    weak var shader: LoadedShader?
  }

  private let compiled: CompiledShader
  private let loaded = Mutex<[[UInt32: ConstantValue]: WeakShader]>([:])

  init(_ compiled: CompiledShader) {
    self.compiled = compiled
  }

  var functionNames: [String] { compiled.functionNames }

  func makeFunction(name functionName: String) -> (any MTLFunction)? {
    try? makeFunction(name: functionName, constantValues: MTLFunctionConstantValues())
  }

  func makeFunction(name: String, constantValues: MTLFunctionConstantValues) throws -> any MTLFunction {
    guard functionNames.contains(name) else { throw functionNotFound(name) }
    if let index = constantValues.invalidIndex {
      throw MTLLibraryError(.unsupported, "function constant index \(index) is outside 0 to \(UInt32.max)")
    }
    let shader = try loadedShader(constantValues.values)
    guard let kernel = shader.kernel(named: name) else { throw functionNotFound(name) }
    let missing = shader.missingConstants(of: kernel)
    guard missing.isEmpty else {
      throw MTLLibraryError(
        .compileFailure,
        "function '\(name)' needs values for the function constants \(missing.joined(separator: ", "))")
    }
    return SoftFunction(name: name, shader: shader, kernel: kernel)
  }

  private func functionNotFound(_ name: String) -> MTLLibraryError {
    MTLLibraryError(
      .functionNotFound,
      "no function '\(name)' in \(compiled.label); it has \(functionNames.joined(separator: ", "))")
  }

  private func loadedShader(_ constants: [UInt32: ConstantValue]) throws -> LoadedShader {
    try loaded.withLock { loaded in
      if let shader = loaded[constants]?.shader { return shader }
      loaded = loaded.filter { $0.value.shader != nil }
      do {
        let shader = try LoadedShader(compiled, constants: constants)
        loaded[constants] = WeakShader(shader: shader)
        return shader
      } catch let error as ShaderCompilerError {
        throw MTLLibraryError(error)
      }
    }
  }
}
