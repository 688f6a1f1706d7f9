/// The file format of a compiled shader.
///
///     offset  size
///          0     8  magic
///          8     8  bytes of metadata
///         16     8  bytes of object
///         24    16  hash of everything that follows
///         40        metadata, then the ELF object
///
/// Metadata is text: a line with the number of names, then one name a line, a
/// line with `whyThreads`, and the rest is the log. Numbers are little-endian.
enum CacheEntry {
  private static let magic: UInt64 = 0x3330_5253_544D_4653
  private static let headerSize = 40

  /// What is kept beside the object.
  struct Metadata {
    var functionNames: [String]
    /// Why kernels whose lanes work together run one thread at a time; empty where they do not.
    var whyThreads = ""
    var log: String
  }

  typealias Content = (metadata: Metadata, object: [UInt8])

  static func encode(_ metadata: Metadata, object: [UInt8]) -> [UInt8] {
    let payload = encode(metadata)
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headerSize + payload.count + object.count)
    for word in [magic, UInt64(payload.count), UInt64(object.count), 0, 0] { append(word, to: &bytes) }
    bytes += payload
    bytes += object
    let (first, second) = checksum(bytes)
    var sum: [UInt8] = []
    append(first, to: &sum)
    append(second, to: &sum)
    bytes.replaceSubrange(24..<40, with: sum)
    return bytes
  }

  /// Nil for a file that is truncated, corrupted or of another format.
  static func decode(_ bytes: [UInt8]) -> Content? {
    guard bytes.count >= headerSize, word(bytes, 0) == magic else { return nil }
    let (total, overflow) = word(bytes, 8).addingReportingOverflow(word(bytes, 16))
    guard !overflow, total == UInt64(bytes.count - headerSize) else { return nil }
    let (first, second) = checksum(bytes)
    guard word(bytes, 24) == first, word(bytes, 32) == second else { return nil }
    let objectStart = headerSize + Int(word(bytes, 8))
    guard let metadata = decodeMetadata(bytes[headerSize..<objectStart]) else { return nil }
    return (metadata, Array(bytes[objectStart...]))
  }

  private static func checksum(_ bytes: [UInt8]) -> (UInt64, UInt64) {
    var hash = Hash128()
    bytes.withUnsafeBytes { hash.combine(UnsafeRawBufferPointer(rebasing: $0[headerSize...])) }
    return hash.words
  }

  private static func append(_ word: UInt64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: word.littleEndian) { bytes += $0 }
  }

  private static func word(_ bytes: [UInt8], _ offset: Int) -> UInt64 {
    bytes.withUnsafeBytes { UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
  }

  private static func encode(_ metadata: Metadata) -> [UInt8] {
    let names = metadata.functionNames
    return Array(
      ("\(names.count)\n" + names.map { $0 + "\n" }.joined() + metadata.whyThreads + "\n" + metadata.log).utf8)
  }

  private static func decodeMetadata(_ bytes: ArraySlice<UInt8>) -> Metadata? {
    var rest = bytes
    func line() -> String? {
      guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      defer { rest = rest[(end + 1)...] }
      return String(decoding: rest[..<end], as: UTF8.self)
    }
    guard let text = line(), let count = Int(text), count >= 0 else { return nil }
    var functions: [String] = []
    for _ in 0..<count {
      guard let name = line() else { return nil }
      functions.append(name)
    }
    guard let whyThreads = line() else { return nil }
    return Metadata(functionNames: functions, whyThreads: whyThreads, log: String(decoding: rest, as: UTF8.self))
  }
}
