import ArgumentParser
import CMetalAttention

/// A function constant as given on the command line: `INDEX=TYPE:VALUE`.
struct ConstantArgument: ExpressibleByArgument {
  let constant: MAConstant

  init?(argument: String) {
    let sides = argument.split(separator: "=", maxSplits: 1)
    guard sides.count == 2, let index = UInt32(sides[0]) else { return nil }
    let parts = sides[1].split(separator: ":", maxSplits: 1)
    guard parts.count == 2, let (dtype, bytes) = Self.encode(type: parts[0], value: parts[1]) else { return nil }

    var constant = MAConstant()
    constant.index = index
    constant.dtype = UInt32(dtype)
    withUnsafeMutableBytes(of: &constant.value) { $0.copyBytes(from: bytes) }
    self.constant = constant
  }

  /// The element type, and the value's bytes, first byte first.
  private static func encode(type: Substring, value: Substring) -> (Int, [UInt8])? {
    switch type {
    case "bool": Bool(String(value)).map { (MA_DTYPE_BOOL, [$0 ? 1 : 0]) }
    case "u8": UInt8(value).map { (MA_DTYPE_U8, [$0]) }
    case "i8": Int8(value).map { (MA_DTYPE_I8, [UInt8(bitPattern: $0)]) }
    case "u32": UInt32(value).map { (MA_DTYPE_U32, bytes($0)) }
    case "i32": Int32(value).map { (MA_DTYPE_I32, bytes(UInt32(bitPattern: $0))) }
    case "f32": Float(value).map { (MA_DTYPE_F32, bytes($0.bitPattern)) }
    default: nil
    }
  }

  private static func bytes(_ value: UInt32) -> [UInt8] {
    withUnsafeBytes(of: value.littleEndian) { Array($0) }
  }
}
