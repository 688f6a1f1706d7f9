import CSoftMetal
import Glibc

/// Compiles shaders ahead of time into a folder, of which `PrecompiledShaders` reads an archive.
///
/// What is compiled goes through the cache, so that only what changed is
/// compiled again.
package struct Precompiler: Sendable {
  /// One object to make.
  package struct Unit: Sendable {
    /// Nil: what all kernels of the source share.
    package let kernel: String?
    let source: String
    let options: ShaderCompiler.Options
  }

  private let target: PrecompileTarget
  private let folder: String
  var settings = CompilerSettings.environment

  /// - Parameter parent: an existing folder; the entries go to one in it, named for the target.
  /// - Throws: `ShaderCompilerError`.
  package init(_ target: PrecompileTarget, in parent: String) throws {
    self.target = target
    folder = parent + "/" + target.folder
    guard sm_x86_64_level() > 0 else {
      throw ShaderCompilerError(kind: .hostFailure, message: "\(target.folder) is not for this machine's architecture")
    }
    guard mkdir(folder, 0o755) == 0 || errno == EEXIST else {
      throw ShaderCompilerError(kind: .hostFailure, message: "cannot make \(folder): \(Files.lastError)")
    }
  }

  /// That it compiles for processors, and this machine's chooses something else.
  package var isForOtherProcessors: Bool {
    guard case .processor(let level) = target else { return false }
    return ProcessorLevel.upTo(sm_x86_64_level()).first != level
  }

  /// Compiles what the kernels of a source share.
  ///
  /// - Returns: the kernels that have to be compiled one by one.
  package func compileLibrary(_ source: String, options: MTLCompileOptions) throws -> [Unit] {
    let unit = Unit(kernel: nil, source: source, options: .init(options))
    let library = try compileEntry(unit)
    guard library.object.isEmpty else { return [] }
    return library.functionNames.map { Unit(kernel: $0, source: source, options: unit.options) }
  }

  package func compile(_ unit: Unit) throws {
    _ = try compileEntry(unit)
  }

  private func compileEntry(_ unit: Unit) throws -> CompiledShader {
    var options = unit.options
    options.level = target.level
    let shader = try ShaderCompiler.compile(
      source: unit.source, options: options, kernel: unit.kernel, for: target.choice, settings: settings)
    let metadata = CacheEntry.Metadata(
      functionNames: shader.functionNames, whyThreads: shader.whyThreads, log: shader.log)
    let path =
      folder + "/"
      + PrecompiledShaders.key(
        source: Array(unit.source.utf8), label: shader.label, options: unit.options, kernel: unit.kernel)
    guard Files.write(CacheEntry.encode(metadata, object: shader.object), to: path), chmod(path, 0o644) == 0 else {
      throw ShaderCompilerError(kind: .hostFailure, message: "cannot write \(path): \(Files.lastError)")
    }
    return shader
  }
}
