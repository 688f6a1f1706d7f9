/// A version of the Metal Shading Language: the major number in the high 16
/// bits, the minor one in the low.
public enum MTLLanguageVersion: UInt, Sendable {
  case version2_4 = 0x2_0004
  case version3_0 = 0x3_0000
  /// Has `bfloat`; macOS 14.
  case version3_1 = 0x3_0001
}
