/// Has clang refuse the initialisers of constants that are no constant
/// expressions: those that call functions or constructors, and all of static variables.
///
/// Others stay as they are, since conversions of vectors are constant in Metal
/// and not for clang, which settles them when it optimises.
enum ConstantInitialisers {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let vectors = VectorTypes(list)
    let types = VectorTypes.scalars.union(VectorTypes.builtIn).union(vectors.aliases)
      .union(TemplateParameter.types(of: list))
    for declaration in context.declarations {
      if declaration.kind == .variable, declaration.attribute("function_constant") == nil {
        let calls = span(declaration.nameToken, declaration.tokens.upperBound).contains { isCall($0, list, types) }
        if calls { require(before: declaration.headStart, &context) }
      } else if let body = declaration.body {
        for token in body where list.text(token) == "static" { require(before: token, &context) }
      }
    }
  }

  private static func require(before token: Int, _ context: inout LoweringContext) {
    context.insert("[[clang::require_constant_initialization]] ", before: token)
  }

  private static let operators: Set<String> = ["sizeof", "alignof", "decltype", "static_cast", "alignas"]

  /// Whether a function is called by the name at `token`, which is no vector type's.
  private static func isCall(_ token: Int, _ list: TokenList, _ types: Set<String>) -> Bool {
    guard list.isIdentifier(token), !types.contains(list.text(token)), !operators.contains(list.text(token)) else {
      return false
    }
    var open = token + 1
    if list.text(open) == "<", let close = list.closingAngle(open) { open = close + 1 }
    return list.text(open) == "("
  }
}
