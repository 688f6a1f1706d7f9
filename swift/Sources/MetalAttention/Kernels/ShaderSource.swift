/// A text of Metal Shading Language: its kernels' names, and its library once
/// it is compiled.
final class ShaderSource {
  /// The file name in the compiler's messages.
  let name: String
  let isBuiltIn: Bool
  private let text: String
  /// Scanned from the text; exact once compiled.
  private(set) var kernelNames: [String]
  private(set) var library: (any MTLLibrary)?

  /// A caller's source.
  init(name: String, text: String) {
    self.name = name
    self.text = text
    isBuiltIn = false
    kernelNames = KernelNames.scan(text)
  }

  /// A source of the library, whose kernels are known.
  init(name: String, kernels: [String]) {
    self.name = name
    text = EmbeddedTexts.files.first { $0.name == name }.map { "\($0.text)" } ?? ""
    isBuiltIn = true
    kernelNames = kernels
  }

  /// The source as the compiler gets it.
  var expanded: String { ShaderInclude.expand(text, name: name) }

  static var options: MTLCompileOptions {
    let options = MTLCompileOptions()
    options.languageVersion = .version3_1
    // Masks rely on infinities, so the compiler must not assume them away.
    if #available(macOS 15.0, *) {
      options.mathMode = .safe
    } else {
      options.fastMathEnabled = false
    }
    return options
  }

  /// The compiled library.
  func compiled(by device: any MTLDevice) throws(StatusError) -> any MTLLibrary {
    if let library { return library }
    do {
      let library = try device.makeLibrary(source: expanded, options: Self.options)
      kernelNames = library.functionNames.sorted()
      self.library = library
      return library
    } catch {
      throw .compilation(of: name, error)
    }
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
