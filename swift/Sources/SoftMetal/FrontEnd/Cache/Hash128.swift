/// A fast 128-bit hash, good against accidents, not against an attacker.
///
/// Two independent lanes multiply and fold each 8-byte word to 128 bits, as
/// wyhash does.
struct Hash128: Hashable {
  private var low: UInt64 = 0x9E37_79B9_7F4A_7C15
  private var high: UInt64 = 0xD1B5_4A32_D192_ED03

  mutating func combine(_ bytes: UnsafeRawBufferPointer) {
    combine(UInt64(bytes.count))
    var offset = 0
    while offset + 8 <= bytes.count {
      combine(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset += 8
    }
    var rest: UInt64 = 0
    while offset < bytes.count {
      rest = rest << 8 | UInt64(bytes[offset])
      offset += 1
    }
    combine(rest)
  }

  mutating func combine(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { combine($0) }
  }

  mutating func combine(_ text: String) {
    var text = text
    text.withUTF8 { combine(UnsafeRawBufferPointer($0)) }
  }

  mutating func combine(_ word: UInt64) {
    low = Self.fold(low ^ word, 0xA076_1D64_78BD_642F) &+ 0x8EBC_6AF0_9C88_C6E3
    high = Self.fold(high &+ word, 0xE703_7ED1_A0B4_28DB) ^ 0x5895_63A1_9F2B_7C4D
  }

  private static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let product = a.multipliedFullWidth(by: b)
    return product.high ^ product.low
  }

  /// The two halves after a last mix.
  var words: (UInt64, UInt64) {
    (
      Self.fold(low ^ 0x5895_63A1_9F2B_7C4D, high | 1),
      Self.fold(high ^ 0x1D8E_4E27_C47D_124F, low | 1)
    )
  }

  /// 32 hexadecimal digits.
  var name: String {
    let (first, second) = words
    return Self.hexadecimal(first) + Self.hexadecimal(second)
  }

  private static func hexadecimal(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }
}
