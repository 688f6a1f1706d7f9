/// Finds the declarations at namespace scope.
///
/// This is no C++ parser: it needs bracket pairs, a few keywords, and where
/// parameter lists and bodies are. Wrong C++ ends up as `.other`, and the
/// compiler reports it.
struct DeclarationScanner {
  private let list: TokenList
  private var declarations: [Declaration] = []

  static func scan(_ list: TokenList) -> [Declaration] {
    var scanner = DeclarationScanner(list: list)
    scanner.scan(list.indices, qualifier: "", depth: 0)
    return scanner.declarations
  }

  private init(list: TokenList) {
    self.list = list
  }

  /// - Parameter depth: namespaces that it is inside of.
  private mutating func scan(_ range: Range<Int>, qualifier: String, depth: Int) {
    var position = range.lowerBound
    while position < range.upperBound {
      let text = list.text(position)
      if text == ";" || text == "}" || text == ")" || text == "]" {
        position += 1
      } else if let open = scopeStart(position, in: range) {
        let close = min(list.partner[open], range.upperBound)
        if depth < TokenList.maximumDepth {
          scan(span(open + 1, close), qualifier: qualifier + scopeName(position, open), depth: depth + 1)
        }
        position = close + 1
      } else {
        let end = declarationEnd(position, in: range)
        declarations.append(declaration(span(position, end), qualifier: qualifier))
        position = end
      }
    }
  }

  /// The `{` of a namespace or of `extern "C" {` that begins at `position`.
  private func scopeStart(_ position: Int, in range: Range<Int>) -> Int? {
    var index = position
    if list.text(index) == "extern", list.tokens[index].kind == .identifier,
      index + 1 < range.upperBound, list.tokens[index + 1].kind == .string, list.text(index + 2) == "{"
    {
      return index + 2
    }
    if list.text(index) == "inline" { index += 1 }
    guard list.text(index) == "namespace" else { return nil }
    index += 1
    while index < range.upperBound {
      if list.text(index) == "{" { return index }
      if list.text(index) == "[" {
        index = list.after(index)
      } else if list.isIdentifier(index) || list.text(index) == "::" {
        index += 1
      } else {
        return nil
      }
    }
    return nil
  }

  private func scopeName(_ position: Int, _ open: Int) -> String {
    var name = ""
    var index = position
    while index < open {
      if list.text(index) == "[" {
        index = list.after(index)
        continue
      }
      if list.isIdentifier(index), !["extern", "inline", "namespace"].contains(list.text(index)) {
        name += list.text(index) + "::"
      }
      index += 1
    }
    return name
  }

  /// Words before a `(` that is no parameter list.
  private static let operatorWords: Set<String> = [
    "alignas", "alignof", "decltype", "sizeof", "noexcept", "__attribute__", "static_assert", "explicit", "if",
  ]

  private func isParameterList(_ index: Int) -> Bool {
    let last = declaratorEnd(before: index)
    guard last >= 0 else { return false }
    if list.isIdentifier(last) { return !Self.operatorWords.contains(list.text(last)) }
    return list.text(last) == ">" || isOperatorName(index)
  }

  /// The last token of the name before a parameter list that opens at `index`:
  /// attributes of the name may stand in between.
  private func declaratorEnd(before index: Int) -> Int {
    var last = index - 1
    while last >= 0, list.text(last) == "]", list.partner[last] >= 0,
      Attribute.isListStart(list.partner[last], of: list)
    {
      last = list.partner[last] - 1
    }
    return last
  }

  /// Whether the token before `index` ends a name such as `operator+`.
  private func isOperatorName(_ index: Int) -> Bool {
    (1...3).contains { list.text(index - $0) == "operator" }
  }

  private func declarationEnd(_ start: Int, in range: Range<Int>) -> Int {
    var position = start
    var sawParameters = false
    var sawEquals = false
    while position < range.upperBound {
      switch list.text(position) {
      case ";": return position + 1
      case "template" where list.text(position + 1) == "<":
        position = (list.closingAngle(position + 1) ?? position) + 1
        continue
      case "=" where list.text(position - 1) != "operator": sawEquals = true
      case "(":
        if !sawEquals, isParameterList(position) { sawParameters = true }
        position = list.after(position)
        continue
      case "[":
        position = list.after(position)
        continue
      case "{":
        position = list.after(position)
        if sawParameters, !sawEquals { return min(position, range.upperBound) }
        continue
      case "}", ")", "]": return position
      default: break
      }
      position += 1
    }
    return range.upperBound
  }

  // MARK: One declaration

  private func declaration(_ tokens: Range<Int>, qualifier: String) -> Declaration {
    var start = tokens.lowerBound
    var parameters: [TemplateParameter]?
    var isInstantiation = false
    while start < tokens.upperBound {
      if Attribute.isListStart(start, of: list) {
        start = list.after(start)
      } else if list.text(start) == "template" {
        guard list.text(start + 1) == "<", let close = list.closingAngle(start + 1) else {
          isInstantiation = true
          start += 1
          continue
        }
        parameters = (parameters ?? []) + TemplateParameter.parse(start + 1, close, of: list)
        start = close + 1
      } else {
        break
      }
    }
    let shape = isInstantiation ? Shape(kind: .instantiation, nameToken: start) : shape(span(start, tokens.upperBound))
    let attributeEnd = shape.body.map { $0.lowerBound - 1 } ?? tokens.upperBound
    let isOperator = shape.kind == .function && (1...3).contains { list.text(shape.nameToken + 1 - $0) == "operator" }
    return Declaration(
      kind: shape.kind, name: isOperator ? "operator" : list.text(shape.nameToken), nameToken: shape.nameToken,
      qualifier: qualifier,
      tokens: tokens, templateParameters: parameters, headStart: start,
      attributes: Attribute.attributes(in: span(tokens.lowerBound, attributeEnd), of: list),
      parameters: shape.parameters, body: shape.kind == .function ? shape.body : nil)
  }

  private struct Shape {
    var kind = Declaration.Kind.other
    var nameToken: Int
    var parameters = 0..<0
    var body: Range<Int>?
  }

  private func shape(_ range: Range<Int>) -> Shape {
    var shape = Shape(nameToken: range.lowerBound)
    switch list.text(range.lowerBound) {
    case "using" where list.text(range.lowerBound + 2) == "=":
      shape.kind = .alias
      shape.nameToken = range.lowerBound + 1
      return shape
    case "using", "namespace", "static_assert", "friend": return shape
    case "typedef":
      shape.kind = .alias
      shape.nameToken = typedefName(range)
      return shape
    default: break
    }
    var position = range.lowerBound
    var typeWord: Int?
    while position < range.upperBound {
      switch list.text(position) {
      case "[":
        if !Attribute.isListStart(position, of: list) { return variable(shape, nameToken: position - 1) }
        position = list.after(position)
        continue
      case "(" where isParameterList(position):
        return function(shape, open: position, in: range)
      case "(":
        position = list.after(position)
        continue
      case "<":
        if list.isIdentifier(position - 1), list.text(position - 1) != "operator",
          let close = list.closingAngle(position)
        {
          position = close
        }
      case "{":
        if let typeWord { return type(shape, keyword: typeWord, open: position) }
        return variable(shape, nameToken: lastName(before: position))
      case "=", ";", ",":
        if let typeWord, list.text(position) == ";", lastName(before: position) <= typeWord + 1 {
          return type(shape, keyword: typeWord, open: nil)
        }
        return variable(shape, nameToken: lastName(before: position))
      case let text where ClassDefinition.typeKeys.contains(text):
        typeWord = position
      default: break
      }
      position += 1
    }
    return shape
  }

  private func variable(_ shape: Shape, nameToken: Int) -> Shape {
    var shape = shape
    shape.kind = list.isIdentifier(nameToken) ? .variable : .other
    shape.nameToken = nameToken
    return shape
  }

  private func function(_ shape: Shape, open: Int, in range: Range<Int>) -> Shape {
    var shape = shape
    let close = list.after(open) - 1
    shape.nameToken = declaratorEnd(before: open)
    if list.text(shape.nameToken) == ">", let angle = list.openingAngle(shape.nameToken) { shape.nameToken = angle - 1 }
    guard shape.nameToken >= range.lowerBound else { return shape }
    shape.parameters = span(open + 1, close)
    shape.kind = .function
    if list.text(range.upperBound - 1) == "}", list.partner[range.upperBound - 1] >= 0 {
      shape.body = span(list.partner[range.upperBound - 1] + 1, range.upperBound - 1)
    }
    return shape
  }

  private func type(_ shape: Shape, keyword: Int, open: Int?) -> Shape {
    var shape = shape
    shape.kind = .type
    var index = keyword + 1
    while index < (open ?? list.count) {
      if list.text(index) == "[" {
        index = list.after(index)
      } else if list.text(index) == "alignas" || list.text(index) == "__attribute__", list.text(index + 1) == "(" {
        index = list.after(index + 1)
      } else if ClassDefinition.typeKeys.contains(list.text(index)) {
        index += 1
      } else {
        break
      }
    }
    shape.nameToken = index
    return shape
  }

  /// The last identifier before `index` that is not inside a `[[...]]` list.
  private func lastName(before index: Int) -> Int {
    var position = index - 1
    while position > 0 {
      if list.text(position) == "]" || list.text(position) == ")", list.partner[position] >= 0 {
        position = list.partner[position] - 1
      } else if list.isIdentifier(position) {
        return position
      } else {
        position -= 1
      }
    }
    return max(position, 0)
  }

  private func typedefName(_ range: Range<Int>) -> Int {
    lastName(before: range.upperBound)
  }
}
