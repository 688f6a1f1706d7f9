/// `metal::half`: the types of Metal that are keywords for clang have no namespace.
enum QualifiedKeywords {
  private static let keywords: Set<String> = ["bool", "char", "short", "int", "long", "half", "float"]

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices where keywords.contains(list.text(token)) {
      guard list.text(token - 1) == "::", list.text(token - 2) == "metal" else { continue }
      context.blank((list.text(token - 3) == "::" ? token - 3 : token - 2)..<token)
    }
  }
}
