/// An element type, `MA_DTYPE_*`.
enum DType: UInt32, CaseIterable {
  case f32 = 1
  case f16 = 2
  case bf16 = 3
  case u8 = 4
  case i8 = 5
  case u32 = 6
  case i32 = 7
  case bool = 8
  // Of function constants alone.
  case i16 = 9
  case u16 = 10
  case i64 = 11
  case u64 = 12

  /// Whether a tensor may have it.
  @inline(__always)
  var isOfTensors: Bool { rawValue <= DType.bool.rawValue }

  /// Bytes of an element.
  @inline(__always)
  var size: UInt32 {
    switch self {
    case .u8, .i8, .bool: 1
    case .f16, .bf16, .i16, .u16: 2
    case .f32, .u32, .i32: 4
    case .i64, .u64: 8
    }
  }
}
