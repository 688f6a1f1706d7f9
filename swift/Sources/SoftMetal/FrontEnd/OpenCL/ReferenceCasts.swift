/// C-style casts to references: `(thread float &)x` becomes `(*(thread float *)&(x))`, which is the same and whose
/// address spaces clang compares. Of references themselves it lets a cast change the space.
struct ReferenceCasts {
  private let list: TokenList
  /// `typedef device float &R;` and `using R = device float &;`
  private let aliases: Set<String>

  static func lower(_ context: inout LoweringContext) {
    let casts = ReferenceCasts(context.list)
    for token in context.list.indices { casts.lower(token, &context) }
  }

  private init(_ list: TokenList) {
    self.list = list
    aliases = Set(list.indices.compactMap { Self.alias(at: $0, list) })
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

  private func lower(_ token: Int, _ context: inout LoweringContext) {
    if aliases.contains(list.text(token)), list.text(token + 1) == "(", isExpression(before: token) {
      context.wrap(token..<list.after(token + 1), "(*", ")")
      context.wrap(token..<token + 1, "(__remove_reference_t(", ") *)&")
      return
    }
    guard list.text(token) == "(", isExpression(before: token) else { return }
    let close = list.after(token) - 1
    let type = span(token + 1, close)
    let isAlias = type.count == 1 && aliases.contains(list.text(token + 1))
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
