/// The value of a function constant.
struct ConstantValue: Hashable, Sendable {
  /// The MSL type, by its shortest name, such as `bool`, `uint`, `half` or
  /// `float4`. Empty: only the size is checked.
  let typeName: String
  /// The value's bytes, as the shader stores them.
  let bytes: [UInt8]
}
