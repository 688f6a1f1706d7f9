/// Removes demands to unroll loops.
///
/// They serve a GPU, whose registers cannot be indexed. Here clang unrolls what
/// pays; doing it by force multiplies its work.
enum LoopPragmas {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for directive in list.directives where isUnroll(list.source.bytes, directive.range) {
      context.edits.blank(directive.range, in: list.source)
    }
    for token in list.indices where list.text(token) == "_Pragma" && list.text(token + 1) == "(" {
      let end = list.after(token + 1)
      guard end == token + 4, list.tokens[token + 2].kind == .string else { continue }
      let literal = list.tokens[token + 2].range
      if isUnroll(words(list.source.bytes, span(literal.lowerBound + 1, literal.upperBound - 1))) {
        context.blank(token..<end)
      }
    }
  }

  private static func isUnroll(_ bytes: [UInt8], _ range: Range<Int>) -> Bool {
    let words = words(bytes, span(range.lowerBound + 1, range.upperBound))
    return words.first == "pragma" && isUnroll(Array(words.dropFirst()))
  }

  private static func isUnroll(_ words: [String]) -> Bool {
    words.first == "unroll" || words.starts(with: ["clang", "loop", "unroll"])
  }

  private static func words(_ bytes: [UInt8], _ range: Range<Int>) -> [String] {
    Tokenizer.tokenize(bytes, in: range).map(\.text)
  }
}
