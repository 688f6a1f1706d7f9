/// What the steps of lowering share: the source's tokens and declarations, and
/// the edits and errors that they gather.
struct LoweringContext {
  let list: TokenList
  let declarations: [Declaration]
  var edits = EditList()
  var diagnostics: [SourceDiagnostic] = []
  /// Names of ours for kernels that share theirs with another function, by declaration.
  var kernelNames: [Int: String] = [:]

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

  /// Before the end of the text where no such token is.
  mutating func insert(_ text: String, before token: Int) {
    edits.insert(text, at: list.byteRange(token..<token).lowerBound)
  }

  mutating func insert(_ text: String, after token: Int) {
    edits.insert(text, at: list.tokens[token].range.upperBound)
  }

  /// Sets text around tokens.
  mutating func wrap(_ tokens: Range<Int>, _ before: String, _ after: String) {
    edits.wrap(list.byteRange(tokens), before, after)
  }

  /// A declaration in the namespace that `qualifier` names, such as `metal::detail::`.
  static func inNamespace(_ qualifier: String, _ declaration: String) -> String {
    qualifier.isEmpty ? declaration : "namespace \(qualifier.dropLast(2)) { \(declaration) }"
  }

  /// `range` after the edits made so far, on one line and without comments.
  func lowered(_ range: Range<Int>) -> String { loweredText(list.byteRange(range)) }

  /// The same for a range of bytes.
  func loweredText(_ range: Range<Int>) -> String {
    let text = edits.apply(to: list.source, in: range).bytes
    return Tokenizer.tokenize(text).map { String(decoding: text[$0.range], as: UTF8.self) }.joined(separator: " ")
  }
}
