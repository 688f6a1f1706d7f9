import Glibc

/// A folder for the files of one compilation, removed with the object.
final class WorkFolder {
  let path: String
  /// Where the headers go: the cache's folder, or the work folder itself.
  let headerParent: String

  /// In the cache's folder, or else in one for temporary files.
  ///
  /// - Throws: `ShaderCompilerError` that names every folder tried.
  init(cache: ShaderCache?, _ settings: CompilerSettings) throws {
    var tried = [settings.cachePath]
    if let cache {
      if let path = Self.make(in: cache.folder.path) {
        self.path = path
        headerParent = cache.folder.path
        return
      }
    }
    for parent in settings.temporaryFolders where !tried.contains(parent) {
      tried.append(parent)
      if let path = Self.make(in: parent) {
        self.path = path
        headerParent = path
        return
      }
    }
    throw ShaderCompilerError(
      kind: .hostFailure,
      message: "cannot write the files of a compilation into any of \(tried.joined(separator: ", ")); "
        + "set SOFTMETAL_CACHE_DIR to a folder that you own and can write")
  }

  deinit {
    for name in Files.names(in: path) where name.hasPrefix("headers-") || name.hasPrefix("stubs-") {
      Files.removeFolder(path + "/" + name)
    }
    Files.removeFolder(path)
  }

  /// Makes a new private folder. Nil when that fails.
  static func make(in parent: String) -> String? {
    var template = Array((parent + "/work-XXXXXX").utf8CString)
    return template.withUnsafeMutableBufferPointer { buffer in
      buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
    }
  }
}
