import Glibc
import Synchronization

/// Compiled shaders on disk, shared by the processes of one user.
struct ShaderCache {
  let folder: CacheFolder
  /// Bytes that objects may take.
  let limit: Int

  /// The cache, or nil when its folder cannot be used.
  static func open(_ settings: CompilerSettings) -> ShaderCache? {
    let path = settings.cachePath
    let folder = opened.withLock { known -> CacheFolder? in
      if let folder = known[path], access(folder.path + "/objects", W_OK) == 0 { return folder }
      let folder = CacheFolder(path)
      known[path] = folder
      return folder
    }
    return folder.map { ShaderCache(folder: $0, limit: settings.cacheLimit) }
  }

  private static let opened = Mutex<[String: CacheFolder]>([:])

  /// The object that a source was compiled to, by the key of the source.
  func load(sourceKey: String) -> CacheEntry.Content? {
    folder.readLink(folder.sourceLink(sourceKey)).flatMap { load(key: $0) }
  }

  /// A damaged entry is removed.
  func load(key: String) -> CacheEntry.Content? {
    guard key.utf8.count == 32, !key.contains("/") else { return nil }
    let path = folder.object(key)
    let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, let bytes = Files.read(descriptor, expecting: Int(status.st_size)) else {
      return nil
    }
    guard let entry = CacheEntry.decode(bytes) else {
      unlink(path)
      return nil
    }
    // The oldest go first, by their last use.
    futimens(descriptor, nil)
    return entry
  }

  func store(_ metadata: CacheEntry.Metadata, object: [UInt8], key: String) {
    guard folder.store(CacheEntry.encode(metadata, object: object), at: folder.object(key)) else { return }
    trim(keeping: key)
    folder.removeLeftovers()
  }

  func link(sourceKey: String, to key: String) {
    folder.storeLink(key, at: folder.sourceLink(sourceKey))
  }

  // MARK: Size

  /// Removes the objects used longest ago until the rest fits the limit.
  private func trim(keeping key: String) {
    struct Item {
      let path: String
      let size: Int
      let time: timespec
    }
    var total = 0
    var items: [Item] = []
    for name in Files.names(in: folder.path + "/objects") {
      let path = folder.object(name)
      var status = stat()
      guard lstat(path, &status) == 0 else { continue }
      total += Int(status.st_size)
      if name != key { items.append(Item(path: path, size: Int(status.st_size), time: status.st_mtim)) }
    }
    guard total > limit else { return }
    items.sort { ($0.time.tv_sec, $0.time.tv_nsec) < ($1.time.tv_sec, $1.time.tv_nsec) }
    for item in items where total > limit {
      unlink(item.path)
      total -= item.size
    }
    removeDanglingLinks()
  }

  private func removeDanglingLinks() {
    for name in Files.names(in: folder.path + "/sources") {
      let link = folder.sourceLink(name)
      if let target = folder.readLink(link), access(folder.object(target), F_OK) != 0 { unlink(link) }
    }
  }
}
