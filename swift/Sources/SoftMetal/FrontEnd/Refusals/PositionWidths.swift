/// Refuses kernels whose positions and sizes, as far as the text names their types, differ in their number of components.
enum PositionWidths {
  static func check(_ parameters: [(tokens: Range<Int>, attributes: [Attribute])], _ context: inout LoweringContext) {
    let list = context.list
    var first: (attribute: String, type: String, width: Int)?
    for (tokens, attributes) in parameters {
      guard let attribute = attributes.first(where: { related.contains($0.name) }),
        let (type, width) = type(of: FunctionConstants.withoutAttributes(tokens, list), list)
      else { continue }
      guard let before = first else {
        first = (attribute.name, type, width)
        continue
      }
      guard width != before.width else { continue }
      context.report(
        "attribute '\(attribute.name)' on type '\(type)', and '\(before.attribute)' on type '\(before.type)': "
          + "positions and sizes of a kernel have either all scalar types or all vector types of one width",
        at: attribute.token)
      return
    }
  }

  /// Those that may be vectors, and have to be alike.
  private static let related: Set<String> = [
    "thread_position_in_grid", "threads_per_grid", "thread_position_in_threadgroup", "threads_per_threadgroup",
    "threadgroup_position_in_grid", "threadgroups_per_grid", "dispatch_threads_per_threadgroup",
  ]

  private static let scalars: Set<String> = ["uint", "ushort", "uint32_t", "uint16_t"]

  /// Nil for a type that the text does not tell.
  private static func type(of tokens: [Int], _ list: TokenList) -> (String, Int)? {
    var words = tokens.map { list.text($0) }.filter { $0 != "const" }
    if words.starts(with: ["metal", "::"]) { words.removeFirst(2) }
    guard words.count <= 2, let type = words.first else { return nil }
    if scalars.contains(type) { return (type, 1) }
    guard let width = type.last?.wholeNumberValue, 2...3 ~= width, ["uint", "ushort"].contains(type.dropLast()) else {
      return nil
    }
    return (type, width)
  }
}
