/// The value of a function constant.
struct ConstantValue: Hashable, Sendable {
  /// The MSL type, by its shortest name, such as `bool`, `uint`, `half` or
  /// `float4`. Empty: only the size is checked.
  let typeName: String
  /// The value's bytes, as the shader stores them.
  let bytes: [UInt8]

  /// The shortest name of a type as a shader writes it; nil for a type that is
  /// not built in, such as an enumeration.
  static func shortName(ofType text: String) -> String? {
    let words = text.split(separator: " ").filter { $0 != "metal" && $0 != "::" }
    if words.count == 6, words[0] == "vec", let scalar = scalarNames[String(words[2])] { return scalar + words[4] }
    let name = words.joined(separator: " ")
    if let scalar = scalarNames[name] { return scalar }
    return VectorTypes.builtIn.contains(name) && name != "vec" ? name : nil
  }

  private static let scalarNames: [String: String] = [
    "bool": "bool", "half": "half", "float": "float", "bfloat": "bfloat",
    "char": "char", "signed char": "char", "int8_t": "char",
    "uchar": "uchar", "unsigned char": "uchar", "uint8_t": "uchar",
    "short": "short", "int16_t": "short",
    "ushort": "ushort", "unsigned short": "ushort", "uint16_t": "ushort",
    "int": "int", "signed": "int", "signed int": "int", "int32_t": "int",
    "uint": "uint", "unsigned": "uint", "unsigned int": "uint", "uint32_t": "uint",
    "long": "long", "int64_t": "long", "ptrdiff_t": "long",
    "ulong": "ulong", "unsigned long": "ulong", "uint64_t": "ulong", "size_t": "ulong",
  ]
}
