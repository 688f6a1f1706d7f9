/// Copies of small pieces of memory, at addresses that stay.
struct ByteArena: ~Copyable {
  private static let chunkSize = 64 * 1024
  /// Bytes; more than any MSL type needs.
  private static let alignment = 64

  private let mapping: (any MemoryMapping)?

  private var chunks: ContiguousArray<UnsafeMutableRawPointer> = []
  /// Chunks with copies in them; the last of them is being filled.
  private var usedChunks = 0
  /// Bytes used of the chunk being filled.
  private var position = ByteArena.chunkSize

  /// - Parameter mapping: of the device that reads the copies.
  init(_ mapping: (any MemoryMapping)? = nil) {
    self.mapping = mapping
  }

  deinit {
    for chunk in chunks {
      mapping?.unmap(chunk)
      chunk.deallocate()
    }
  }

  /// Bytes.
  var capacity: Int { chunks.count * Self.chunkSize }

  /// - Parameter length: bytes, at most a chunk.
  /// - Returns: nil where the device has no room.
  mutating func copy(_ bytes: UnsafeRawPointer, length: Int) -> UnsafeMutableRawPointer? {
    let size = (length + Self.alignment - 1) & ~(Self.alignment - 1)
    if position + size > Self.chunkSize, !startChunk() { return nil }
    let target = chunks[usedChunks - 1] + position
    target.copyMemory(from: bytes, byteCount: length)
    position += size
    return target
  }

  mutating func removeAll() {
    usedChunks = 0
    position = Self.chunkSize
  }

  private mutating func startChunk() -> Bool {
    if usedChunks == chunks.count {
      // Of whole pages where they are mapped, so that each page is mapped once.
      let alignment = mapping == nil ? Self.alignment : Processor.pageSize
      let chunk = UnsafeMutableRawPointer.allocate(byteCount: Self.chunkSize, alignment: alignment)
      guard mapping?.map(chunk, size: Self.chunkSize) ?? true else {
        chunk.deallocate()
        return false
      }
      chunks.append(chunk)
    }
    usedChunks += 1
    position = 0
    return true
  }
}
