/// A field of a C struct as this module's compiler laid it out.
struct LayoutField {
  let name: String
  /// Bytes from the start of the struct.
  let offset: Int
  /// Bytes, all elements together.
  let size: Int
  let type: LayoutType
  /// Array length; 1 for a scalar.
  let count: Int
}
