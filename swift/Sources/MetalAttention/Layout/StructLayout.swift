/// Size, alignment and fields of a C struct.
struct StructLayout {
  let name: String
  let size: Int
  let alignment: Int
  let fields: [LayoutField]

  init<Struct>(_: Struct.Type, _ fields: [LayoutField?]) {
    name = "\(Struct.self)"
    size = MemoryLayout<Struct>.size
    alignment = MemoryLayout<Struct>.alignment
    self.fields = fields.compactMap { $0 }
  }

  var json: String {
    JSON.object([
      ("name", JSON.string(name)), ("size", "\(size)"), ("alignment", "\(alignment)"),
      ("fields", JSON.array(fields.map(\.json))),
    ])
  }
}

extension LayoutField {
  /// A field at a key path. Nil for a path that is not stored in the struct.
  init?<Struct, Value>(_ name: String, _ path: KeyPath<Struct, Value>, _ type: LayoutType, count: Int = 1) {
    guard let offset = MemoryLayout<Struct>.offset(of: path) else { return nil }
    self.init(name: name, offset: offset, size: MemoryLayout<Value>.size, type: type, count: count)
  }

  fileprivate var json: String {
    JSON.object([
      ("name", JSON.string(name)), ("offset", "\(offset)"), ("size", "\(size)"), ("type", JSON.string(type.name)),
      ("count", "\(count)"),
    ])
  }
}
