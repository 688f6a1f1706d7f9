import CSoftMetal
import Glibc
import Synchronization

/// One copy of a compiled shader in memory, with its function constants set.
///
/// Each combination of constants is its own copy, as the constants are plain
/// variables of the object. Pointers into the object live as long as this does.
final class LoadedShader: @unchecked Sendable {
  let functionNames: [String]
  let object: UnsafePointer<SmObject>
  /// As in `CacheEntry.Metadata`.
  let whyThreads: String
  private let handle: UnsafeMutableRawPointer

  /// Loads `shader` and sets its function constants.
  ///
  /// - Parameters:
  ///   - constants: values by index. An index the shader lacks is ignored.
  ///   - namedConstants: values by name; they win over `constants`.
  /// - Throws: `ShaderCompilerError`: `constantMismatch` for a value of another
  ///   type or size, `hostFailure` when the object cannot be loaded.
  init(
    _ shader: CompiledShader, constants: [UInt32: ConstantValue],
    namedConstants: [String: ConstantValue] = [:]
  ) throws {
    let handle = try Self.open(shader)
    guard let symbol = dlsym(handle, "sm_object") else {
      dlclose(handle)
      throw ShaderCompilerError(kind: .hostFailure, message: "\(shader.label): the object lacks its table")
    }
    let object = UnsafePointer(symbol.assumingMemoryBound(to: SmObject.self))
    do {
      guard object.pointee.version == UInt32(SM_OBJECT_VERSION) else {
        throw ShaderCompilerError(
          kind: .hostFailure,
          message: "\(shader.label): the object has version \(object.pointee.version), not \(SM_OBJECT_VERSION)")
      }
      let names = Self.constants(of: object).map { String(cString: $0.name) }
      if let unknown = namedConstants.keys.sorted().first(where: { !names.contains($0) }) {
        let known = names.isEmpty ? "none" : names.joined(separator: ", ")
        throw ShaderCompilerError(
          kind: .constantMismatch, message: "there is no function constant '\(unknown)'; the source has \(known)")
      }
      for constant in Self.constants(of: object) {
        let value = namedConstants[String(cString: constant.name)] ?? constants[constant.index]
        if let value { try Self.set(constant, to: value) }
      }
    } catch {
      dlclose(handle)
      throw error
    }
    object.pointee.initialize?()
    self.handle = handle
    self.object = object
    functionNames = shader.functionNames
    whyThreads = shader.whyThreads
  }

  deinit {
    dlclose(handle)
  }

  /// The kernel with this host name, or nil.
  func kernel(named name: String) -> UnsafePointer<SmKernel>? {
    for index in 0..<Int(object.pointee.kernelCount) {
      guard let kernel = object.pointee.kernels.map({ $0 + index }), let kernelName = kernel.pointee.name else {
        return nil
      }
      if strcmp(kernelName, name) == 0 { return kernel }
    }
    return nil
  }

  /// A GPU's code for the only kernel; nil in an object for the CPU.
  var ptx: UnsafePointer<CChar>? { object.pointee.ptx }

  /// What a GPU's code has to be given: each constant by its symbol there.
  var values: [(symbol: String, bytes: UnsafeRawBufferPointer)] {
    let constants = Self.constants(of: object).enumerated().flatMap { number, constant in
      [
        ("sm_constant_\(number)", UnsafeRawBufferPointer(start: constant.value, count: Int(constant.size))),
        ("sm_defined_\(number)", UnsafeRawBufferPointer(start: constant.defined, count: 1)),
      ]
    }
    let derived = UnsafeBufferPointer(start: object.pointee.derived, count: Int(object.pointee.derivedCount))
    return constants
      + derived.enumerated().map { number, constant in
        ("sm_derived_\(number)", UnsafeRawBufferPointer(start: constant.value, count: Int(constant.size)))
      }
  }

  /// Names of the function constants that `kernel` needs and that have no value.
  func missingConstants(of kernel: UnsafePointer<SmKernel>) -> [String] {
    needed(by: kernel).filter { $0.defined.pointee == 0 }.map { String(cString: $0.name) }
  }

  /// The function constants that `kernel` needs, with a value or without.
  func constants(of kernel: UnsafePointer<SmKernel>) -> [MTLFunctionConstant] {
    needed(by: kernel).map { constant in
      let type = ConstantValue.shortName(ofType: String(cString: constant.typeName))
      return MTLFunctionConstant(
        name: String(cString: constant.name), type: MTLDataType(shaderName: type ?? ""), index: Int(constant.index))
    }
  }

  private func needed(by kernel: UnsafePointer<SmKernel>) -> [SmFunctionConstant] {
    let constants = Self.constants(of: object)
    return UnsafeBufferPointer(start: kernel.pointee.constants, count: Int(kernel.pointee.constantCount))
      .compactMap { $0 < constants.count ? constants[Int($0)] : nil }
  }

  // MARK: Constants

  private static func constants(of object: UnsafePointer<SmObject>) -> UnsafeBufferPointer<SmFunctionConstant> {
    UnsafeBufferPointer(start: object.pointee.constants, count: Int(object.pointee.constantCount))
  }

  private static func set(_ constant: SmFunctionConstant, to value: ConstantValue) throws {
    let declared = ConstantValue.shortName(ofType: String(cString: constant.typeName))
    let described = "function constant '\(String(cString: constant.name))' (index \(constant.index))"
    if !value.typeName.isEmpty, let declared, declared != value.typeName {
      throw ShaderCompilerError(
        kind: .constantMismatch, message: "\(described) has type \(declared), the value has type \(value.typeName)")
    }
    guard value.bytes.count == Int(constant.size) else {
      throw ShaderCompilerError(
        kind: .constantMismatch,
        message: "\(described) takes \(constant.size) bytes, the value has \(value.bytes.count)")
    }
    constant.value.copyMemory(from: value.bytes, byteCount: value.bytes.count)
    constant.defined.pointee = 1
  }

  // MARK: Loading

  /// Maps the object from a file of its own, so that the loader makes a new
  /// copy each time.
  private static func open(_ shader: CompiledShader) throws -> UnsafeMutableRawPointer {
    // Objects are linked against nothing: mathematics comes from the process.
    _ = mathematics
    let file = memoryFile() ?? temporaryFile()
    guard let file else {
      throw ShaderCompilerError(
        kind: .hostFailure, message: "\(shader.label): no file to load the object from: \(Files.lastError)")
    }
    defer { close(file) }
    guard Files.write(shader.object, to: file) else {
      throw ShaderCompilerError(
        kind: .hostFailure, message: "\(shader.label): cannot write the object: \(Files.lastError)")
    }
    guard let handle = dlopen(uniquePath(of: file), RTLD_NOW | RTLD_LOCAL) else {
      let reason = dlerror().map { String(cString: $0) } ?? "unknown error"
      throw ShaderCompilerError(kind: .hostFailure, message: "\(shader.label): cannot load the object: \(reason)")
    }
    return handle
  }

  /// A path of `file` that no earlier load has used: the loader takes equal paths
  /// for the same object, and file numbers come back. The bits of a count choose
  /// between two ways to write "this folder".
  private static func uniquePath(of file: Int32) -> String {
    var bits = loads.add(1, ordering: .relaxed).newValue
    var path = "/proc/self/fd/"
    while bits > 0 {
      path += bits & 1 == 0 ? "./" : ".//"
      bits >>= 1
    }
    return path + String(file)
  }

  private static let loads = Atomic<UInt64>(0)

  /// The C library's mathematics.
  static let mathematics = dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL)

  /// A file that is memory only, or nil where the system has none.
  private static func memoryFile() -> Int32? {
    typealias Create = @convention(c) (UnsafePointer<CChar>, UInt32) -> Int32
    let closeOnExec: UInt32 = 1
    guard let symbol = dlsym(nil, "memfd_create") else { return nil }
    let file = unsafeBitCast(symbol, to: Create.self)("softmetal", closeOnExec)
    return file >= 0 ? file : nil
  }

  /// A file without a name.
  private static func temporaryFile() -> Int32? {
    for folder in CompilerSettings.environment.temporaryFolders {
      var template = Array((folder + "/object-XXXXXX").utf8CString)
      let file = template.withUnsafeMutableBufferPointer { buffer -> Int32 in
        guard let path = buffer.baseAddress else { return -1 }
        let file = mkstemp(path)
        if file >= 0 { unlink(path) }
        return file
      }
      if file >= 0 { return file }
    }
    return nil
  }
}
