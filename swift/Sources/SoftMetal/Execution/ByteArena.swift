/// Copies of small pieces of memory, at addresses that stay.
///
/// A device with memory of its own has them there: every kernel reads its parameters, and for a GPU the memory of the
/// process is a microsecond and more away.
///
/// One owner has it, and ends it by `deallocate`. It has no `deinit`: where a class has a struct that cannot be copied,
/// Swift 6.0.3 may end it at a mutating call, as `-enforce-exclusivity=unchecked` shows.
struct ByteArena {
  private static let chunkSize = 64 * 1024
  /// Bytes; more than any MSL type needs.
  private static let alignment = 64

  private struct Chunk {
    let memory: UnsafeMutableRawPointer
    /// Where the device finds it.
    let deviceMemory: UnsafeMutableRawPointer
  }

  /// Copies that a device with memory of its own has to take there.
  struct Upload {
    let source: UnsafeRawPointer
    let target: UnsafeMutableRawPointer
    /// Bytes.
    let length: Int
  }

  private let mapping: (any MemoryMapping)?

  private var chunks: ContiguousArray<Chunk> = []
  /// Chunks with copies in them; the last of them is being filled.
  private var usedChunks = 0
  /// Bytes used of the chunk being filled.
  private var position = ByteArena.chunkSize

  /// - Parameter mapping: of the device that reads the copies; nil where it shares the memory of the process.
  init(_ mapping: (any MemoryMapping)? = nil) {
    self.mapping = mapping
  }

  func deallocate() {
    for chunk in chunks {
      guard let mapping else {
        chunk.memory.deallocate()
        continue
      }
      mapping.deallocate(chunk.deviceMemory)
      mapping.unmap(chunk.memory) { chunk.memory.deallocate() }
    }
  }

  /// Bytes.
  var capacity: Int { chunks.count * Self.chunkSize }

  /// All copies there are; none where the device reads them where they are.
  var uploads: [Upload] {
    guard mapping != nil else { return [] }
    return chunks.prefix(usedChunks).enumerated().map { index, chunk in
      Upload(
        source: UnsafeRawPointer(chunk.memory), target: chunk.deviceMemory,
        length: index == usedChunks - 1 ? position : Self.chunkSize)
    }
  }

  /// - Parameter length: bytes, at most a chunk.
  /// - Returns: where the device finds the copy; nil where it has no room.
  mutating func copy(_ bytes: UnsafeRawPointer, length: Int) -> UnsafeMutableRawPointer? {
    let size = (length + Self.alignment - 1) & ~(Self.alignment - 1)
    if position + size > Self.chunkSize, !startChunk() { return nil }
    let (chunk, offset) = (chunks[usedChunks - 1], position)
    (chunk.memory + offset).copyMemory(from: bytes, byteCount: length)
    position += size
    return chunk.deviceMemory + offset
  }

  mutating func removeAll() {
    usedChunks = 0
    position = Self.chunkSize
  }

  private mutating func startChunk() -> Bool {
    if usedChunks == chunks.count {
      guard let chunk = makeChunk() else { return false }
      chunks.append(chunk)
    }
    usedChunks += 1
    position = 0
    return true
  }

  private func makeChunk() -> Chunk? {
    // Of whole pages where they are mapped, so that each page is mapped once.
    let alignment = mapping == nil ? Self.alignment : Processor.pageSize
    let memory = UnsafeMutableRawPointer.allocate(byteCount: Self.chunkSize, alignment: alignment)
    guard let mapping else { return Chunk(memory: memory, deviceMemory: memory) }
    guard mapping.map(memory, size: Self.chunkSize) else {
      memory.deallocate()
      return nil
    }
    guard let deviceMemory = mapping.allocate(length: Self.chunkSize, isZeroed: false) else {
      mapping.unmap(memory) { memory.deallocate() }
      return nil
    }
    return Chunk(memory: memory, deviceMemory: deviceMemory)
  }
}
