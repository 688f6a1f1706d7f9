import CMetalAttention

/// The layout of every struct that crosses the C ABI or reaches a shader.
enum LayoutTable {
  /// The JSON that `ma_layout_json` documents.
  static let json = JSON.object([
    ("abiVersion", "\(MA_ABI_VERSION)"),
    ("structs", JSON.array(structs.map(\.json))),
  ])

  static func find(_ name: String) throws(StatusError) -> StructLayout {
    guard let layout = structs.first(where: { $0.name == name }) else {
      throw StatusError(
        StatusCode.invalidArgument,
        "\(arg: "structName") is \(name); known: \(structs.map(\.name).joined(separator: ", "))")
    }
    return layout
  }
}
