import Glibc

/// The files of a tar archive (POSIX ustar, short names) by name, in memory that
/// is only read and stays.
struct TarArchive: @unchecked Sendable {
  private static let blockSize = 512
  private let bytes: UnsafeRawBufferPointer
  private var places: [String: Range<Int>] = [:]

  /// Maps the archive into memory for good; nil where it cannot be read.
  init?(path: String) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_size > 0,
      let start = mmap(nil, Int(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0), start != MAP_FAILED
    else { return nil }
    self.init(UnsafeRawBufferPointer(start: start, count: Int(status.st_size)))
  }

  /// What is no archive has no files; one that is cut has those before the cut.
  init(_ bytes: UnsafeRawBufferPointer) {
    self.bytes = bytes
    var offset = 0
    while bytes.count - offset >= Self.blockSize {
      let header = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + Self.blockSize])
      guard Self.text(header[257..<262]) == "ustar", let size = Int(Self.text(header[124..<136]), radix: 8),
        size >= 0, size <= bytes.count - offset - Self.blockSize
      else { return }
      let start = offset + Self.blockSize
      let isFile = header[156] == UInt8(ascii: "0")
      if isFile { places[Self.text(header[0..<100])] = start..<start + size }
      offset = start + (size + Self.blockSize - 1) / Self.blockSize * Self.blockSize
    }
  }

  var names: some Collection<String> { places.keys }

  subscript(name: String) -> [UInt8]? {
    places[name].map { Array(bytes[$0]) }
  }

  /// A field, which a NUL or a space ends where it is not full.
  private static func text(_ field: Slice<UnsafeRawBufferPointer>) -> String {
    String(decoding: field.prefix { $0 != 0 && $0 != UInt8(ascii: " ") }, as: UTF8.self)
  }
}
