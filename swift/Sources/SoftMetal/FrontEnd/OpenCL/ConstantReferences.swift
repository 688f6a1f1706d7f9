/// `const thread T &x` as `const T &x`: the argument may be a temporary, whose memory has no name for clang. Parameters
/// whose address is taken or that are handed on stay, and so do those of functions that are declared without a body.
enum ConstantReferences {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let declared = Set(context.declarations.filter { $0.kind == .function && $0.body == nil }.map(\.name))
    for token in list.indices where list.text(token) == "thread" {
      let isFirst = list.text(token + 1) == "const"
      let type = isFirst ? token + 2 : token + 1
      guard isFirst || list.text(token - 1) == "const", list.isIdentifier(type), list.text(type + 1) == "&",
        let body = body(around: token, declared, list), list.isIdentifier(type + 2)
      else { continue }
      let name = list.text(type + 2)
      let needsMemory = body.contains { list.text($0) == name && isNamed($0, list) }
      if !needsMemory { context.blank(token..<token + 1) }
    }
  }

  /// Whether the address of the name at `token` is taken, or a function may get a reference to it.
  private static func isNamed(_ token: Int, _ list: TokenList) -> Bool {
    let before = list.text(token - 1)
    return before == "&" || ["(", ","].contains(before) && [",", ")"].contains(list.text(token + 1))
  }

  /// The body of the function that has the parameter at `token`, or nil.
  private static func body(around token: Int, _ declared: Set<String>, _ list: TokenList) -> Range<Int>? {
    var open = token - 1
    while open > 0, list.text(open) != "(" {
      if [";", "{", "}"].contains(list.text(open)) { return nil }
      open = [")", "]"].contains(list.text(open)) ? list.partner[open] - 1 : open - 1
    }
    var brace = list.after(max(open, 0))
    while list.text(brace) == "const" || AddressSpace.all.contains(list.text(brace)) { brace += 1 }
    guard open > 0, list.text(brace) == "{", list.isIdentifier(open - 1), list.text(open - 2) != "::",
      !declared.contains(list.text(open - 1))
    else { return nil }
    return span(brace, list.after(brace))
  }
}
