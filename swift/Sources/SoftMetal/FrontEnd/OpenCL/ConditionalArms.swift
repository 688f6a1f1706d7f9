/// Arms of conditional expressions as values: clang finds no common type for objects of one class in different
/// memory, as in `c ? shared[i] : S{}`.
///
/// `c ? a : b` becomes `c ? sm_value((a)) : sm_value((b))`. Literals stay, and so do the arms of an expression that may
/// have to name an object: one that is assigned to, initialises a reference, or whose address is taken; and where both
/// arms name one, one that a function is called on, or that counts up or down.
struct ConditionalArms {
  private let list: TokenList

  static func lower(_ context: inout LoweringContext) {
    let arms = ConditionalArms(list: context.list)
    for token in context.list.indices where context.list.text(token) == "?" { arms.lower(token, &context) }
  }

  private func lower(_ question: Int, _ context: inout LoweringContext) {
    guard let colon = colon(of: question), colon > question + 1, !isObject(question) else { return }
    let end = end(of: colon)
    let (first, second) = (question + 1..<colon, span(colon + 1, end))
    guard !second.isEmpty, !(isLiteral(first) && isLiteral(second)) else { return }
    if isChanged(question), isName(first), isName(second) { return }
    // A 0 stays the null pointer; a comma in the middle arm makes no second argument.
    for arm in [first, second] where !isBracedList(arm) && !isLiteral(arm) { context.wrap(arm, "sm_value((", "))") }
  }

  private func isLiteral(_ arm: Range<Int>) -> Bool {
    arm.allSatisfy { token in
      list.tokens[token].kind == .number || ["-", "true", "false", "nullptr"].contains(list.text(token))
    }
  }

  /// Whether an arm is a braced list, which is no argument of a function.
  private func isBracedList(_ arm: Range<Int>) -> Bool {
    list.text(arm.lowerBound) == "{"
  }

  /// Whether an arm may name an object: a variable, a member or an element of one, or what a pointer leads to.
  private func isName(_ arm: Range<Int>) -> Bool {
    var token = arm.lowerBound
    while token < arm.upperBound {
      switch list.text(token) {
      case "[": token = list.after(token)
      case "*" where token == arm.lowerBound, ".", "->", "::": token += 1
      case _ where list.isIdentifier(token): token += 1
      default: return false
      }
    }
    return !arm.isEmpty
  }

  /// Whether the expression stands in parentheses, of which a function or an assignment may change the object:
  /// `(c ? a : b).f()`, `(c ? a : b).x += 1`.
  private func isChanged(_ question: Int) -> Bool {
    guard let open = opening(before: question) else { return false }
    let before = list.text(open - 1)
    let isGroup = !list.isIdentifier(open - 1) || before == "return"
    guard isGroup, ![")", "]", ">"].contains(before) else { return false }
    var token = list.after(open)
    while ["[", "."].contains(list.text(token)) { token = list.text(token) == "[" ? list.after(token) : token + 2 }
    let counts: Set = ["++", "--"]
    let next = list.text(token)
    return next == "(" || counts.contains(next) || counts.contains(before) || TokenList.assignments.contains(next)
  }

  /// The parenthesis that the expression around a question mark stands in, with nothing else.
  private func opening(before question: Int) -> Int? {
    let ends: Set = ["(", ";", "{", ",", "return", "[", "?", ":", "="]
    return boundary(before: question, ends).flatMap { list.text($0) == "(" ? $0 : nil }
  }

  /// The nearest token of `ends` before a question mark, outside of brackets that are closed by then.
  private func boundary(before question: Int, _ ends: Set<String>) -> Int? {
    var token = question - 1
    while token >= 0, !ends.contains(list.text(token)) {
      if [")", "]", "}"].contains(list.text(token)) {
        guard list.partner[token] >= 0 else { return nil }
        token = list.partner[token]
      }
      token -= 1
    }
    return token >= 0 ? token : nil
  }

  private func colon(of question: Int) -> Int? {
    var nested = 0
    var token = question + 1
    while token < list.count {
      switch list.text(token) {
      case "(", "[", "{":
        token = list.after(token)
        continue
      case ")", "]", "}", ";": return nil
      case "?": nested += 1
      case ":":
        if nested == 0 { return token }
        nested -= 1
      default: break
      }
      token += 1
    }
    return nil
  }

  /// The end of the last arm, which begins behind `colon`.
  private func end(of colon: Int) -> Int {
    var nested = 0
    var token = colon + 1
    while token < list.count {
      switch list.text(token) {
      case "(", "[", "{":
        token = list.after(token)
        continue
      case ")", "]", "}", ";", ",": return token
      case "?": nested += 1
      case ":":
        if nested == 0 { return token }
        nested -= 1
      case "<":
        // Template arguments, whose commas and closing bracket belong to the arm.
        if list.isIdentifier(token - 1), let close = list.closingAngle(token), !startsOperand(close + 1) {
          token = close + 1
          continue
        }
      case ">":
        // Of a list of template arguments that the whole expression is in.
        if isTemplateEnd(token, from: colon) { return token }
      default: break
      }
      token += 1
    }
    return list.count
  }

  /// Whether a name or a literal is at `token`, as behind a comparison.
  private func startsOperand(_ token: Int) -> Bool {
    token < list.count && list.tokens[token].kind != .punctuation
  }

  private func isTemplateEnd(_ token: Int, from colon: Int) -> Bool {
    guard let open = list.openingAngle(token), open < colon, list.isIdentifier(open - 1) else { return false }
    return [";", ")", ",", ">", "::", "{", "(", "="].contains(list.text(token + 1)) || list.isIdentifier(token + 1)
  }

  /// Whether the expression around the question mark may name an object.
  private func isObject(_ question: Int) -> Bool {
    guard let token = boundary(before: question, ["(", "=", ";", "{", ",", "return", "["]) else { return false }
    switch list.text(token) {
    case "return": return givesReference(token)
    case "(":
      let close = list.after(token) - 1
      if list.text(token - 1) == "return", list.text(close + 1) == ";" { return givesReference(token) }
      let isAssigned = TokenList.assignments.contains(list.text(close + 1))
      return isAssigned || list.text(token - 1) == "&" && !endsOperand(token - 2)
    case "=": return list.isIdentifier(token - 1) && ["&", "&&"].contains(list.text(token - 2))
    default: return false
    }
  }

  /// Whether what an operator of two operands may follow ends at `token`: no parenthesis of a cast to a pointer.
  private func endsOperand(_ token: Int) -> Bool {
    switch list.text(token) {
    case ")": !["*", "&", "const"].contains(list.text(token - 1))
    case "]": true
    case "return": false
    default: token >= 0 && list.tokens[token].kind != .punctuation
    }
  }

  /// Whether the function around `token` gives a reference.
  private func givesReference(_ token: Int) -> Bool {
    var brace = list.enclosingBrace(token)
    while let open = brace {
      var close = open - 1
      while list.isIdentifier(close) { close -= 1 }
      if list.text(close) == ")", list.partner[close] > 0, let name = qualifiedName(before: list.partner[close]) {
        return list.text(name - 1) == "&"
      }
      brace = list.enclosingBrace(open)
    }
    return false
  }

  /// The first token of the qualified name of the function whose parameters begin at `open`; nil for a statement's
  /// parentheses.
  private func qualifiedName(before open: Int) -> Int? {
    guard var name = list.functionName(before: open), !TokenList.statementWords.contains(list.text(name)) else {
      return nil
    }
    while list.text(name - 1) == "::" {
      name -= 2
      if list.text(name) == ">", let angle = list.openingAngle(name) { name = angle - 1 }
    }
    return name
  }
}
