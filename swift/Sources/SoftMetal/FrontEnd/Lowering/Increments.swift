/// Lets vectors be incremented and decremented, which clang refuses.
///
/// `++v`, and `v++` where its value is not used, become `(v += 1)`: the same for
/// every type that has `++`. Where the value before counts, `v++` becomes
/// `sm_add_after(v)`; that takes a reference, so what may be a component of a
/// vector stays, unless it was declared as an array of vectors. Numbers and
/// pointers that were declared as such stay as well. A source with an
/// `operator++` of its own keeps them all.
struct Increments {
  private let list: TokenList
  private let scalars: DeclaredNames
  private let vectors: DeclaredNames

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    guard !list.indices.contains(where: { list.text($0) == "operator" && signs.keys.contains(list.text($0 + 1)) })
    else { return }
    let increments = Increments(context)
    for token in list.indices where signs.keys.contains(list.text(token)) { increments.lower(token, &context) }
  }

  private static let signs = ["++": (" += 1", "sm_add_after"), "--": (" -= 1", "sm_subtract_after")]

  private init(_ context: LoweringContext) {
    let list = context.list
    self.list = list
    let types = VectorTypes(list)
    let parameters = TemplateParameter.types(of: list)
    scalars = DeclaredNames(context) { VectorTypes.scalars.contains(list.text($0)) }
    vectors = DeclaredNames(context) { types.contains(list.text($0)) || parameters.contains(list.text($0)) }
  }

  private func lower(_ token: Int, _ context: inout LoweringContext) {
    if let start = Self.postfixStart(token, list) {
      lowerPostfix(token, start, &context)
    } else if !isNumber(span(token + 1, list.operandEnd(token + 1) ?? token + 1)) {
      Self.lowerPrefix(token, list, &context.edits)
    }
  }

  /// Where the operand before `token` starts; nil for a prefix operator.
  private static func postfixStart(_ token: Int, _ list: TokenList) -> Int? {
    // After a cast, `(int)++n`, the operand follows.
    if list.isIdentifier(token + 1) || list.text(token + 1) == "(" { return nil }
    return list.operandStart(token)
  }

  /// `++operand` becomes `(operand += 1)`.
  private static func lowerPrefix(_ token: Int, _ list: TokenList, _ edits: inout EditList) {
    guard let sign = signs[list.text(token)], postfixStart(token, list) == nil,
      let end = list.operandEnd(token + 1)
    else { return }
    edits.replace(list.tokens[token].range, with: " (")
    edits.wrap(list.byteRange(token + 1..<end), "", sign.0 + ")")
  }

  private func lowerPostfix(_ token: Int, _ start: Int, _ context: inout LoweringContext) {
    guard let sign = Self.signs[list.text(token)], !isNumber(start..<token) else { return }
    if isStatement(start, token + 1) {
      context.edits.replace(list.tokens[token].range, with: sign.0)
    } else if isReferable(start..<token) {
      context.edits.replace(list.tokens[token].range, with: "")
      context.wrap(start..<token, sign.1 + "(", ")")
    }
  }

  /// Whether the operand is a variable that was declared as a number, or a pointer.
  private func isNumber(_ operand: Range<Int>) -> Bool {
    guard operand.count == 1, let name = operand.first else { return false }
    let vectors = vectors.names(at: name)
    return vectors.isEmpty ? !scalars.names(at: name).isEmpty : vectors.allSatisfy { $0.levels > 0 }
  }

  /// Whether a reference can be bound to the operand: a variable, a member, or
  /// an element of an array of vectors.
  private func isReferable(_ operand: Range<Int>) -> Bool {
    let last = operand.upperBound - 1
    guard list.text(last) == "]" else {
      let isComponent = list.text(last).count == 1 && "xyzwrgba".contains(list.text(last))
      return list.isIdentifier(last) && !(isComponent && [".", "->"].contains(list.text(last - 1)))
    }
    var name = last
    var levels = 0
    while list.text(name) == "]" {
      name = list.partner[name] - 1
      levels += 1
    }
    return vectors.names(at: name).contains { $0.levels == levels }
  }

  /// Whether the expression's value is not used: it is a statement, or a part of
  /// a for loop's head.
  private func isStatement(_ start: Int, _ end: Int) -> Bool {
    let before = list.text(start - 1)
    let startsHere =
      [";", "{", "}", ":", ",", "else", "do"].contains(before)
      || (before == ")" && list.partner[start - 1] >= 0 && list.isCondition(list.partner[start - 1]))
    guard startsHere else { return false }
    if list.text(end) == ";" { return before != "," && before != ":" || isLabel(start - 1) }
    return [")", ","].contains(list.text(end)) && isForHead(start)
  }

  /// Whether the colon at `token` ends a label, and not the first branch of a conditional expression.
  private func isLabel(_ token: Int) -> Bool {
    guard list.text(token) == ":" else { return false }
    var position = token - 1
    while position >= 0, ![";", "{", "}", "?"].contains(list.text(position)) {
      if list.text(position) == "case" || list.text(position) == "default" { return true }
      position -= 1
    }
    return false
  }

  /// Whether `token` is in the last part of the head of a for loop.
  private func isForHead(_ token: Int) -> Bool {
    var position = token - 1
    while position >= 0 {
      switch list.text(position) {
      case ")", "]": position = list.partner[position] >= 0 ? list.partner[position] : 0
      case "(": return false
      case ";":
        while position >= 0, list.text(position) != "(" {
          position = [")", "]", "}"].contains(list.text(position)) ? list.partner[position] : position
          position -= 1
        }
        return list.text(position - 1) == "for"
      case "{", "}", "=": return false
      default: break
      }
      position -= 1
    }
    return false
  }
}
