/// A declaration at namespace scope.
struct Declaration {
  enum Kind {
    case function
    case type
    case alias
    case variable
    /// `template void f<float>();`
    case instantiation
    case other
  }

  let kind: Kind
  /// The declared name, unqualified; of variables the first.
  let name: String
  let nameToken: Int
  /// Enclosing namespaces as a prefix, such as `metal::detail::`; or empty.
  let qualifier: String
  /// From the first token through the closing `;` or `}`.
  let tokens: Range<Int>
  /// Nil for what is not a template.
  let templateParameters: [TemplateParameter]?
  /// Where the text after `template <...>` starts.
  let headStart: Int
  /// Of the `[[...]]` lists before the body, those of parameters excluded.
  let attributes: [Attribute]
  /// Tokens between the parentheses of a function's parameters.
  let parameters: Range<Int>
  /// Tokens between the braces of a function; nil for a mere declaration.
  let body: Range<Int>?

  var isExplicitSpecialization: Bool { templateParameters?.isEmpty ?? false }

  func attribute(_ name: String) -> Attribute? {
    attributes.first { $0.name == name }
  }
}

/// A parameter of a template, with its default.
struct TemplateParameter {
  let name: String
  /// Without the default.
  let tokens: Range<Int>
  let isType: Bool
  let isPack: Bool
  /// Empty without one.
  let defaultArgument: Range<Int>

  /// The parameters between the `<` at token `open` and its partner at `close`.
  static func parse(_ open: Int, _ close: Int, of list: TokenList) -> [TemplateParameter] {
    list.splitAtCommas(span(open + 1, close)).compactMap { part in
      var head = part
      var defaultArgument = part.upperBound..<part.upperBound
      if let equals = part.first(where: { list.text($0) == "=" }) {
        head = part.lowerBound..<equals
        defaultArgument = equals + 1..<part.upperBound
      }
      guard let name = functionName(head, list) ?? head.last(where: { list.isIdentifier($0) }) else { return nil }
      let first = list.text(head.lowerBound)
      let isType = (first == "typename" || first == "class") && !head.contains { list.text($0) == "::" }
      guard !isType || name > head.lowerBound else { return nil }
      return TemplateParameter(
        name: list.text(name), tokens: head, isType: isType, isPack: head.contains { list.text($0) == "..." },
        defaultArgument: defaultArgument)
    }
  }

  /// The name in `R (*name)(P)`, or nil.
  private static func functionName(_ tokens: Range<Int>, _ list: TokenList) -> Int? {
    tokens.first { token in
      list.text(token - 2) == "(" && ["*", "&"].contains(list.text(token - 1)) && list.text(token + 1) == ")"
        && list.text(token + 2) == "(" && list.isIdentifier(token)
    }
  }

  /// The token ranges between `template <` and its partner.
  static func lists(of list: TokenList) -> [Range<Int>] {
    list.indices.compactMap { token in
      guard list.text(token) == "template", list.text(token + 1) == "<" else { return nil }
      return list.closingAngle(token + 1).map { span(token + 2, $0) }
    }
  }

  /// The names of all type parameters of a source.
  static func types(of list: TokenList) -> Set<String> {
    let parameters = lists(of: list).flatMap { parse($0.lowerBound - 1, $0.upperBound, of: list) }
    return Set(parameters.filter(\.isType).map(\.name))
  }
}
