import Synchronization

/// Storage that finished command buffers of a queue have left.
final class CommandStoragePool: @unchecked Sendable {
  private static let maxKept = 4

  private let kept = Mutex<[CommandStorage]>([])

  func take() -> CommandStorage {
    kept.withLock { $0.popLast() } ?? CommandStorage()
  }

  /// Releases what the storage retains, and may keep its memory.
  func give(_ storage: CommandStorage) {
    storage.removeAll()
    guard storage.isWorthKeeping else { return }
    kept.withLock { kept in
      if kept.count < Self.maxKept { kept.append(storage) }
    }
  }
}
