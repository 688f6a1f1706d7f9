/// Where the lines of a text to be lowered come from: the user's source
/// itself, or the preprocessor's output for it.
struct SourceOrigin {
  let label: String
  /// What the user wrote.
  let source: SourceText
  /// For each line of the preprocessor's output the user's line, or 0; nil when
  /// nothing was preprocessed.
  private let userLines: [Int]?

  /// The user's own text.
  init(label: String, source: SourceText) {
    self.label = label
    self.source = source
    userLines = nil
  }

  /// `output` is what the preprocessor made of `source`.
  init(label: String, source: SourceText, preprocessed output: SourceText) {
    self.label = label
    self.source = source
    userLines = Self.readMarkers(output, label: Self.escape(label))
  }

  var escapedLabel: String { Self.escape(label) }

  private static func escape(_ label: String) -> String {
    var result = ""
    for character in label.unicodeScalars {
      if character == "\"" || character == "\\" { result += "\\" }
      result.unicodeScalars.append(character.value < 0x20 ? " " : character)
    }
    return result
  }

  /// Reads lines such as `# 12 "label"`.
  private static func readMarkers(_ output: SourceText, label: String) -> [Int] {
    var result: [Int] = []
    var current = 0
    for line in 1...output.lineStarts.count {
      let bytes = output.bytes(ofLine: line)
      if bytes.first == UInt8(ascii: "#"), let (number, file) = marker(bytes) {
        current = file == label ? number : 0
        result.append(0)
      } else {
        result.append(current)
        if current > 0 { current += 1 }
      }
    }
    return result
  }

  private static func marker(_ bytes: ArraySlice<UInt8>) -> (line: Int, file: String)? {
    let text = String(decoding: bytes, as: UTF8.self)
    guard let open = text.firstIndex(of: "\""), let close = text.lastIndex(of: "\""), open < close else { return nil }
    let words = text[..<open].split(separator: " ")
    guard let last = words.last, let number = Int(last), words.count <= 2 else { return nil }
    guard words.count == 2 ? (words[0] == "#" || words[0] == "#line") : false else { return nil }
    return (number, String(text[text.index(after: open)..<close]))
  }

  /// The line of the text to be lowered that holds the user's `line`.
  func inputLine(ofUserLine line: Int) -> Int? {
    guard let userLines else { return line }
    return userLines.firstIndex(of: line).map { $0 + 1 }
  }

  /// The user's line and column for an offset of the text to be lowered.
  func userPosition(of offset: Int, in input: SourceText) -> (line: Int, column: Int) {
    let line = input.line(at: offset)
    let column = input.column(at: offset)
    guard let userLines else { return (line, column) }
    let userLine = line <= userLines.count ? userLines[line - 1] : 0
    return (userLine, matchingColumn(column, input.bytes(ofLine: line), source.bytes(ofLine: userLine)))
  }

  /// The column in the user's line of the token that starts at `column` of the
  /// preprocessed line: the same occurrence of the same word, else the first
  /// column that is not blank.
  private func matchingColumn(_ column: Int, _ line: ArraySlice<UInt8>, _ userLine: ArraySlice<UInt8>) -> Int {
    let output = Array(line)
    let user = Array(userLine)
    let tokens = Tokenizer.tokenize(output)
    if let token = tokens.first(where: { $0.range.contains(column - 1) }) {
      let word = output[token.range]
      let occurrence = tokens.prefix { $0.range.lowerBound < token.range.lowerBound }
        .filter { output[$0.range].elementsEqual(word) }.count
      let matches = Tokenizer.tokenize(user).filter { user[$0.range].elementsEqual(word) }
      if occurrence < matches.count { return matches[occurrence].range.lowerBound + 1 }
    }
    return (user.firstIndex { $0 != 0x20 && $0 != 0x09 } ?? 0) + 1
  }
}
