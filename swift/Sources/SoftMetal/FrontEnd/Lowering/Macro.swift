/// A `#define` of the source.
struct Macro {
  let name: String
  let isFunctionLike: Bool
  /// Byte range of the replacement text.
  let bodyRange: Range<Int>
  let body: [Token]

  /// The macros that the directives of `list` define, in order.
  static func macros(of list: TokenList) -> [Macro] {
    list.directives.compactMap { parse($0, of: list.source) }
  }

  private static func parse(_ directive: Token, of source: SourceText) -> Macro? {
    let hash = directive.range.lowerBound
    let tokens = Tokenizer.tokenize(source.bytes, in: hash + 1..<directive.range.upperBound)
    guard tokens.count >= 2, tokens[0].text == "define", tokens[1].kind == .identifier else { return nil }
    let nameEnd = tokens[1].range.upperBound
    var bodyStart = 2
    let isFunctionLike = tokens.count > 2 && tokens[2].text == "(" && tokens[2].range.lowerBound == nameEnd
    if isFunctionLike {
      bodyStart = (tokens.firstIndex { $0.text == ")" } ?? tokens.count - 1) + 1
    }
    let body = Array(tokens[bodyStart...])
    let start = body.first?.range.lowerBound ?? directive.range.upperBound
    return Macro(
      name: tokens[1].text, isFunctionLike: isFunctionLike, bodyRange: start..<directive.range.upperBound, body: body)
  }
}
