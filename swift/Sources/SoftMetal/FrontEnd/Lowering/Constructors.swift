/// Turns constructor syntax of vectors, `float4(a, b)`, into `sm_make<float4>(a, b)`,
/// and casts, `(float4)a` and `static_cast<float4>(a)`, which convert component
/// by component too.
///
/// `float4{...}`, declarations and names after `operator` stay.
struct Constructors {
  private let list: TokenList
  private let types: VectorTypes
  private var edits: EditList
  /// Type parameters in scope, with the index of the token where each ends.
  private var scopes: [(names: Set<String>, end: Int)] = []

  static func lower(_ context: inout LoweringContext) {
    let types = VectorTypes(context.list)
    var main = Constructors(list: context.list, types: types, edits: context.edits)
    main.run()
    context.edits = main.edits
  }

  private init(list: TokenList, types: VectorTypes, edits: EditList) {
    self.list = list
    self.types = types
    self.edits = edits
  }

  private mutating func run() {
    for token in list.indices {
      if list.text(token) == "(" { lowerPrefixCast(token) }
      guard list.isIdentifier(token) else { continue }
      while let scope = scopes.last, scope.end <= token { scopes.removeLast() }
      let text = list.text(token)
      if text == "template", list.text(token + 1) == "<", let close = list.closingAngle(token + 1) {
        let names = TemplateParameter.parse(token + 1, close, of: list).filter(\.isType).map(\.name)
        scopes.append((Set(names), declarationEnd(close + 1)))
      } else if text == "static_cast" {
        lowerCast(token)
      } else if isVectorType(text) {
        lowerConstructor(token)
      }
    }
  }

  private func isVectorType(_ name: String) -> Bool {
    types.contains(name) || scopes.contains { $0.names.contains(name) }
  }

  /// The end of the type name at `token`: after its template arguments.
  private func typeEnd(_ token: Int) -> Int {
    guard list.text(token + 1) == "<", let close = list.closingAngle(token + 1) else { return token + 1 }
    return close + 1
  }

  private mutating func lowerConstructor(_ token: Int) {
    let end = typeEnd(token)
    guard list.text(end) == "(", list.text(end + 1) != "&" else { return }
    let start = qualifiedStart(token)
    guard isExpression(before: start) else { return }
    edits.insert("sm_make<", at: list.tokens[start].range.lowerBound)
    edits.insert(">", at: list.tokens[end - 1].range.upperBound)
    Comparisons.wrapArguments(span(end + 1, list.after(end) - 1), list, &edits)
  }

  private mutating func lowerCast(_ token: Int) {
    guard list.text(token + 1) == "<", let close = list.closingAngle(token + 1) else { return }
    guard isVectorType(in: span(token + 2, close)) else { return }
    edits.replace(list.tokens[token].range, with: "sm_make")
    if list.text(close + 1) == "(" {
      Comparisons.wrapArguments(span(close + 2, list.after(close + 1) - 1), list, &edits)
    }
  }

  /// `(float4)x` at the parenthesis.
  private mutating func lowerPrefixCast(_ open: Int) {
    let close = list.after(open) - 1
    guard isVectorType(in: span(open + 1, close)), isExpression(before: open), list.text(open - 1) != ">" else {
      return
    }
    guard !Self.specifiers.contains(list.text(close + 1)), let end = list.operandEnd(close + 1) else { return }
    edits.replace(list.tokens[open].range, with: "sm_make<")
    edits.replace(list.tokens[close].range, with: ">(")
    edits.insert(")", at: list.tokens[end - 1].range.upperBound)
    Comparisons.wrapArguments(span(close + 1, end), list, &edits)
  }

  /// Words that follow a parameter list.
  private static let specifiers: Set<String> = [
    "const", "volatile", "device", "constant", "thread", "threadgroup", "final", "override",
  ]

  /// Whether the tokens are a vector type and nothing else.
  private func isVectorType(in range: Range<Int>) -> Bool {
    var head = range.lowerBound
    if list.text(head) == "typename" { head += 1 }
    if list.text(head) == "::" { head += 1 }
    while head < range.upperBound {
      let end = typeEnd(head)
      if end == range.upperBound { return isVectorType(list.text(head)) }
      guard list.isIdentifier(head), list.text(end) == "::" else { return false }
      head = end + 1
    }
    return false
  }

  /// The first token of the qualified name that ends in `token`.
  private func qualifiedStart(_ token: Int) -> Int {
    var start = token
    while list.text(start - 1) == "::" {
      if list.isIdentifier(start - 2) {
        start -= 2
      } else if list.text(start - 2) == ">", let open = list.openingAngle(start - 2), list.isIdentifier(open - 1) {
        start = open - 1
      } else {
        start -= 1
        break
      }
    }
    return list.text(start - 1) == "typename" ? start - 1 : start
  }

  /// Words that an expression may follow.
  private static let expressionWords: Set<String> = ["return", "else", "case", "do"]

  private func isExpression(before start: Int) -> Bool {
    if list.isIdentifier(start - 1) { return Self.expressionWords.contains(list.text(start - 1)) }
    return ![".", "->"].contains(list.text(start - 1))
  }

  /// The end of the declaration that starts at `token`, after its `;` or body.
  private func declarationEnd(_ token: Int) -> Int {
    var position = token
    while position < list.count {
      switch list.text(position) {
      case ";": return position + 1
      case "{": return list.after(position)
      case "(", "[": position = list.after(position)
      case ")", "]", "}": return position
      default: position += 1
      }
    }
    return list.count
  }
}
