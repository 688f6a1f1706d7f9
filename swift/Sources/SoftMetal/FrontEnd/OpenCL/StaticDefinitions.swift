/// Definitions of static constants outside of their class. C++ for OpenCL wants every constant of the program to have a
/// value where it is declared: one that is given outside goes into the class.
enum StaticDefinitions {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for declaration in context.declarations where declaration.kind == .variable {
      guard list.text(declaration.nameToken - 1) == "::" else { continue }
      let rest = span(declaration.nameToken, declaration.tokens.upperBound - 1)
      if let start = rest.first(where: { ["=", "{"].contains(list.text($0)) }),
        let (member, end) = member(declaration, list)
      {
        let value = list.joined(span(start, rest.upperBound))
        context.insert("inline ", before: member)
        context.insert(" \(value)", before: end)
      } else if rest.contains(where: { ["=", "{"].contains(list.text($0)) }) {
        continue
      }
      context.blank(declaration.tokens)
    }
  }

  /// The declaration in the class without a value: its first token and its semicolon.
  private static func member(_ declaration: Declaration, _ list: TokenList) -> (Int, Int)? {
    var name = declaration.nameToken - 2
    if list.text(name) == ">", let open = list.openingAngle(name) { name = open - 1 }
    guard let definition = ClassDefinition.all(list).first(where: { $0.name == list.text(name) }) else { return nil }
    for token in span(definition.open + 1, definition.close) where list.text(token) == declaration.name {
      var start = token
      while start > definition.open + 1, ![";", "{", "}", ":"].contains(list.text(start - 1)) { start -= 1 }
      let end = list.statementEnd(token)
      let hasValue = span(token, end).contains { ["=", "{", "("].contains(list.text($0)) }
      if span(start, token).contains(where: { list.text($0) == "static" }), !hasValue { return (start, end) }
    }
    return nil
  }
}
