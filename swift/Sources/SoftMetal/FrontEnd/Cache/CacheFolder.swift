import Glibc
import Synchronization

/// The private folder of the cache.
///
///     objects/KEY      compiled shaders
///     sources/KEY      links from the key of a source to the key of its object
///     locks/KEY        held while an object is compiled
///     headers-KEY/     the headers of the language
///     stubs-KEY/       what stands in for them while a source is preprocessed
///     clang-KEY        the version of a compiler, from the key of its file
///     work-XXXXXX/     a compilation in progress
struct CacheFolder {
  let path: String

  /// Opens the folder, and makes it where it is missing. Nil when it cannot be
  /// written or when others could write it.
  init?(_ path: String) {
    guard Self.makeFolders(path), Self.isPrivate(path) else { return nil }
    for name in ["objects", "sources", "locks"] where !Self.makeFolder(path + "/" + name) { return nil }
    guard access(path + "/objects", W_OK | X_OK) == 0 else { return nil }
    self.path = path
  }

  private static func makeFolder(_ path: String) -> Bool {
    mkdir(path, 0o700) == 0 || errno == EEXIST
  }

  private static func makeFolders(_ path: String) -> Bool {
    var status = stat()
    if lstat(path, &status) == 0 { return true }
    let parts = path.split(separator: "/")
    var current = path.hasPrefix("/") ? "" : "."
    for part in parts {
      current += "/" + part
      if !makeFolder(current), stat(current, &status) != 0 { return false }
    }
    return !parts.isEmpty
  }

  /// Whether nobody else can put anything into the folder.
  private static func isPrivate(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR && status.st_uid == geteuid()
      && status.st_mode & 0o022 == 0
  }

  func object(_ key: String) -> String { path + "/objects/" + key }
  func sourceLink(_ key: String) -> String { path + "/sources/" + key }
  func lock(_ key: String) -> String { path + "/locks/" + key }
  func clangNote(_ key: String) -> String { path + "/clang-" + key }

  /// Writes `bytes` so that others see the whole file or none.
  func store(_ bytes: [UInt8], at destination: String) -> Bool {
    let temporary = "\(destination).\(getpid()).\(Self.nextNumber())"
    guard Files.write(bytes, to: temporary), rename(temporary, destination) == 0 else {
      unlink(temporary)
      return false
    }
    return true
  }

  /// Makes `destination` a link that says `target`, replacing an older one.
  func storeLink(_ target: String, at destination: String) {
    let temporary = "\(destination).\(getpid()).\(Self.nextNumber())"
    guard symlink(target, temporary) == 0 else { return }
    if rename(temporary, destination) != 0 { unlink(temporary) }
  }

  /// What a link says, or nil.
  func readLink(_ path: String) -> String? {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = bytes.withUnsafeMutableBytes { buffer in
      buffer.withMemoryRebound(to: CChar.self) { link in
        link.baseAddress.map { readlink(path, $0, link.count) } ?? -1
      }
    }
    return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
  }

  /// Removes the folders that nobody has used for a day: headers of other
  /// versions, and compilations that were killed.
  func removeLeftovers() {
    let day = 24 * 60 * 60
    for name in Files.names(in: path) where ["headers-", "stubs-", "work-"].contains(where: name.hasPrefix) {
      let folder = path + "/" + name
      var status = stat()
      if lstat(folder, &status) == 0, status.st_mtim.tv_sec < time(nil) - day { Files.removeFolder(folder) }
    }
  }

  private static let counter = Atomic<Int>(0)

  private static func nextNumber() -> Int { counter.add(1, ordering: .relaxed).newValue }
}
