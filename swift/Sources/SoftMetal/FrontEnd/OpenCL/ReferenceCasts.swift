/// C-style casts to references: `(thread float &)x` becomes `(*(thread float *)&(x))`, which is the same and whose
/// address spaces clang compares. Of references themselves it lets a cast change the space.
struct ReferenceCasts {
  private let list: TokenList
  /// `typedef device float &R;` and `using R = device float &;`
  private let aliases: Set<String>
  private var scopes = TemplateScopes()

  static func lower(_ context: inout LoweringContext) {
    var casts = ReferenceCasts(context.list)
    for token in context.list.indices { casts.lower(token, &context) }
  }

  private init(_ list: TokenList) {
    self.list = list
    aliases = Set(list.indices.compactMap { Self.alias(at: $0, list) })
  }

  /// Whether an argument of a template may be a reference: `<device float &>`, an alias of one, or what decltype gives.
  static func areArguments(_ list: TokenList) -> Bool {
    list.indices.contains { token in
      switch list.text(token) {
      case "&": [">", ","].contains(list.text(token + 1))
      case "decltype": list.text(token + 1) == "(" && list.text(token + 2) == "("
      default: alias(at: token, list) != nil
      }
    }
  }

  /// The name that an alias of a reference declares.
  private static func alias(at token: Int, _ list: TokenList) -> String? {
    guard ["typedef", "using"].contains(list.text(token)) else { return nil }
    guard let end = (token..<list.count).first(where: { [";", "{", "("].contains(list.text($0)) }),
      list.text(end) == ";", (token..<end).contains(where: { AddressSpace.all.contains(list.text($0)) })
    else { return nil }
    if list.text(token) == "using" {
      return list.text(token + 2) == "=" && list.text(end - 1) == "&" ? list.text(token + 1) : nil
    }
    return list.text(end - 2) == "&" ? list.text(end - 1) : nil
  }

  private mutating func lower(_ token: Int, _ context: inout LoweringContext) {
    scopes.advance(to: token, list)
    if aliases.contains(list.text(token)), list.text(token + 1) == "(" {
      let start = qualified(token)
      // `ScalarCasts` takes parameters of templates.
      guard isExpression(before: start), start < token || !scopes.contains(list.text(token)) else { return }
      context.wrap(start..<list.after(token + 1), "(*", ")")
      context.wrap(start..<token + 1, "(__remove_reference_t(", ") *)&")
      return
    }
    guard list.text(token) == "(", isExpression(before: token) else { return }
    let close = list.after(token) - 1
    let type = span(token + 1, close)
    let isAlias =
      !type.isEmpty && aliases.contains(list.text(close - 1)) && qualified(close - 1) == token + 1
      && !(type.count == 1 && scopes.contains(list.text(token + 1)))
    guard isAlias || isReference(type), let end = list.operandEnd(close + 1), list.text(close + 1) != "const",
      list.tokens[close + 1].kind != .number
    else { return }
    context.wrap(token..<end, "(*", ")")
    context.wrap(close + 1..<end, "&(", ")")
    if isAlias {
      context.wrap(type, "__remove_reference_t(", ") *")
    } else {
      context.edits.replace(list.tokens[close - 1].range, with: "*")
    }
  }

  /// The first token of the name that ends at `token`, as in `typename A<T>::name`.
  private func qualified(_ token: Int) -> Int {
    var start = token
    while list.text(start - 1) == "::" {
      var name = start - 2
      if list.text(name) == ">", let open = list.openingAngle(name) { name = open - 1 }
      guard list.isIdentifier(name), !TokenList.statementWords.contains(list.text(name)) else { return start - 1 }
      start = name
    }
    return list.text(start - 1) == "typename" ? start - 1 : start
  }

  private func isReference(_ type: Range<Int>) -> Bool {
    type.count >= 3 && list.text(type.upperBound - 1) == "&"
      && type.contains { AddressSpace.all.contains(list.text($0)) }
      && !type.contains { ["(", ",", ";", "="].contains(list.text($0)) }
  }

  /// Whether an expression, and no declaration, may begin at `token`.
  private func isExpression(before token: Int) -> Bool {
    let before = list.text(token - 1)
    if list.isIdentifier(token - 1) { return ["return", "else", "case", "do"].contains(before) }
    return ![".", "->", ">", "::"].contains(before)
  }
}
