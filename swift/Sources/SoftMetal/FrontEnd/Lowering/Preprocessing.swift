/// Decides whether a source has to go through the preprocessor before it is
/// lowered: when macros or conditional lines hide what lowering must see.
/// Otherwise the text is lowered as it is, so that columns stay exact.
enum Preprocessing {
  /// Words in the body of a macro that lowering must see expanded.
  private static let hiddenWords = Set([
    "kernel", "constant", "threadgroup", "host_name", "function_constant", "is_function_constant_defined",
    "struct", "class", "template", "typedef", "using", "static_cast", "namespace", "std",
  ]).union(Refusals.words.keys)

  static func isNeeded(_ source: SourceText) -> Bool {
    let list = TokenList(source)
    return Macro.macros(of: list).contains(where: hides)
      || hasComputedHostName(list) || conditionalHides(list)
  }

  /// Whether some lines may be none of the program: what is wrong with them does not count.
  static func hasConditionals(_ source: SourceText) -> Bool {
    TokenList(source).directives.contains { ["if", "ifdef", "ifndef"].contains(directiveName($0, source)) }
  }

  private static func hides(_ macro: Macro) -> Bool {
    if macro.name == "kernel" || macro.name == "constant" || macro.name == "threadgroup" { return true }
    // A lambda.
    if macro.body.first?.text == "[" { return true }
    var depth = 0
    for (index, token) in macro.body.enumerated() {
      switch token.text {
      case "(", "{": depth += 1
      case "[":
        depth += 1
        if index + 1 < macro.body.count, macro.body[index + 1].text == "[" { return true }
      case ")", "]", "}":
        depth -= 1
        if depth < 0 { return true }
      default:
        if token.kind == .identifier, hiddenWords.contains(token.text) { return true }
      }
    }
    return depth != 0
  }

  private static func hasComputedHostName(_ list: TokenList) -> Bool {
    list.indices.contains { token in
      list.text(token) == "host_name" && list.text(token + 1) == "("
        && span(token + 2, list.after(token + 1) - 1).contains { list.tokens[$0].kind != .string }
    }
  }

  /// Whether a branch of a conditional holds a kernel, an attribute of the
  /// language, or brackets that do not pair.
  private static func conditionalHides(_ list: TokenList) -> Bool {
    var token = 0
    var depth = 0
    var open = 0
    let size = list.source.bytes.count
    for directive in list.directives + [Token(kind: .directive, range: size..<size, text: "")] {
      while token < list.count, list.tokens[token].range.lowerBound < directive.range.lowerBound {
        if depth > 0 {
          switch list.text(token) {
          case "(", "[", "{": open += 1
          case ")", "]", "}": open -= 1
          case "kernel": return true
          default: break
          }
          if open < 0 || isMetalAttribute(token, list) { return true }
        }
        token += 1
      }
      switch directiveName(directive, list.source) {
      case "if", "ifdef", "ifndef":
        if depth > 0, open != 0 { return true }
        depth += 1
        open = 0
      case "else", "elif", "elifdef", "elifndef":
        if open != 0 { return true }
      case "endif":
        if open != 0 { return true }
        depth = max(depth - 1, 0)
      default: break
      }
    }
    return false
  }

  private static func isMetalAttribute(_ token: Int, _ list: TokenList) -> Bool {
    Attribute.isListStart(token, of: list)
      && Attribute.parseList(token, of: list).contains { !Attribute.standardNames.contains($0.name) }
  }

  static func directiveName(_ directive: Token, _ source: SourceText) -> String {
    let range = directive.range.isEmpty ? directive.range : directive.range.lowerBound + 1..<directive.range.upperBound
    return Tokenizer.tokenize(source.bytes, in: range).first?.text ?? ""
  }

  // MARK: Headers of the language

  /// The headers of the language that a source, preprocessed or not, includes.
  static func headers(_ list: TokenList) -> [String] {
    let names = Set(HeaderFolder.headers.map(\.name))
    return list.directives.compactMap { directive in
      let parts = list.source.string(directive.range).split { "<> \t".contains($0) }
      return parts.first { names.contains(String($0)) }.map(String.init)
    }
  }

  private static let includePragma = "#pragma softmetal_include "

  /// What stands in for the header `name` while a source is preprocessed, so
  /// that only the user's own macros are expanded.
  static func stub(forHeader name: String) -> String {
    includePragma + "<" + name + ">\n"
  }

  /// Turns the stubs' lines back into includes.
  static func restoreIncludes(_ context: inout LoweringContext) {
    for directive in context.list.directives {
      let text = context.list.source.string(directive.range)
      if text.hasPrefix(includePragma) {
        context.edits.replace(directive.range, with: "#include " + text.dropFirst(includePragma.count))
      }
    }
  }
}
