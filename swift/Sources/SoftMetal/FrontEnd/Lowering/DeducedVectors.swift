/// Lets the compiler find T and N of `vec<T, N>` from an argument.
///
/// `vec<bool, 3>` is another kind of type than `vec<float, 3>`, and between the
/// two the compiler cannot search. Where it has to, in the parameters of a
/// function template that is called without template arguments and in a partial
/// specialisation, `vec` becomes `sm_vector`, which is never of bool.
struct DeducedVectors {
  private let list: TokenList
  /// Template aliases that mention `vec`, with the tokens of what they stand for.
  private let aliases: [String: Range<Int>]
  /// Names that are followed by a call's parenthesis.
  private let called: Set<String>

  static func lower(_ context: inout LoweringContext) {
    guard context.list.indices.contains(where: { context.list.text($0) == "vec" }) else { return }
    let vectors = DeducedVectors(context)
    var tokens: Set<Int> = []
    for token in vectors.list.indices where vectors.list.text(token) == "template" {
      if let (names, pattern) = vectors.pattern(token) { vectors.add(pattern, names, to: &tokens) }
    }
    for token in tokens.sorted() { context.edits.replace(context.list.tokens[token].range, with: "sm_vector") }
  }

  private init(_ context: LoweringContext) {
    let list = context.list
    self.list = list
    var aliases: [String: Range<Int>] = [:]
    for token in list.indices
    where list.text(token) == "using" && list.text(token - 1) == ">" && list.text(token + 2) == "=" {
      let end = span(token, list.count).first { list.text($0) == ";" } ?? list.count
      let type = span(token + 3, end)
      if type.contains(where: { list.text($0) == "vec" }) { aliases[list.text(token + 1)] = type }
    }
    self.aliases = aliases
    let declared = Set(context.declarations.lazy.filter { $0.kind == .function }.map(\.nameToken))
    called = Set(
      list.indices.lazy.filter { list.isIdentifier($0) && list.text($0 + 1) == "(" && !declared.contains($0) }
        .map { list.text($0) })
  }

  /// The parameters of the template at `token`, and the tokens that arguments are matched with.
  private func pattern(_ token: Int) -> (names: Set<String>, Range<Int>)? {
    guard list.text(token + 1) == "<", let close = list.closingAngle(token + 1) else { return nil }
    let names = Set(TemplateParameter.parse(token + 1, close, of: list).map(\.name))
    if ClassDefinition.keys.contains(list.text(close + 1)) {
      guard list.text(close + 3) == "<", let end = list.closingAngle(close + 3) else { return nil }
      return (names, close + 3..<end)
    }
    var position = close + 1
    while position < list.count, !["{", ";", "=", "kernel"].contains(list.text(position)) {
      guard list.text(position) == "(" else {
        position += 1
        continue
      }
      let name = position - 1
      if !["decltype", "alignas", "__attribute__", "explicit"].contains(list.text(name)) {
        let isOperator = (1...3).contains { list.text(position - $0) == "operator" }
        return isOperator || called.contains(list.text(name)) ? (names, span(position, list.after(position))) : nil
      }
      position = list.after(position)
    }
    return nil
  }

  /// Adds each `vec` of `range` whose arguments mention one of the names, directly or through an alias.
  private func add(_ range: Range<Int>, _ names: Set<String>, to tokens: inout Set<Int>) {
    for token in range where list.text(token + 1) == "<" {
      guard let close = list.closingAngle(token + 1), (token..<close).contains(where: { names.contains(list.text($0)) })
      else { continue }
      if list.text(token) == "vec" { tokens.insert(token) }
      for inner in aliases[list.text(token)] ?? 0..<0 where list.text(inner) == "vec" { tokens.insert(inner) }
    }
  }
}
