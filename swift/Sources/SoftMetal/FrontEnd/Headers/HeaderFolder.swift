import Glibc

/// The headers of the Metal Shading Language, embedded in the library.
enum HeaderFolder {
  /// Every header by its file name.
  static let headers: [(name: String, bytes: [UInt8])] = EmbeddedTexts.files.map { name, text in
    (name, text.withUTF8Buffer { Array($0) })
  }

  /// Hash of all headers.
  static let hash = hash(headers)

  /// Stubs of the headers that users include.
  private static let stubs = headers.map { ($0.name, Array(Preprocessing.stub(forHeader: $0.name).utf8)) }
  private static let stubsHash = hash(stubs)

  private static func hash(_ files: [(name: String, bytes: [UInt8])]) -> Hash128 {
    var hash = Hash128()
    for file in files {
      hash.combine(file.name)
      hash.combine(file.bytes)
    }
    return hash
  }

  /// The headers as files in `parent`, written once for each content, and again where they are damaged.
  /// Nil when they cannot be written.
  static func headers(in parent: String) -> String? {
    folder(parent + "/headers-" + hash.name, in: parent, headers)
  }

  /// Stubs of the headers that users include, for the preprocessor.
  static func stubs(in parent: String) -> String? {
    folder(parent + "/stubs-" + stubsHash.name, in: parent, stubs)
  }

  private static func folder(_ path: String, in parent: String, _ files: [(name: String, bytes: [UInt8])]) -> String? {
    // Its time says when it was last used.
    guard utimensat(AT_FDCWD, path, nil, 0) == 0 else { return makeFolder(path, in: parent, files) }
    let missing = files.filter { file in !IntactFiles.contain("\(path)/\(file.name)") { $0 == file.bytes } }
    if missing.isEmpty, access(path + "/simd", F_OK) == 0 { return path }
    guard let temporary = writeFolder(in: parent, missing) else { return nil }
    defer { Files.removeFolder(temporary) }
    // One by one: another process may read in the folder.
    for name in Files.names(in: temporary) where rename("\(temporary)/\(name)", "\(path)/\(name)") != 0 { return nil }
    return path
  }

  private static func makeFolder(
    _ path: String, in parent: String, _ files: [(name: String, bytes: [UInt8])]
  ) -> String? {
    guard let temporary = writeFolder(in: parent, files) else { return nil }
    if rename(temporary, path) == 0 { return path }
    // Another process was first.
    Files.removeFolder(temporary)
    return access(path, F_OK) == 0 ? path : nil
  }

  private static func writeFolder(in parent: String, _ files: [(name: String, bytes: [UInt8])]) -> String? {
    guard let folder = WorkFolder.make(in: parent) else { return nil }
    for file in files where !Files.write(file.bytes, to: folder + "/" + file.name) {
      Files.removeFolder(folder)
      return nil
    }
    // `<simd/simd.h>` is in the same folder.
    symlink(".", folder + "/simd")
    return folder
  }
}
