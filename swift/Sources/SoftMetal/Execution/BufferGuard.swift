import Glibc

/// Zones of a known pattern before and after a buffer, for finding kernels that
/// leave it: what they write changes the pattern, what they read there is not
/// a number in f32, f16 and bf16.
struct BufferGuard {
  /// Bytes in front of the buffer, and at least as many behind it. A page, so
  /// that the buffer begins at one.
  static let zoneLength = Processor.pageSize

  /// The pattern, longer than any zone. Its first byte belongs to an even
  /// offset from the start of a buffer, where elements begin.
  private static let pattern = {
    let words = 0..<zoneLength + 1
    let pattern = UnsafeMutablePointer<UInt16>.allocate(capacity: words.count)
    pattern.initialize(repeating: 0x7FA5, count: words.count)
    return UnsafeRawPointer(pattern)
  }()

  private let start: UnsafeMutableRawPointer
  private let length: Int
  /// Bytes behind the buffer, to the end of the last page.
  private let endLength: Int

  /// Lays the zones around `length` bytes at `start`.
  init(around start: UnsafeMutableRawPointer, length: Int) {
    self.start = start
    self.length = length
    endLength = DeviceMemory.roundedToPages(length) - length + Self.zoneLength
    lay()
  }

  /// What was written outside since the last call; nil when nothing was.
  func takeViolation() -> String? {
    for zone in zones where memcmp(start + zone.lowerBound, Self.pattern(at: zone), zone.count) != 0 {
      let expected = Self.pattern(at: zone)
      let touched = zone.first { position in
        start.load(fromByteOffset: position, as: UInt8.self)
          != expected.load(fromByteOffset: position - zone.lowerBound, as: UInt8.self)
      }
      guard let touched else { continue }
      lay()
      let place = touched < 0 ? "\(-touched) bytes before its start" : "\(touched - length) bytes behind its end"
      return "a buffer of \(length) bytes was left: byte \(touched), \(place), was written"
    }
    return nil
  }

  private func lay() {
    for zone in zones { (start + zone.lowerBound).copyMemory(from: Self.pattern(at: zone), byteCount: zone.count) }
  }

  /// Offsets from the start of the buffer.
  private var zones: [Range<Int>] { [-Self.zoneLength..<0, length..<length + endLength] }

  private static func pattern(at zone: Range<Int>) -> UnsafeRawPointer {
    pattern + (zone.lowerBound & 1)
  }
}
