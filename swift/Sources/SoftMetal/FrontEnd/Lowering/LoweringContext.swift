/// What the steps of lowering share: the source's tokens and declarations, and
/// the edits and errors that they gather.
struct LoweringContext {
  let list: TokenList
  let macros: [Macro]
  let declarations: [Declaration]
  var edits = EditList()
  var diagnostics: [SourceDiagnostic] = []

  init(_ source: SourceText) {
    list = TokenList(source)
    macros = Macro.macros(of: list)
    declarations = DeclarationScanner.scan(list, macros: Set(macros.lazy.filter(\.isFunctionLike).map(\.name)))
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

  /// The value of an integer literal, or of a macro that stands for one.
  func integer(_ tokens: Range<Int>) -> Int? {
    guard tokens.count == 1, let token = tokens.first else { return nil }
    return integer(list.tokens[token], depth: 0)
  }

  private func integer(_ token: Token, depth: Int) -> Int? {
    if token.kind == .number { return Self.integerLiteral(token.text) }
    guard token.kind == .identifier, depth < 16,
      let macro = macros.last(where: { $0.name == token.text }), !macro.isFunctionLike
    else { return nil }
    var body = macro.body[...]
    while body.count >= 3, body.first?.text == "(", body.last?.text == ")" { body = body.dropFirst().dropLast() }
    guard body.count == 1, let only = body.first else { return nil }
    return integer(only, depth: depth + 1)
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
