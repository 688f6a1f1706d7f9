/// Demands to unroll loops become a macro of each executor.
///
/// A GPU's registers cannot be indexed: an array stays in them only where every
/// loop over it is unrolled. On a processor clang unrolls what pays, and doing
/// it by force multiplies its work.
enum LoopPragmas {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let bytes = list.source.bytes
    for directive in list.directives {
      let words = words(bytes, span(directive.range.lowerBound + 1, directive.range.upperBound))
      guard words.first == "pragma", isUnroll(words.dropFirst()) else { continue }
      // Lines that end in a backslash belong to the directive.
      let lines = bytes[directive.range].filter { $0 == UInt8(ascii: "\n") }.count
      let replacement = demand(words.dropFirst()) + String(repeating: "\n", count: lines)
      context.edits.replace(directive.range, with: replacement)
    }
    for token in list.indices where list.text(token) == "_Pragma" && list.text(token + 1) == "(" {
      let end = list.after(token + 1)
      guard end == token + 4, list.tokens[token + 2].kind == .string else { continue }
      let literal = list.tokens[token + 2].range
      let words = words(bytes, span(literal.lowerBound + 1, literal.upperBound - 1))
      if isUnroll(words[...]) { context.edits.replace(list.byteRange(token..<end), with: demand(words[...])) }
    }
  }

  private static func isUnroll(_ words: ArraySlice<String>) -> Bool {
    words.first == "unroll"
      || words.starts(with: ["clang", "loop"]) && ["unroll", "unroll_count"].contains(words.dropFirst(2).first)
  }

  /// The demand as the headers take it. One with a name of the program's is left out: it may be that of a macro, which
  /// the preprocessor does not expand here and forgets.
  private static func demand(_ words: ArraySlice<String>) -> String {
    let isKnown = words.allSatisfy { known.contains($0) || $0.first?.isNumber == true }
    return isKnown ? "SM_UNROLL(\"\(words.joined(separator: " "))\")" : ""
  }

  private static let known: Set = [
    "clang", "loop", "unroll", "unroll_count", "full", "enable", "disable", "(", ")",
  ]

  private static func words(_ bytes: [UInt8], _ range: Range<Int>) -> [String] {
    Tokenizer.tokenize(bytes, in: range).map(\.text)
  }
}
