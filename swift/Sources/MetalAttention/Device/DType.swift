import CMetalAttention

/// The element type of a tensor.
enum DType: UInt32, CaseIterable {
  case f32 = 1
  case f16 = 2
  case bf16 = 3
  case u8 = 4
  case i8 = 5
  case u32 = 6
  case i32 = 7
  case bool = 8

  /// Bytes of an element.
  var size: UInt32 {
    switch self {
    case .f32, .u32, .i32: 4
    case .f16, .bf16: 2
    case .u8, .i8, .bool: 1
    }
  }
}
