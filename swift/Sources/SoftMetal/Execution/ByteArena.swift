/// Copies of small pieces of memory, at addresses that stay.
struct ByteArena: ~Copyable {
  private static let chunkSize = 64 * 1024
  /// Bytes; more than any MSL type needs.
  private static let alignment = 64

  private var chunks: ContiguousArray<UnsafeMutableRawPointer> = []
  /// Chunks with copies in them; the last of them is being filled.
  private var usedChunks = 0
  /// Bytes used of the chunk being filled.
  private var position = ByteArena.chunkSize

  deinit {
    for chunk in chunks { chunk.deallocate() }
  }

  /// Bytes.
  var capacity: Int { chunks.count * Self.chunkSize }

  /// - Parameter length: bytes, at most a chunk.
  mutating func copy(_ bytes: UnsafeRawPointer, length: Int) -> UnsafeMutableRawPointer {
    let size = (length + Self.alignment - 1) & ~(Self.alignment - 1)
    if position + size > Self.chunkSize { startChunk() }
    let target = chunks[usedChunks - 1] + position
    target.copyMemory(from: bytes, byteCount: length)
    position += size
    return target
  }

  mutating func removeAll() {
    usedChunks = 0
    position = Self.chunkSize
  }

  private mutating func startChunk() {
    if usedChunks == chunks.count {
      chunks.append(.allocate(byteCount: Self.chunkSize, alignment: Self.alignment))
    }
    usedChunks += 1
    position = 0
  }
}
