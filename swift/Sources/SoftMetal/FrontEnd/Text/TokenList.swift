/// `lower..<upper`, empty where `upper` is less: broken sources have brackets
/// without content.
func span(_ lower: Int, _ upper: Int) -> Range<Int> {
  lower..<max(lower, upper)
}

/// The tokens of a source with its brackets paired and its preprocessor lines
/// set apart.
struct TokenList {
  let source: SourceText
  /// Every token but the directives.
  let tokens: [Token]
  let directives: [Token]
  /// For the index of a bracket the index of its partner: of `(`, `[`, `{` and
  /// their closing forms. An unpaired opening bracket has `count`, an unpaired
  /// closing one and any other token -1.
  let partner: [Int]
  let isBalanced: Bool
  /// How many brackets in one another clang takes.
  static let maximumDepth = 256
  /// Whether a comment has no end.
  let endsInComment: Bool

  init(_ source: SourceText, in range: Range<Int>? = nil) {
    self.source = source
    var tokens: [Token] = []
    var directives: [Token] = []
    let scanned = Tokenizer.scan(source.bytes, in: range)
    endsInComment = scanned.endsInComment
    for token in scanned.tokens {
      if token.kind == .directive { directives.append(token) } else { tokens.append(token) }
    }
    self.tokens = tokens
    self.directives = directives
    (partner, isBalanced) = Self.pairBrackets(tokens)
  }

  var count: Int { tokens.count }
  var indices: Range<Int> { 0..<tokens.count }

  /// The spelling of token `index`; empty beyond the ends and for literals.
  func text(_ index: Int) -> String {
    index >= 0 && index < tokens.count ? tokens[index].text : ""
  }

  func isIdentifier(_ index: Int) -> Bool {
    index >= 0 && index < tokens.count && tokens[index].kind == .identifier
  }

  /// The byte range from the first to the last token of `range`.
  func byteRange(_ range: Range<Int>) -> Range<Int> {
    guard let first = range.first, let last = range.last else {
      let offset = range.lowerBound < tokens.count ? tokens[range.lowerBound].range.lowerBound : source.bytes.count
      return offset..<offset
    }
    return tokens[first].range.lowerBound..<tokens[last].range.upperBound
  }

  /// The tokens of `range` on one line, without comments.
  func joined(_ range: Range<Int>) -> String {
    range.map { source.string(tokens[$0].range) }.joined(separator: " ")
  }

  /// The index after the bracket that closes the one at `index`; `count` beyond the last token.
  func after(_ index: Int) -> Int {
    index < tokens.count ? min(partner[index] + 1, tokens.count) : tokens.count
  }

  /// The index of the `{` that the token at `index` is inside of, or nil.
  func enclosingBrace(_ index: Int) -> Int? {
    var position = index - 1
    while position >= 0 {
      switch text(position) {
      case "{": return position
      case "}", ")", "]": position = partner[position] - 1
      default: position -= 1
      }
    }
    return nil
  }

  /// The index of the `;` that ends the statement of the token at `index`, or `count`.
  func statementEnd(_ index: Int) -> Int {
    var position = index
    while position < count {
      switch text(position) {
      case ";": return position
      case "(", "[", "{": position = after(position)
      default: position += 1
      }
    }
    return count
  }

  /// The index of the `>` that closes the template argument list opened by the
  /// `<` at `index`, or nil when that is a comparison.
  func closingAngle(_ index: Int) -> Int? {
    var depth = 0
    var position = index
    while position < tokens.count {
      switch text(position) {
      // Behind a number or a bracket it compares: `sizeof(T) < 8`.
      case "<": if position == index || isIdentifier(position - 1) { depth += 1 }
      case ">":
        depth -= 1
        if depth == 0 { return position }
      case "(", "[", "{": position = after(position) - 1
      case ")", "]", "}", ";": return nil
      default: break
      }
      position += 1
    }
    return nil
  }

  /// The index of the `<` that the `>` at `index` closes, or nil.
  func openingAngle(_ index: Int) -> Int? {
    var depth = 0
    var position = index
    while position >= 0 {
      switch text(position) {
      case ">": depth += 1
      case "<":
        depth -= 1
        if depth == 0 { return position }
      case ")", "]", "}":
        guard partner[position] >= 0 else { return nil }
        position = partner[position]
      case "(", "[", "{", ";": return nil
      default: break
      }
      position -= 1
    }
    return nil
  }

  /// The parts of `range` between commas that no bracket encloses; `<` after a
  /// name counts as a bracket.
  func splitAtCommas(_ range: Range<Int>) -> [Range<Int>] {
    var parts: [Range<Int>] = []
    var start = range.lowerBound
    var position = range.lowerBound
    while position < range.upperBound {
      switch text(position) {
      case "(", "[", "{": position = after(position) - 1
      case "<":
        if isIdentifier(position - 1), let close = closingAngle(position), close < range.upperBound { position = close }
      case ",":
        parts.append(start..<position)
        start = position + 1
      default: break
      }
      position += 1
    }
    if start < range.upperBound || !parts.isEmpty { parts.append(span(start, range.upperBound)) }
    return parts
  }

  private static func pairBrackets(_ tokens: [Token]) -> ([Int], Bool) {
    var partner = [Int](repeating: -1, count: tokens.count)
    var open: [Int] = []
    var balanced = true
    for (index, token) in tokens.enumerated() where token.kind == .punctuation {
      switch token.text {
      case "(", "[", "{": open.append(index)
      case ")", "]", "}":
        let opening = token.text == ")" ? "(" : token.text == "]" ? "[" : "{"
        guard let last = open.last, tokens[last].text == opening else {
          balanced = false
          continue
        }
        open.removeLast()
        partner[last] = index
        partner[index] = last
      default: break
      }
    }
    for index in open { partner[index] = tokens.count }
    return (partner, balanced && open.isEmpty)
  }
}
