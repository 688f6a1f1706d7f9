#if canImport(Darwin)
  import Darwin
#else
  import Glibc
#endif

/// `embed-texts OUTPUT PATH...`: writes Swift source that holds the files at
/// the paths, those of a folder under their paths inside it.
@main
enum EmbedTexts {
  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count > 2 else { fail("usage: embed-texts OUTPUT PATH...") }
    let entries = arguments.dropFirst(2).flatMap { path in
      isFolder(path) ? files(in: path, prefix: "") : [(name(of: path), path)]
    }
    let list = entries.sorted { $0.0 < $1.0 }.map { name, path in "    (\"\(name)\", \(literal(read(path))))," }
    let source =
      "/// Text files that the build embedded.\nenum EmbeddedTexts {\n"
      + "  static let files: [(name: String, text: StaticString)] = [\n\(list.joined(separator: "\n"))\n  ]\n}\n"
    write(source, to: arguments[1])
  }

  /// A raw literal, with as many `#` as none of the text's lines can end it.
  private static func literal(_ text: String) -> String {
    var marks = "#"
    while text.contains("\"\"\"\(marks)") || text.contains("\\\(marks)") { marks += "#" }
    return "\(marks)\"\"\"\n\(text)\n\"\"\"\(marks)"
  }

  private static func files(in folder: String, prefix: String) -> [(String, String)] {
    guard let directory = opendir(folder) else { fail("cannot read the folder \(folder)") }
    defer { closedir(directory) }
    var found: [(String, String)] = []
    while let entry = readdir(directory) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name.hasPrefix(".") { continue }
      let path = "\(folder)/\(name)"
      found += isFolder(path) ? files(in: path, prefix: "\(prefix)\(name)/") : [("\(prefix)\(name)", path)]
    }
    return found
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private static func name(of path: String) -> String {
    path.split(separator: "/").last.map(String.init) ?? path
  }

  private static func read(_ path: String) -> String {
    guard let file = fopen(path, "rb") else { fail("cannot read \(path)") }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var block = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&block, 1, block.count, file), count > 0 { bytes += block[..<count] }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func write(_ text: String, to path: String) {
    guard let file = fopen(path, "wb"), fputs(text, file) >= 0, fclose(file) == 0 else {
      fail("cannot write \(path)")
    }
  }

  private static func fail(_ message: String) -> Never {
    perror("embed-texts: \(message)")
    exit(1)
  }
}
