/// The file and line that each line of a text claims to be, by `#line`
/// directives and the preprocessor's markers (`# 12 "file"`).
struct LineTable {
  struct Claim: Hashable {
    let file: String
    let line: Int
  }

  /// One for each line of the text.
  private let claims: [Claim]
  private let lines: [Claim: Int]

  /// - Parameter file: what the first line belongs to.
  init(_ text: SourceText, file: String) {
    var claims: [Claim] = []
    var lines: [Claim: Int] = [:]
    var current = Claim(file: file, line: 1)
    // A line of a comment may look like one.
    let directives = Tokenizer.tokenize(text.bytes).filter { $0.kind == .directive }
    var ahead = directives.map { text.line(at: $0.range.lowerBound) }[...]
    for line in 1...text.lineStarts.count {
      let claim = current
      claims.append(claim)
      let isDirective = ahead.first == line
      if isDirective { ahead.removeFirst() }
      if isDirective, let next = Self.directive(text.bytes(ofLine: line), current) {
        current = next
      } else {
        lines[claim] = lines[claim] ?? line
        current = Claim(file: current.file, line: current.line + 1)
      }
    }
    self.claims = claims
    self.lines = lines
  }

  /// What a line of the text claims to be.
  func claim(ofLine line: Int) -> Claim? {
    line >= 1 && line <= claims.count ? claims[line - 1] : nil
  }

  /// The first line of the text that claims to be `claim`.
  func line(claiming claim: Claim) -> Int? {
    lines[claim]
  }

  /// Reads `#line 12 "file"`, `# 12 "file" 1` or `#line 12`.
  private static func directive(_ bytes: ArraySlice<UInt8>, _ current: Claim) -> Claim? {
    guard let first = bytes.first(where: { $0 != 0x20 && $0 != 0x09 }), first == UInt8(ascii: "#") else { return nil }
    let line = Array(bytes)
    var tokens = Tokenizer.tokenize(line, in: span((line.firstIndex(of: first) ?? 0) + 1, line.count))[...]
    if tokens.first?.text == "line" { tokens = tokens.dropFirst() }
    // Clang takes no more than 31 bits.
    guard let number = tokens.first.flatMap({ Int32($0.text) }).map(Int.init) else { return nil }
    guard let file = tokens.dropFirst().first, file.kind == .string else {
      return Claim(file: current.file, line: number)
    }
    let name = line[span(file.range.lowerBound + 1, file.range.upperBound - 1)]
    return Claim(file: String(decoding: unescaped(name), as: UTF8.self), line: number)
  }

  /// The characters of a string literal, as clang prints them, where a backslash stands before those that need one.
  private static func unescaped(_ literal: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    var isEscaped = false
    for byte in literal {
      isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
      if !isEscaped { result.append(byte) }
    }
    return result
  }
}
