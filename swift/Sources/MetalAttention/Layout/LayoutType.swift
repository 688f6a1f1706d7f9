/// The type of a field, or of its elements.
enum LayoutType {
  case u8, u32, u64, i32, i64, f32, f64
  /// Bytes of text.
  case char
  case pointer
  case structure(String)

  var name: String {
    switch self {
    case .structure(let name): name
    default: "\(self)"
    }
  }
}
