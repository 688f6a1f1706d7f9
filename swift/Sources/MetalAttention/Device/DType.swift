extension DType {
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
