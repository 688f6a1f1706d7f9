/// A text of Metal Shading Language: its kernels' names, and its library once
/// it is compiled.
final class ShaderSource {
  /// The file name in the compiler's messages.
  let name: String
  let isBuiltIn: Bool
  let text: String
  private let options: SourceOptions
  private let needsRowsOfSIMDGroups: Bool
  /// Scanned from the text; exact once compiled.
  private(set) var kernelNames: [String]
  private(set) var library: (any MTLLibrary)?
  /// What its text includes, as of its last compilation or of `findIncludes`.
  private(set) var includes = ShaderInclude.Names()

  /// A caller's source.
  init(name: String, text: String, options: SourceOptions) {
    self.name = name
    self.text = text
    self.options = options
    needsRowsOfSIMDGroups = false
    isBuiltIn = false
    kernelNames = KernelNames.scan(text)
  }

  /// A source of the library, whose kernels are known.
  init(name: String, kernels: [String], needsRowsOfSIMDGroups: Bool) {
    self.name = name
    text = EmbeddedTexts.files.first { $0.name == name }.map { "\($0.text)" } ?? ""
    options = SourceOptions()
    self.needsRowsOfSIMDGroups = needsRowsOfSIMDGroups
    isBuiltIn = true
    kernelNames = kernels
  }

  /// The source as the compiler gets it, and how.
  func compilation(among sources: [ShaderSource]) -> (source: String, options: MTLCompileOptions) {
    var include = include(among: sources)
    let expanded = include.expand(text, name: name)
    includes = include.names
    let compileOptions = options.compileOptions
    #if canImport(SoftMetal)
      compileOptions.needsRowsOfSIMDGroups = needsRowsOfSIMDGroups
    #endif
    return (options.definitions + expanded, compileOptions)
  }

  /// Finds what it includes of them.
  func findIncludes(among sources: [ShaderSource]) {
    var include = include(among: sources)
    include.findNames(text, name: name)
    includes = include.names
  }

  private func include(among sources: [ShaderSource]) -> ShaderInclude {
    ShaderInclude(isBuiltIn ? [:] : Dictionary(sources.map { ($0.name, $0.text) }) { first, _ in first })
  }

  /// The compiled library.
  ///
  /// - Parameter sources: those that it may include.
  func compiled(by device: any MTLDevice, among sources: [ShaderSource]) throws(StatusError) -> any MTLLibrary {
    if let library { return library }
    let (source, options) = compilation(among: sources)
    do {
      let library = try device.makeLibrary(source: source, options: options)
      kernelNames = library.functionNames.sorted()
      self.library = library
      return library
    } catch {
      let failure = StatusError.compilation(of: name, error)
      guard !isBuiltIn, "\(error)".contains("file not found") else { throw failure }
      let others = sources.map(\.name).filter { $0 != name }.joined(separator: ", ")
      throw StatusError(
        failure.code,
        failure.message
          + "\n#include \"NAME\" takes a registered source (\(others.isEmpty ? "there is no other" : others)) "
          + "or a header of the language")
    }
  }

  /// Has it compiled again when it is needed, because what it includes has changed.
  func forgetLibrary() {
    library = nil
  }

  /// Whether kernels of both may be those of one text: it is included by the other, or by both.
  func shares(with other: ShaderSource) -> Bool {
    includes.found.contains(other.name) || other.includes.found.contains(name)
      || !includes.found.isDisjoint(with: other.includes.found)
  }
}

extension StatusError {
  /// Maps a compiler's error: a device that cannot compile at all is
  /// distinguished from a shader that fails to.
  static func compilation(of name: String, _ error: any Error) -> StatusError {
    let code = (error as? MTLLibraryError)?.code
    let isDeviceAtFault = code == .unsupported || code == .internal
    return StatusError(
      isDeviceAtFault ? StatusCode.deviceUnavailable : StatusCode.shaderCompilation, "\(name): \(error)")
  }
}
