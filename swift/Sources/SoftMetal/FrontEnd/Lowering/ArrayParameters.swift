/// Writes parameters that are arrays in an address space as the pointers that
/// they are: `constant int shape[3]` becomes `constant int *shape`, which clang
/// does not do by itself where the elements have an address space.
enum ArrayParameters {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices where list.isIdentifier(token) && list.text(token + 1) == "[" {
      // An attribute is no bound.
      guard list.text(token + 2) != "[" else { continue }
      guard isParameter(token, list) else { continue }
      let second = list.after(token + 1)
      context.blank(token + 1..<second)
      if list.text(second) == "[", list.text(second + 1) != "[" {
        // The further dimensions stay part of what the pointer points to.
        context.wrap(token..<token + 1, "(*", ")")
      } else {
        context.insert("*", before: token)
      }
    }
  }

  /// Whether the name at `token` declares a parameter whose elements lie in an address space.
  private static func isParameter(_ token: Int, _ list: TokenList) -> Bool {
    var end = token + 1
    while list.text(end) == "[", list.text(end + 1) != "[" { end = list.after(end) }
    guard [",", ")"].contains(list.text(end)) || Attribute.isListStart(end, of: list) else { return false }
    var position = token - 1
    var hasSpace = false
    var isTyped = false
    while position >= 0, !["(", ","].contains(list.text(position)) {
      if list.text(position) == ">" {
        guard let open = list.openingAngle(position) else { return false }
        position = open - 1
        continue
      }
      guard list.isIdentifier(position) || list.text(position) == "::" else { return false }
      if AddressSpace.qualified.contains(list.text(position)) { hasSpace = true } else { isTyped = true }
      position -= 1
    }
    return position >= 0 && hasSpace && isTyped
  }
}
