/// The scalar types of the Metal Shading Language.
public enum MTLDataType: UInt, Sendable {
  case none = 0
  case float = 3
  case half = 16
  case int = 29
  case uint = 33
  case short = 37
  case ushort = 41
  case char = 45
  case uchar = 49
  case bool = 53
  case long = 81
  case ulong = 85
  case bfloat = 121
}

extension MTLDataType {
  /// Bytes of a value.
  var size: Int {
    switch self {
    case .none: 0
    case .bool, .char, .uchar: 1
    case .half, .bfloat, .short, .ushort: 2
    case .float, .int, .uint: 4
    case .long, .ulong: 8
    }
  }

  /// The type as a shader writes it.
  var shaderName: String { self == .none ? "" : "\(self)" }
}
