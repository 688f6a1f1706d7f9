public enum MTLDataType: UInt {
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
