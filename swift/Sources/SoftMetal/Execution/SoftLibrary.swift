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
    let executor: Executor.Choice
    let constants: [UInt32: ConstantValue]
    let namedConstants: [String: ConstantValue]
  }

  private let source: String
  private let options: ShaderCompiler.Options
  private let checksLockstep: Bool
  private let executor: Executor.Choice
  private let compiled: CompiledShader
  private let loaded = Mutex<[Key: WeakShader]>([:])

  init(
    source: String, options: ShaderCompiler.Options, checksLockstep: Bool = false,
    for executor: Executor.Choice = .usual
  ) throws {
    self.source = source
    self.options = options
    self.checksLockstep = checksLockstep
    self.executor = executor
    do {
      compiled = try ShaderCompiler.compile(source: source, options: options, for: executor)
    } catch let error as ShaderCompilerError {
      throw MTLLibraryError(error)
    }
  }

  var functionNames: [String] { compiled.functionNames }

  func makeFunction(name functionName: String) -> (any MTLFunction)? {
    try? function(named: functionName, MTLFunctionConstantValues())
  }

  func makeFunction(name: String, constantValues: MTLFunctionConstantValues) throws -> any MTLFunction {
    let function = try function(named: name, constantValues)
    try function.requireConstants()
    return function
  }

  /// A function that may lack values still, and then makes no pipeline.
  private func function(named name: String, _ constantValues: MTLFunctionConstantValues) throws -> SoftFunction {
    guard functionNames.contains(name) else { throw functionNotFound(name) }
    if let index = constantValues.invalidIndex {
      throw MTLLibraryError(.unsupported, "function constant index \(index) is outside 0 to \(UInt32.max)")
    }
    let shader = try loadedShader(name, constantValues, for: executor)
    guard let kernel = shader.kernel(named: name) else { throw functionNotFound(name) }
    guard checksLockstep, kernel.pointee.execution == UInt32(SM_EXECUTION_VECTORS) else {
      return SoftFunction(name: name, shader: shader, kernel: kernel)
    }
    let other = try loadedShader(name, constantValues, for: .threads)
    guard let otherKernel = other.kernel(named: name) else { throw functionNotFound(name) }
    return SoftFunction(name: name, shader: shader, kernel: kernel, reference: (other, otherKernel))
  }

  private func functionNotFound(_ name: String) -> MTLLibraryError {
    MTLLibraryError(
      .functionNotFound,
      "no function '\(name)' in \(compiled.label); it has \(functionNames.joined(separator: ", "))")
  }

  private func loadedShader(
    _ name: String, _ values: MTLFunctionConstantValues, for choice: Executor.Choice
  ) throws -> LoadedShader {
    let isSeparate = compiled.object.isEmpty
    let key = Key(
      function: isSeparate ? name : nil, executor: choice, constants: values.values,
      namedConstants: values.namedValues)
    return try loaded.withLock { loaded in
      if let shader = loaded[key]?.shader { return shader }
      loaded = loaded.filter { $0.value.shader != nil }
      do {
        let compiled =
          isSeparate || choice != executor
          ? try ShaderCompiler.compile(
            source: source, options: options, kernel: isSeparate ? name : nil, for: choice)
          : self.compiled
        let shader = try LoadedShader(compiled, constants: values.values, namedConstants: values.namedValues)
        loaded[key] = WeakShader(shader: shader)
        return shader
      } catch let error as ShaderCompilerError {
        throw MTLLibraryError(error)
      }
    }
  }
}
