/// Reads fields out of a struct's bytes by the compiled layout.
enum LayoutReader {
  enum Value {
    case integer(Int64)
    case real(Double)
  }

  /// - Parameter path: a field, or fields of nested structs joined by dots.
  static func read(
    _ path: String, element: UInt32, of layout: StructLayout, from bytes: UnsafeRawBufferPointer
  ) throws(StatusError) -> Value {
    try require(
      bytes.count >= layout.size, StatusCode.bufferTooSmall,
      "\(arg: "length") is \(bytes.count) bytes; \(layout.name) has \(layout.size)")
    let (name, rest) = split(path)
    guard let field = layout.fields.first(where: { $0.name == name }) else {
      throw StatusError(
        StatusCode.invalidArgument,
        "\(arg: "field") is \(name); \(layout.name) has \(layout.fields.map(\.name).joined(separator: ", "))")
    }
    if case .structure(let nested) = field.type {
      let inner = UnsafeRawBufferPointer(rebasing: bytes[field.offset..<(field.offset + field.size)])
      return try read(rest ?? "", element: element, of: LayoutTable.find(nested), from: inner)
    }
    try require(
      rest == nil, StatusCode.invalidArgument,
      "\(arg: "field") \(name) of \(layout.name) is \(field.type.name), not a struct")
    try require(
      element < field.count, StatusCode.invalidArgument,
      "\(arg: "element") is \(element); \(layout.name).\(name) has \(field.count)")
    return value(field.type, at: field.offset + Int(element) * (field.size / field.count), in: bytes)
  }

  private static func split(_ path: String) -> (String, String?) {
    guard let dot = path.firstIndex(of: ".") else { return (path, nil) }
    return (String(path[..<dot]), String(path[path.index(after: dot)...]))
  }

  private static func value(_ type: LayoutType, at offset: Int, in bytes: UnsafeRawBufferPointer) -> Value {
    func load<Number: BitwiseCopyable>(_: Number.Type) -> Number {
      bytes.loadUnaligned(fromByteOffset: offset, as: Number.self)
    }
    return switch type {
    case .u8: .integer(Int64(load(UInt8.self)))
    case .char: .integer(Int64(load(Int8.self)))
    case .u32: .integer(Int64(load(UInt32.self)))
    case .i32: .integer(Int64(load(Int32.self)))
    case .i64: .integer(load(Int64.self))
    // Above 2^63 the integer is the two's complement of the bits.
    case .u64, .pointer, .structure: .integer(Int64(bitPattern: load(UInt64.self)))
    case .f32: .real(Double(load(Float.self)))
    case .f64: .real(load(Double.self))
    }
  }
}
