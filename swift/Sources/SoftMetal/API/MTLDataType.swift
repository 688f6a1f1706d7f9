/// The scalar and vector types of the Metal Shading Language.
public enum MTLDataType: UInt, Sendable {
  case none = 0
  case float = 3
  case float2 = 4
  case float3 = 5
  case float4 = 6
  case half = 16
  case half2 = 17
  case half3 = 18
  case half4 = 19
  case int = 29
  case int2 = 30
  case int3 = 31
  case int4 = 32
  case uint = 33
  case uint2 = 34
  case uint3 = 35
  case uint4 = 36
  case short = 37
  case short2 = 38
  case short3 = 39
  case short4 = 40
  case ushort = 41
  case ushort2 = 42
  case ushort3 = 43
  case ushort4 = 44
  case char = 45
  case char2 = 46
  case char3 = 47
  case char4 = 48
  case uchar = 49
  case uchar2 = 50
  case uchar3 = 51
  case uchar4 = 52
  case bool = 53
  case bool2 = 54
  case bool3 = 55
  case bool4 = 56
  case long = 81
  case long2 = 82
  case long3 = 83
  case long4 = 84
  case ulong = 85
  case ulong2 = 86
  case ulong3 = 87
  case ulong4 = 88
  case bfloat = 121
  case bfloat2 = 122
  case bfloat3 = 123
  case bfloat4 = 124
}

extension MTLDataType {
  /// Bytes of a value in memory; three components take the place of four.
  var size: Int {
    let (scalar, components) = parts
    return scalar.scalarSize * (components == 3 ? 4 : components)
  }

  /// The type as a shader writes it.
  var shaderName: String { self == .none ? "" : "\(self)" }

  /// The type that a shader writes as `name`; `none` for one that is not built in.
  init(shaderName name: String) {
    let last: UInt = 124
    self = (0...last).lazy.compactMap(MTLDataType.init).first { $0.shaderName == name } ?? .none
  }

  private static let scalars: [MTLDataType] = [
    .float, .half, .int, .uint, .short, .ushort, .char, .uchar, .bool, .long, .ulong, .bfloat,
  ]

  /// The vectors of 2 to 4 components follow their scalar.
  private var parts: (scalar: MTLDataType, components: Int) {
    for scalar in Self.scalars where rawValue >= scalar.rawValue && rawValue < scalar.rawValue + 4 {
      return (scalar, Int(rawValue - scalar.rawValue) + 1)
    }
    return (self, 1)
  }

  private var scalarSize: Int {
    switch self {
    case .bool, .char, .uchar: 1
    case .half, .bfloat, .short, .ushort: 2
    case .float, .int, .uint: 4
    case .long, .ulong: 8
    default: 0
    }
  }
}
