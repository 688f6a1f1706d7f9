/// Every source goes through the preprocessor before it is lowered, so that no macro and no conditional line hides
/// what lowering must see. The headers of the language are put back afterwards.
enum Preprocessing {
  /// Whether the preprocessor would leave a source as it is: it only includes headers of the language and says where
  /// its lines come from, and has no name that may be a predefined macro. This spares a run of clang.
  static func isIdentity(_ source: SourceText) -> Bool {
    if hasOtherLines(source.bytes) { return false }
    let list = TokenList(source)
    let includes = headers(list).count
    let kept = list.directives.filter { isKept(tokens(of: $0, source)) }.count
    return !list.endsInComment && list.directives.count == includes + kept
      && !list.tokens.contains { $0.text.hasPrefix("__") || $0.text == "_Pragma" }
  }

  /// Whether lines are other than they look: one goes on behind a backslash, ends with a carriage return alone, or may
  /// be a directive by `%:`.
  private static func hasOtherLines(_ bytes: [UInt8]) -> Bool {
    zip(bytes, bytes.dropFirst()).contains { byte, next in
      switch byte {
      case UInt8(ascii: "\\"): Tokenizer.isSpace(next)
      case UInt8(ascii: "\r"): next != UInt8(ascii: "\n")
      case UInt8(ascii: "%"): next == UInt8(ascii: ":")
      default: false
      }
    }
  }

  /// Whether a directive is none of the preprocessor's: a pragma, or `line 12 "file"`, as `LineTable` reads it.
  private static func isKept(_ tokens: [Token]) -> Bool {
    switch tokens.first?.text {
    case "pragma": true
    case "line":
      (2...3).contains(tokens.count) && Int(tokens[1].text) != nil
        && tokens.dropFirst(2).allSatisfy { $0.kind == .string }
    default: false
    }
  }

  private static func tokens(of directive: Token, _ source: SourceText) -> [Token] {
    Tokenizer.tokenize(source.bytes, in: directive.range.lowerBound + 1..<directive.range.upperBound)
  }

  /// The headers of the language that a source, preprocessed or not, includes.
  static func headers(_ list: TokenList) -> [String] {
    let names = Set(HeaderFolder.headers.map(\.name))
    return list.directives.compactMap { directive in
      guard ["include", "pragma"].contains(tokens(of: directive, list.source).first?.text) else { return nil }
      let parts = list.source.string(directive.range).split { "<> \t".contains($0) }
      return parts.first { names.contains(String($0)) }.map(String.init)
    }
  }

  private static let includePragma = "#pragma softmetal_include "

  /// What stands in for the header `name` while a source is preprocessed, so that only the user's own macros are
  /// expanded. The language's own macros are defined, as themselves, for `#ifdef`.
  static func stub(forHeader name: String) -> String {
    includePragma + "<" + name + ">\n" + definitions
  }

  /// What is a keyword to Metal gives way to a macro that comes before: no header of Apple's defines it.
  private static let definitions = HeaderFolder.headers.flatMap { header in
    macros(of: header.bytes).map { name in
      let definition = "#define \(name) \(name)\n"
      return header.name == "metal_types" ? "#ifndef \(name)\n\(definition)#endif\n" : definition
    }
  }.joined()

  /// The macros without parameters that a header defines for users.
  private static func macros(of header: [UInt8]) -> [String] {
    TokenList(SourceText(header)).directives.compactMap { directive in
      let tokens = Tokenizer.tokenize(header, in: directive.range.lowerBound + 1..<directive.range.upperBound)
      guard tokens.count > 2, tokens[0].text == "define", !tokens[1].text.hasPrefix("SM_") else { return nil }
      let isFunctionLike = tokens[2].text == "(" && tokens[2].range.lowerBound == tokens[1].range.upperBound
      return isFunctionLike ? nil : tokens[1].text
    }
  }

  /// The preprocessor's output without the names of folders in its line markers,
  /// since the key of a compiled object must not depend on them.
  static func withoutFolders(_ folders: [String], in output: [UInt8]) -> [UInt8] {
    let newline = UInt8(ascii: "\n")
    let lines = output.split(separator: newline, omittingEmptySubsequences: false).map { line -> [UInt8] in
      guard line.starts(with: "# ".utf8), let quote = line.firstIndex(of: UInt8(ascii: "\"")) else {
        return Array(line)
      }
      let path = line[(quote + 1)...]
      guard let folder = folders.first(where: { path.starts(with: $0.utf8) }) else { return Array(line) }
      return Array(line[...quote]) + path.dropFirst(folder.utf8.count)
    }
    return Array(lines.joined(separator: [newline]))
  }

  /// Turns the stubs' lines back into includes, and the preprocessor's own line markers into the standard's.
  static func restoreDirectives(_ context: inout LoweringContext) {
    for directive in context.list.directives {
      let text = context.list.source.string(directive.range)
      if text.hasPrefix(includePragma) {
        context.edits.replace(directive.range, with: "#include " + text.dropFirst(includePragma.count))
      } else if text.hasPrefix("# "), let end = text.lastIndex(of: "\"") {
        context.edits.replace(directive.range, with: "#line" + text.dropFirst()[...end])
      }
    }
  }
}
