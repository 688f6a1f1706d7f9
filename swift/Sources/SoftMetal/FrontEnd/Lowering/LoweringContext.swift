/// What the steps of lowering share: the source's tokens and declarations, and
/// the edits and errors that they gather.
struct LoweringContext {
  let list: TokenList
  let declarations: [Declaration]
  var edits = EditList()
  var diagnostics: [SourceDiagnostic] = []

  init(_ source: SourceText) {
    list = TokenList(source)
    declarations = DeclarationScanner.scan(list)
  }

  mutating func report(_ message: String, at token: Int) {
    let offset = token < list.count ? list.tokens[token].range.lowerBound : list.source.bytes.count
    diagnostics.append(SourceDiagnostic(offset: offset, message: message))
  }

  /// Overwrites tokens with spaces.
  mutating func blank(_ tokens: Range<Int>) {
    edits.blank(list.byteRange(tokens), in: list.source)
  }

  mutating func insert(_ text: String, before token: Int) {
    edits.insert(text, at: list.tokens[token].range.lowerBound)
  }

  mutating func insert(_ text: String, after token: Int) {
    edits.insert(text, at: list.tokens[token].range.upperBound)
  }

  /// Sets text around tokens.
  mutating func wrap(_ tokens: Range<Int>, _ before: String, _ after: String) {
    edits.wrap(list.byteRange(tokens), before, after)
  }

  /// The value of an integer literal, or nil.
  func integer(_ tokens: Range<Int>) -> Int? {
    var tokens = tokens
    while tokens.count >= 3, list.text(tokens.lowerBound) == "(",
      list.partner[tokens.lowerBound] == tokens.upperBound - 1
    {
      tokens = tokens.lowerBound + 1..<tokens.upperBound - 1
    }
    guard tokens.count == 1, list.tokens[tokens.lowerBound].kind == .number else { return nil }
    return Self.integerLiteral(list.text(tokens.lowerBound))
  }

  private static func integerLiteral(_ text: String) -> Int? {
    var digits = text.filter { $0 != "'" }.lowercased()
    while let last = digits.last, last == "u" || last == "l" { digits.removeLast() }
    if digits.hasPrefix("0x") { return Int(digits.dropFirst(2), radix: 16) }
    if digits.hasPrefix("0b") { return Int(digits.dropFirst(2), radix: 2) }
    if digits.count > 1, digits.hasPrefix("0") { return Int(digits.dropFirst(), radix: 8) }
    return Int(digits)
  }
}
