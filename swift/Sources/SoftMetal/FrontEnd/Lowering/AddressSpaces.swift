/// Refuses what Metal's address spaces forbid and clang, for which thread memory
/// has no qualifier, would accept: pointers and references without an address
/// space, variables at program scope outside of `constant`, static variables,
/// constants that a call initialises, and pointers to functions.
struct AddressSpaces {
  private let list: TokenList
  private let types: Set<String>
  private let macros: Set<String>

  static func check(_ context: inout LoweringContext) {
    let spaces = AddressSpaces(context)
    let parameters = context.declarations.filter { Kernels.isKernel($0, context.list) }.map(\.parameters)
    // A function as a template's argument is known when the template is compiled.
    let templates = TemplateParameter.lists(of: context.list)
    for token in context.list.indices {
      // The arguments of kernels are checked with their attributes.
      if let message = spaces.pointerMessage(at: token), !parameters.contains(where: { $0.contains(token) }) {
        context.report(message.text, at: message.token)
      }
      if let name = spaces.functionPointer(at: token), !templates.contains(where: { $0.contains(token) }) {
        context.report("function pointers are not supported in Metal", at: name)
      }
    }
    let functions = Set(context.declarations.filter { spaces.isRunTimeFunction($0) }.map(\.name))
    for declaration in context.declarations {
      spaces.checkVariable(declaration, functions, &context)
      spaces.checkStatics(declaration, &context)
    }
  }

  private init(_ context: LoweringContext) {
    list = context.list
    macros = Set(context.macros.map(\.name))
    var types = VectorTypes.builtIn.union(VectorTypes.components)
    for declaration in context.declarations where declaration.kind == .type { types.insert(declaration.name) }
    self.types = types
  }

  private static let spaces: Set<String> = ["device", "constant", "threadgroup", "thread"]
  private static let qualifiers: Set<String> = [
    "const", "volatile", "struct", "typename", "constexpr", "static", "inline",
  ]

  // MARK: Pointers and references

  /// The error of a declarator of pointer or reference type that begins with the type at `token`.
  private func pointerMessage(at token: Int) -> (text: String, token: Int)? {
    guard types.contains(list.text(token)) else { return nil }
    var sign = token + 1
    if list.text(sign) == "<" {
      guard let close = list.closingAngle(sign) else { return nil }
      sign = close + 1
    }
    while Self.qualifiers.contains(list.text(sign)) { sign += 1 }
    guard list.text(sign) == "*" || list.text(sign) == "&" else { return nil }
    var name = sign + 1
    while list.text(name) == "*" || Self.qualifiers.contains(list.text(name)) { name += 1 }
    guard list.isIdentifier(name), !Self.spaces.contains(list.text(name)) else { return nil }
    var start = token
    while Self.qualifiers.contains(list.text(start - 1)) || list.text(start - 1) == "::" {
      start -= list.text(start - 1) == "::" ? 2 : 1
    }
    let before = list.text(start - 1)
    // A macro may stand for the address space.
    guard !Self.spaces.contains(before), !macros.contains(before), before != "new" else { return nil }
    let kind = list.text(sign) == "*" ? "pointer" : "reference"
    return ("\(kind) type must have an explicit address space qualifier", name)
  }

  /// Words before a parenthesis that are no type.
  private static let statements: Set<String> = [
    "return", "sizeof", "if", "for", "while", "switch", "else", "do", "decltype",
  ]

  /// The name in `type (*name)(...)` at the parenthesis, or nil. A typedef has no pointer yet.
  private func functionPointer(at token: Int) -> Int? {
    guard list.text(token) == "(", list.text(token + 1) == "*", list.isIdentifier(token + 2),
      list.text(token + 3) == ")", list.text(token + 4) == "(", list.isIdentifier(token - 1)
    else { return nil }
    let before = list.text(token - 1)
    if Self.statements.contains(before) || macros.contains(before) { return nil }
    return list.text(token - 2) == "typedef" ? nil : token + 2
  }

  // MARK: Variables

  private func isRunTimeFunction(_ declaration: Declaration) -> Bool {
    declaration.kind == .function
      && !declaration.tokens.lazy.prefix { $0 < declaration.nameToken }.contains { list.text($0) == "constexpr" }
  }

  /// Checks a variable at program scope.
  private func checkVariable(_ declaration: Declaration, _ functions: Set<String>, _ context: inout LoweringContext) {
    guard declaration.kind == .variable, declaration.nameToken > declaration.headStart else { return }
    let words = Set(span(declaration.headStart, declaration.nameToken).map { list.text($0) })
    guard words.isDisjoint(with: macros), !words.contains("extern"), !words.contains("sampler") else { return }
    if !words.contains("constant") {
      // Threadgroup variables have an error of their own.
      if words.contains("threadgroup") { return }
      context.report("program scope variable must reside in constant address space", at: declaration.nameToken)
    } else if let equals = declaration.tokens.first(where: { list.text($0) == "=" }),
      let call = span(equals, declaration.tokens.upperBound).first(where: {
        functions.contains(list.text($0)) && list.text($0 + 1) == "("
      })
    {
      context.report(
        "initializer of '\(declaration.name)' is not a constant expression: '\(list.text(call))' is not constexpr",
        at: declaration.nameToken)
    }
  }

  private func checkStatics(_ declaration: Declaration, _ context: inout LoweringContext) {
    guard let body = declaration.body else { return }
    for token in body where list.text(token) == "static" {
      var end = token + 1
      while end < body.upperBound, !["=", ";", "(", "[", "{"].contains(list.text(end)) { end += 1 }
      let words = Set((token..<end).map { list.text($0) })
      guard list.text(end) != "(", !words.contains("constant"), words.isDisjoint(with: macros) else { continue }
      context.report("static variable must reside in constant address space", at: end - 1)
    }
  }
}
