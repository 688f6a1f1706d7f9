import ArgumentParser
import CMetalAttention

/// A function constant as given on the command line: `INDEX=TYPE:VALUE`, with
/// 2 to 4 values, separated by commas, for a vector.
struct ConstantArgument: ExpressibleByArgument {
  let constant: MAConstant

  init?(argument: String) {
    let sides = argument.split(separator: "=", maxSplits: 1)
    guard sides.count == 2, let index = UInt32(sides[0]) else { return nil }
    let parts = sides[1].split(separator: ":", maxSplits: 1)
    guard parts.count == 2 else { return nil }
    let components = parts[1].split(separator: ",", omittingEmptySubsequences: false)
    guard components.count <= 4 else { return nil }

    var constant = MAConstant()
    constant.index = index
    constant.components = UInt32(components.count)
    var bytes: [UInt8] = []
    for component in components {
      guard let (dtype, value) = Self.encode(type: parts[0], value: component) else { return nil }
      constant.dtype = UInt32(dtype)
      bytes += value
    }
    withUnsafeMutableBytes(of: &constant.value) { $0.copyBytes(from: bytes) }
    self.constant = constant
  }

  /// The element type, and the bytes of one component, first byte first.
  private static func encode(type: Substring, value: Substring) -> (Int, [UInt8])? {
    switch type {
    case "bool": bytes(MA_DTYPE_BOOL, Bool(String(value)).map { $0 ? 1 : 0 as UInt8 })
    case "u8": bytes(MA_DTYPE_U8, UInt8(value))
    case "i8": bytes(MA_DTYPE_I8, Int8(value))
    case "u16": bytes(MA_DTYPE_U16, UInt16(value))
    case "i16": bytes(MA_DTYPE_I16, Int16(value))
    case "u32": bytes(MA_DTYPE_U32, UInt32(value))
    case "i32": bytes(MA_DTYPE_I32, Int32(value))
    case "u64": bytes(MA_DTYPE_U64, UInt64(value))
    case "i64": bytes(MA_DTYPE_I64, Int64(value))
    case "f16": bytes(MA_DTYPE_F16, Float16(value)?.bitPattern)
    case "bf16": bytes(MA_DTYPE_BF16, Float(value).map(bfloat))
    case "f32": bytes(MA_DTYPE_F32, Float(value)?.bitPattern)
    default: nil
    }
  }

  private static func bytes(_ dtype: Int, _ value: (some FixedWidthInteger)?) -> (Int, [UInt8])? {
    value.map { value in (dtype, withUnsafeBytes(of: value.littleEndian) { Array($0) }) }
  }

  /// The upper half of a float, rounded to nearest even.
  private static func bfloat(_ value: Float) -> UInt16 {
    let bits = value.bitPattern
    return value.isNaN ? 0x7FC0 : UInt16((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
  }
}
