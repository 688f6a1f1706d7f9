/// The type of a function constant's components: one of a tensor's, or an
/// integer of 16 or 64 bits.
enum ConstantType: UInt32, CaseIterable {
  case f32 = 1
  case f16 = 2
  case bf16 = 3
  case u8 = 4
  case i8 = 5
  case u32 = 6
  case i32 = 7
  case bool = 8
  case i16 = 9
  case u16 = 10
  case i64 = 11
  case u64 = 12

  /// Bytes of a component.
  var size: Int {
    switch self {
    case .u8, .i8, .bool: 1
    case .f16, .bf16, .i16, .u16: 2
    case .f32, .u32, .i32: 4
    case .i64, .u64: 8
    }
  }

  /// Metal's types of 1 to 4 components.
  var metalTypes: [MTLDataType] {
    switch self {
    case .bool: [.bool, .bool2, .bool3, .bool4]
    case .u8: [.uchar, .uchar2, .uchar3, .uchar4]
    case .i8: [.char, .char2, .char3, .char4]
    case .u16: [.ushort, .ushort2, .ushort3, .ushort4]
    case .i16: [.short, .short2, .short3, .short4]
    case .u32: [.uint, .uint2, .uint3, .uint4]
    case .i32: [.int, .int2, .int3, .int4]
    case .u64: [.ulong, .ulong2, .ulong3, .ulong4]
    case .i64: [.long, .long2, .long3, .long4]
    case .f32: [.float, .float2, .float3, .float4]
    case .f16: [.half, .half2, .half3, .half4]
    case .bf16: [.bfloat, .bfloat2, .bfloat3, .bfloat4]
    }
  }
}
