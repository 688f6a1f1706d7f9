/// Where the lines of a text to be lowered come from: the user's source
/// itself, or the preprocessor's output for it.
struct SourceOrigin {
  /// A place in the user's source.
  struct Position {
    let file: String
    let line: Int
    let column: Int
    /// The line's bytes.
    let text: ArraySlice<UInt8>
  }

  let label: String
  private let source: SourceText
  private let sourceLines: LineTable
  /// The preprocessor's output; nil when nothing was preprocessed.
  private var output: SourceText?
  private var outputLines: LineTable

  /// The user's own text.
  init(label: String, source: SourceText) {
    self.label = label
    self.source = source
    sourceLines = LineTable(source, file: Self.claimed(label))
    output = nil
    outputLines = sourceLines
  }

  /// That of what the preprocessor made of the source.
  func preprocessed(into output: SourceText) -> SourceOrigin {
    var result = self
    result.output = output
    result.outputLines = LineTable(output, file: "")
    return result
  }

  /// The label as a string literal holds it.
  var escapedLabel: String {
    Self.claimed(label).replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
  }

  /// The label as the name of a file in one line.
  private static func claimed(_ label: String) -> String {
    String(String.UnicodeScalarView(label.unicodeScalars.map { $0.value < 0x20 ? " " : $0 }))
  }

  /// The line of the text to be lowered that claims to be `line` of `file`, as
  /// clang prints that name.
  func inputLine(file: String, line: Int) -> Int? {
    outputLines.line(claiming: .init(file: file, line: line))
  }

  /// The user's position for an offset of the text to be lowered.
  func position(of offset: Int) -> Position {
    let input = output ?? source
    let line = input.line(at: offset)
    let column = input.column(at: offset)
    guard let claim = outputLines.claim(ofLine: line) else {
      return Position(file: label, line: line, column: column, text: [])
    }
    let file = claim.file == Self.claimed(label) ? label : claim.file
    guard output != nil else {
      return Position(file: file, line: claim.line, column: column, text: source.bytes(ofLine: line))
    }
    let text = sourceLines.line(claiming: claim).map { source.bytes(ofLine: $0) } ?? []
    let match = Self.matchingColumn(column, input.bytes(ofLine: line), text)
    return Position(file: file, line: claim.line, column: match, text: text)
  }

  /// The column in the user's line of the token that starts at `column` of the
  /// preprocessed line: the same occurrence of the same word, else the macro
  /// that it comes from, which is the first word that differs.
  private static func matchingColumn(_ column: Int, _ line: ArraySlice<UInt8>, _ userLine: ArraySlice<UInt8>) -> Int {
    let output = Array(line)
    let user = Array(userLine)
    let tokens = Tokenizer.tokenize(output)
    let userTokens = Tokenizer.tokenize(user)
    let macro = zip(userTokens, tokens).first { !user[$0.range].elementsEqual(output[$1.range]) }
    // Something is missing behind a token.
    let isBehind = !tokens.contains { $0.range.contains(column - 1) }
    let place = isBehind ? column - 2 : column - 1
    if let token = tokens.first(where: { $0.range.contains(place) }), token.range != macro?.1.range {
      let word = output[token.range]
      let occurrence = tokens.prefix { $0.range.lowerBound < token.range.lowerBound }
        .filter { output[$0.range].elementsEqual(word) }.count
      let matches = userTokens.filter { user[$0.range].elementsEqual(word) }
      if occurrence < matches.count {
        let range = matches[occurrence].range
        return (isBehind ? range.upperBound : range.lowerBound) + 1
      }
    }
    return (macro?.0 ?? userTokens.last).map { $0.range.lowerBound + 1 } ?? 1
  }
}
