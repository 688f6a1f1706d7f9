extension TokenList {
  /// The index after the operand of a cast that starts at `index`: prefix
  /// operators and casts, a primary expression, and what follows it directly.
  /// Nil when no operand starts there.
  func operandEnd(_ index: Int) -> Int? {
    var position = index
    while ["-", "+", "!", "~", "*", "&", "++", "--"].contains(text(position)) { position += 1 }
    guard position < count else { return nil }
    if text(position) == "(" {
      position = after(position)
      // A cast before another operand.
      if startsOperand(position), let end = operandEnd(position) { return end }
    } else if let end = primaryEnd(position) {
      position = end
    } else {
      return nil
    }
    while position < count {
      switch text(position) {
      case "(", "[": position = after(position)
      case ".", "->": position = min(position + (text(position + 1) == "template" ? 3 : 2), count)
      case "++", "--": position += 1
      default: return position
      }
    }
    return position
  }

  /// Whether a name or literal, which never follows an expression, is at `index`.
  private func startsOperand(_ index: Int) -> Bool {
    guard index < count, tokens[index].kind != .punctuation else { return false }
    return !["const", "and", "or", "not", "xor"].contains(text(index))
  }

  /// The index after a name, with its qualification and template arguments, or
  /// a literal.
  private func primaryEnd(_ index: Int) -> Int? {
    var position = text(index) == "::" ? index + 1 : index
    guard position < count, tokens[position].kind != .punctuation else { return nil }
    guard isIdentifier(position) else { return position + 1 }
    while isIdentifier(position) {
      position += 1
      if text(position) == "<", let close = closingAngle(position), ["(", "::", "{"].contains(text(close + 1)) {
        position = close + 1
      }
      guard text(position) == "::" else { break }
      position += 1
    }
    return position
  }
}

extension TokenList {
  /// Words before a parenthesis that are no function.
  static let statementWords: Set<String> = [
    "if", "for", "while", "switch", "return", "else", "do", "case", "constexpr",
  ]

  /// Operators that assign; a shift to the right is several tokens.
  static let assignments: Set<String> = ["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<="]

  /// The first token of the function's name that ends before `open`, without what qualifies it.
  func functionName(before open: Int) -> Int? {
    if let length = (2...4).first(where: { text(open - $0) == "operator" }) { return open - length }
    var name = open - 1
    if text(name) == ">", let angle = openingAngle(name) { name = angle - 1 }
    return isIdentifier(name) ? name : nil
  }
}
