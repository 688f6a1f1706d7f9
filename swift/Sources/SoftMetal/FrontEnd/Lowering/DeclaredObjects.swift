/// Expressions that name an object of certain types, as far as the text tells:
/// variables and members declared with them, and casts to pointers.
struct DeclaredObjects {
  private let list: TokenList
  private let types: Set<String>
  private let names: DeclaredNames
  /// Whether `object(...)` is a call of an operator, and not of a function of that name.
  private let areCalled: Bool

  init(_ context: LoweringContext, types: Set<String>, areCalled: Bool = false) {
    let list = context.list
    self.list = list
    self.types = types
    self.areCalled = areCalled
    names = DeclaredNames(context) { types.contains(list.text($0)) }
  }

  /// The tokens of the object that the name or cast at `token` leads to:
  /// `name`, `a.name`, `name[i]`, `*name`, `((device packed_float3 *)p)[i]`.
  func object(at token: Int) -> Range<Int>? {
    guard var object = bareObject(at: token) else { return nil }
    let uses: Set<String> = areCalled ? ["("] : ["[", ".", "->"]
    // `(*p)[1]`, and no call.
    while list.text(object.lowerBound - 1) == "(", list.text(object.upperBound) == ")",
      uses.contains(list.text(object.upperBound + 1)),
      !list.isIdentifier(object.lowerBound - 2) || TokenList.statementWords.contains(list.text(object.lowerBound - 2)),
      ![">", "]"].contains(list.text(object.lowerBound - 2))
    {
      object = object.lowerBound - 1..<object.upperBound + 1
    }
    return object
  }

  private func bareObject(at token: Int) -> Range<Int>? {
    guard let (levels, start, end) = base(at: token) else { return nil }
    var position = end
    var left = levels
    while left > 0, list.text(position) == "[" {
      position = list.after(position)
      left -= 1
    }
    if left == 0 { return start..<position }
    guard left == 1 else { return nil }
    if list.text(position) == "->" { return nil }
    if list.text(start - 1) == "*", isPrefix(start - 1) { return start - 1..<position }
    // `*(p + 1)`
    guard position == end, list.text(start - 1) == "(", list.text(start - 2) == "*", isPrefix(start - 2),
      ["+", "-"].contains(list.text(position))
    else { return nil }
    return start - 2..<list.after(start - 1)
  }

  /// The tokens of a declared name, or of a cast to a pointer, and the levels from there to the object.
  private func base(at token: Int) -> (levels: Int, start: Int, end: Int)? {
    if let name = names.names(at: token).first {
      guard areCalled || list.text(token + 1) != "(", let start = list.operandStart(token + 1) else { return nil }
      return (name.levels, start, token + 1)
    }
    guard types.contains(list.text(token)), list.text(token + 1) == "*" else { return nil }
    var close = token + 2
    while ["const", "volatile"].contains(list.text(close)) { close += 1 }
    switch list.text(close) {
    case ")":
      guard list.partner[close] >= 0, let end = list.operandEnd(close + 1) else { return nil }
      let open = list.partner[close]
      let isGroup = list.text(open - 1) == "(" && list.partner[open - 1] == end
      return isGroup ? (1, open - 1, end + 1) : (1, open, end)
    case ">":
      let end = list.after(min(close + 1, list.count - 1))
      return list.text(close + 1) == "(" ? list.operandStart(end).map { (1, $0, end) } : nil
    default: return nil
    }
  }

  /// Whether the operator at `token` has no operand before it.
  func isPrefix(_ token: Int) -> Bool {
    let before = list.text(token - 1)
    if list.isIdentifier(token - 1) { return TokenList.statementWords.contains(before) }
    return list.tokens[max(token - 1, 0)].kind == .punctuation && ![")", "]", ">"].contains(before)
  }
}
