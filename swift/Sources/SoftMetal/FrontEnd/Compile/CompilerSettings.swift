import Glibc

/// Where the compiler and the cache are, from the environment.
struct CompilerSettings: Hashable, Sendable {
  /// SOFTMETAL_CLANG: path or name of clang; nil to search for one.
  var clang: String?
  /// PATH.
  var searchPath: [String]
  /// Folder of the cache: SOFTMETAL_CACHE_DIR, or else a folder of the user.
  var cachePath: String
  /// SOFTMETAL_CACHE_LIMIT: bytes that compiled shaders may take on disk.
  var cacheLimit: Int
  /// Where files go when the cache cannot be written.
  var temporaryFolders: [String]

  /// The settings that the process's environment gives now.
  static var environment: CompilerSettings {
    CompilerSettings(
      clang: Files.environment("SOFTMETAL_CLANG"),
      searchPath: (Files.environment("PATH") ?? "/usr/local/bin:/usr/bin:/bin").split(separator: ":").map(String.init),
      cachePath: defaultCachePath,
      cacheLimit: Files.environment("SOFTMETAL_CACHE_LIMIT").flatMap { Int($0) } ?? 512 << 20,
      temporaryFolders: [Files.environment("TMPDIR") ?? "/tmp", "/dev/shm"])
  }

  /// The path of a program of this name on the search path.
  func program(_ name: String) -> String? {
    searchPath.lazy.compactMap { Files.executable($0 + "/" + name) }.first
  }

  private static var defaultCachePath: String {
    if let path = Files.environment("SOFTMETAL_CACHE_DIR") { return Files.absolute(path) }
    if let path = Files.environment("XDG_CACHE_HOME"), path.hasPrefix("/") { return path + "/metal-attention" }
    if let path = Files.environment("HOME"), path.hasPrefix("/") { return path + "/.cache/metal-attention" }
    return "/tmp/metal-attention-\(geteuid())"
  }
}
