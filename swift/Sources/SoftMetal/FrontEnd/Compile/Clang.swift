import Glibc
import Synchronization

/// The compiler: clang 19, which the tests ran with; others from 18 on are taken, untested.
struct Clang: Sendable {
  let path: String
  /// Major version.
  let version: Int
  /// Path, size and time of the program's file.
  let identity: String

  static let testedVersion = 19
  private static let minimumVersion = 18

  /// Finds clang: SOFTMETAL_CLANG, or the first of clang-19, clang-18,
  /// clang-20 and newer, clang on the search path.
  ///
  /// - Throws: `ShaderCompilerError` of kind `noCompiler`.
  static func find(_ settings: CompilerSettings) throws -> Clang {
    if let clang = known.withLock({ $0[settings] }), Files.identity(clang.path) == clang.identity { return clang }
    let clang = try search(settings)
    known.withLock { $0[settings] = clang }
    return clang
  }

  private static let known = Mutex<[CompilerSettings: Clang]>([:])

  private static func search(_ settings: CompilerSettings) throws -> Clang {
    if let path = settings.clang {
      guard let program = path.contains("/") ? Files.executable(path) : settings.program(path) else {
        throw missing("SOFTMETAL_CLANG names '\(path)', which is no program")
      }
      return try probe(program, settings)
    }
    for version in [19, 18, 20, 21, 22, 23, 24] {
      let name = "clang-\(version)"
      if let path = settings.program(name) ?? Files.executable("/usr/lib/llvm-\(version)/bin/clang"),
        let identity = Files.identity(path)
      {
        return Clang(path: path, version: version, identity: identity)
      }
    }
    guard let path = settings.program("clang") else { throw missing("no clang on the search path") }
    return try probe(path, settings)
  }

  private static func missing(_ reason: String) -> ShaderCompilerError {
    ShaderCompilerError(
      kind: .noCompiler,
      message: "\(reason): compiling shaders needs clang \(testedVersion), or, untested, another from "
        + "\(minimumVersion) on; install clang-\(testedVersion), or set SOFTMETAL_CLANG to its path")
  }

  // MARK: Version

  /// Asks a clang for its version, once for each state of its file.
  private static func probe(_ path: String, _ settings: CompilerSettings) throws -> Clang {
    guard let identity = Files.identity(path) else { throw missing("'\(path)' cannot be read") }
    var hash = Hash128()
    hash.combine(identity)
    let cache = ShaderCache.open(settings)
    let note = cache.map { $0.folder.clangNote(hash.name) }
    if let note, let bytes = Files.read(note), let version = Int(String(decoding: bytes, as: UTF8.self)) {
      return Clang(path: path, version: version, identity: identity)
    }
    guard let outcome = ChildProcess.run(path, ["--version"]), outcome.status ?? 0 == 0,
      let version = majorVersion(outcome.output)
    else { throw missing("'\(path)' does not say which version of clang it is") }
    guard version >= minimumVersion else { throw missing("'\(path)' is clang \(version)") }
    if let cache, let note { _ = cache.folder.store(Array(String(version).utf8), at: note) }
    return Clang(path: path, version: version, identity: identity)
  }

  /// Reads `... clang version 19.1.7 ...`.
  private static func majorVersion(_ text: String) -> Int? {
    let words = text.split { $0 == " " || $0 == "\n" }
    guard let index = words.firstIndex(of: "version"), index + 1 < words.count, index > 0,
      words[index - 1].hasSuffix("clang")
    else { return nil }
    return Int(words[index + 1].prefix { $0.isNumber })
  }
}
