import Synchronization

/// Files of the cache that clang reads, and that nothing in them tells to be whole: a cleaner may take one out of its
/// folder, and a loss of power leave one empty or full of zeros.
enum IntactFiles {
  /// What this process has found intact, by `Files.identity`.
  private static let known = Mutex<Set<String>>([])

  /// Whether the file is there with the bytes that it should have, as `isRight` says.
  static func contain(_ path: String, _ isRight: ([UInt8]) -> Bool) -> Bool {
    guard let identity = Files.identity(path) else { return false }
    if known.withLock({ $0.contains(identity) }) { return true }
    guard let bytes = Files.read(path), isRight(bytes) else { return false }
    known.withLock { _ = $0.insert(identity) }
    return true
  }
}
