/// Refuses what Metal's address spaces forbid and clang, for which thread memory
/// has no qualifier, would accept: pointers and references without an address
/// space, variables of the program and static ones outside of `constant`.
struct AddressSpaceRefusals {
  private let list: TokenList
  private let types: TypeNames
  /// The declarations of templates.
  private let templates: [Range<Int>]

  static func check(_ context: inout LoweringContext) {
    let spaces = AddressSpaceRefusals(context)
    let parameters = context.declarations.filter { Kernels.isKernel($0, context.list) }.map(\.parameters)
    var scopes = TemplateScopes()
    for token in context.list.indices {
      scopes.advance(to: token, context.list)
      let name = context.list.text(token)
      guard spaces.types.contains(name) || scopes.contains(name), let error = spaces.pointerError(at: token) else {
        continue
      }
      // The arguments of kernels are checked with their attributes, but for what a pointer points to.
      if error.isNested || !parameters.contains(where: { $0.contains(token) }) {
        context.report(error.message, at: error.token)
      }
    }
    for declaration in context.declarations {
      spaces.checkVariable(declaration, &context)
      spaces.checkStatics(declaration, &context)
    }
  }

  private init(_ context: LoweringContext) {
    list = context.list
    types = TypeNames(context.list)
    templates = context.declarations.filter { !($0.templateParameters ?? []).isEmpty }.map(\.tokens)
  }

  private static let qualifiers: Set<String> = [
    "const", "volatile", "struct", "class", "union", "enum", "typename", "constexpr", "static", "inline", "unsigned",
    "signed", "long", "short",
  ]

  // MARK: Pointers and references

  private struct PointerError {
    let message: String
    let token: Int
    /// Whether it is about a pointer to a pointer.
    let isNested: Bool
  }

  /// The error of the pointer or reference to the type at `token`: of a declarator, or in a cast or template argument.
  private func pointerError(at token: Int) -> PointerError? {
    var sign = token + 1
    if list.text(sign) == "<" {
      guard let close = list.closingAngle(sign) else { return nil }
      sign = close + 1
    }
    while Self.qualifiers.contains(list.text(sign)) { sign += 1 }
    // `float (&name)[4]`
    if list.text(sign) == "(", list.text(sign + 1) == "&", list.text(list.after(sign)) == "[" { sign += 1 }
    guard ["*", "&", "&&"].contains(list.text(sign)) else { return nil }
    var name = sign + 1
    var isNested = false
    while ["*", "&"].contains(list.text(name)) || Self.qualifiers.contains(list.text(name)) {
      isNested = isNested || !Self.qualifiers.contains(list.text(name))
      name += 1
    }
    let isNamed = list.isIdentifier(name)
    guard isNamed || [")", ",", ">", "(", ";"].contains(list.text(name)) else { return nil }
    let hasSpace = hasSpace(before: token)
    guard !hasSpace || isNested else { return nil }
    // A template takes a reference to a pointer as it comes.
    if hasSpace, list.text(name - 1) == "&", templates.contains(where: { $0.contains(token) }) { return nil }
    let kind = list.text(sign) == "*" ? "pointer" : "reference"
    return PointerError(
      message: "\(kind) type must have an explicit address space qualifier", token: isNamed ? name : sign,
      isNested: hasSpace)
  }

  /// Whether an address space comes before the type at `token`.
  private func hasSpace(before token: Int) -> Bool {
    var start = token
    while true {
      // `typename S::template sub<M> &`
      if list.text(start - 1) == "template", list.text(start - 2) == "::" { start -= 1 }
      if list.text(start - 1) == "::" {
        start -= 1
        if list.text(start - 1) == ">", let open = list.openingAngle(start - 1) { start = open }
        if list.isIdentifier(start - 1), !AddressSpace.all.contains(list.text(start - 1)) { start -= 1 }
      } else if Self.qualifiers.contains(list.text(start - 1)) {
        start -= 1
      } else {
        break
      }
    }
    let before = list.text(start - 1)
    return AddressSpace.all.contains(before) || before == "new"
  }

  // MARK: Variables

  /// Checks a variable at program scope.
  private func checkVariable(_ declaration: Declaration, _ context: inout LoweringContext) {
    guard declaration.kind == .variable, declaration.nameToken > declaration.headStart else { return }
    let words = Set(span(declaration.headStart, declaration.nameToken).map { list.text($0) })
    guard words.isDisjoint(with: ["extern", "sampler", "constant"]) else { return }
    // Threadgroup variables have an error of their own.
    if words.contains("threadgroup") { return }
    context.report("program scope variable must reside in constant address space", at: declaration.nameToken)
  }

  /// Checks the static variables and members of a function or a type.
  private func checkStatics(_ declaration: Declaration, _ context: inout LoweringContext) {
    guard declaration.kind == .function || declaration.kind == .type else { return }
    for token in declaration.body ?? declaration.tokens where list.text(token) == "static" {
      var start = token
      while Self.qualifiers.contains(list.text(start - 1)) || list.text(start - 1) == "constant" { start -= 1 }
      var end = token + 1
      while end < declaration.tokens.upperBound, !["=", ";", "(", "[", "{"].contains(list.text(end)) { end += 1 }
      let words = Set((start..<end).map { list.text($0) })
      guard list.text(end) != "(", !words.contains("constant") else { continue }
      context.report("static variable must reside in constant address space", at: end - 1)
    }
  }
}
