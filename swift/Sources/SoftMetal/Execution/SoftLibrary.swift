import CSoftMetal
import Synchronization

/// Compiled source. Each combination of function constants in use is one
/// loaded object, shared by its functions unless they are compiled one by one.
final class SoftLibrary: MTLLibrary {
  private struct WeakShader {
    weak var shader: LoadedShader?
  }

  /// What an object is made for; `function` is nil where one serves all.
  private struct Key: Hashable {
    let function: String?
    let constants: [UInt32: ConstantValue]
  }

  private let source: String
  private let options: ShaderCompiler.Options
  private let compiled: CompiledShader
  private let loaded = Mutex<[Key: WeakShader]>([:])

  init(source: String, options: ShaderCompiler.Options) throws {
    self.source = source
    self.options = options
    do {
      compiled = try ShaderCompiler.compile(source: source, options: options)
    } catch let error as ShaderCompilerError {
      throw MTLLibraryError(error)
    }
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
    let shader = try loadedShader(name, constantValues.values)
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

  private func loadedShader(_ name: String, _ constants: [UInt32: ConstantValue]) throws -> LoadedShader {
    let isSeparate = compiled.object.isEmpty
    let key = Key(function: isSeparate ? name : nil, constants: constants)
    return try loaded.withLock { loaded in
      if let shader = loaded[key]?.shader { return shader }
      loaded = loaded.filter { $0.value.shader != nil }
      do {
        let compiled =
          isSeparate ? try ShaderCompiler.compile(source: source, options: options, kernel: name) : self.compiled
        let shader = try LoadedShader(compiled, constants: constants)
        loaded[key] = WeakShader(shader: shader)
        return shader
      } catch let error as ShaderCompilerError {
        throw MTLLibraryError(error)
      }
    }
  }
}
