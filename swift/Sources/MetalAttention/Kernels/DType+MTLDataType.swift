extension DType {
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
