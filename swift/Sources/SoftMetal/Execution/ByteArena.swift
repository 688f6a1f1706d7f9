/// Copies of small pieces of memory, at addresses that stay.
struct ByteArena: ~Copyable {
  private static let chunkSize = 64 * 1024
  /// Bytes; more than any MSL type needs.
  private static let alignment = 64

  private var chunks: ContiguousArray<UnsafeMutableRawPointer> = []
  private var next = UnsafeMutableRawPointer(bitPattern: 0)
  private var available = 0

  deinit {
    for chunk in chunks { chunk.deallocate() }
  }

  /// - Parameter length: bytes, at most a chunk.
  mutating func copy(_ bytes: UnsafeRawPointer, length: Int) -> UnsafeMutableRawPointer {
    let size = (length + Self.alignment - 1) & ~(Self.alignment - 1)
    let target = next.flatMap { size <= available ? $0 : nil } ?? addChunk()
    target.copyMemory(from: bytes, byteCount: length)
    next = target + size
    available -= size
    return target
  }

  private mutating func addChunk() -> UnsafeMutableRawPointer {
    let chunk = UnsafeMutableRawPointer.allocate(byteCount: Self.chunkSize, alignment: Self.alignment)
    chunks.append(chunk)
    available = Self.chunkSize
    return chunk
  }
}
