import Glibc

/// A lock between processes and threads on one key of the cache.
struct EntryLock {
  private let descriptor: Int32
  private let path: String

  /// Waits for the lock. Nil where no lock file can be made: then work may be
  /// done twice, with the same outcome.
  init?(_ path: String) {
    while true {
      let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
      guard descriptor >= 0 else { return nil }
      while flock(descriptor, LOCK_EX) != 0 {
        guard errno == EINTR else {
          close(descriptor)
          return nil
        }
      }
      // The last holder may have removed the file while we waited.
      var held = stat()
      var named = stat()
      if fstat(descriptor, &held) == 0, stat(path, &named) == 0, held.st_ino == named.st_ino {
        self.descriptor = descriptor
        self.path = path
        return
      }
      close(descriptor)
    }
  }

  func release() {
    unlink(path)
    close(descriptor)
  }
}
