/// Lets packed three-component vectors outside of thread memory become vectors.
///
/// Their conversion is a member function, which clang calls on thread objects
/// only. So in `float3 v = place;`, `v = place;` and `return place;` a place
/// becomes `SM_VALUE(place)`, of which the headers make a copy where its type asks
/// for one. Sources without packed vectors stay as they are.
enum PackedLoads {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    guard list.indices.contains(where: { isPacked(list.text($0)) }) else { return }
    for declaration in context.declarations where declaration.kind == .function || declaration.kind == .type {
      for token in declaration.tokens where takesValue(token, in: declaration, list) {
        let start = token + 1
        guard isPlace(start, list), let end = list.operandEnd(start), [";", ","].contains(list.text(end)) else {
          continue
        }
        context.insert("SM_VALUE(", before: start)
        context.insert(")", after: end - 1)
      }
    }
  }

  private static func isPacked(_ word: String) -> Bool {
    word.hasPrefix("packed_") && word.hasSuffix("3")
  }

  /// Whether what follows `token` is copied: not for a reference, which keeps its address space.
  private static func takesValue(_ token: Int, in declaration: Declaration, _ list: TokenList) -> Bool {
    switch list.text(token) {
    case "=": return list.text(token - 1) != "operator" && list.text(token - 2) != "&"
    case "return":
      guard declaration.kind == .function else { return false }
      return !span(declaration.headStart, declaration.nameToken).contains { list.text($0) == "&" }
    default: return false
    }
  }

  /// Whether an operand at `token` may name an object: no literal, no keyword, no cast.
  private static func isPlace(_ token: Int, _ list: TokenList) -> Bool {
    if list.text(token) == "*" { return true }
    return list.isIdentifier(token) && ["[", ".", "->"].contains(list.text(token + 1))
  }
}
