import Synchronization

/// Storage that finished command buffers of a queue have left.
final class CommandStoragePool: @unchecked Sendable {
  private static let maxKept = 4

  private let mapping: (any MemoryMapping)?
  private let kept = Mutex<[CommandStorage]>([])

  init(_ mapping: (any MemoryMapping)?) {
    self.mapping = mapping
  }

  func take() -> CommandStorage {
    kept.withLock { $0.popLast() } ?? CommandStorage(mapping)
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
