/// The definition of a struct, class or union, and what its text tells of its
/// members.
struct ClassDefinition {
  let name: String
  /// The braces.
  let open: Int
  let close: Int
  /// Names of the classes after the colon.
  private(set) var bases: Set<String> = []
  /// Data members that a reference can be bound to: no bit fields, nothing static.
  private(set) var dataMembers: Set<String> = []
  private(set) var functions: Set<String> = []
  private(set) var staticFunctions: Set<String> = []

  /// All definitions of a source that have a name.
  static func all(_ list: TokenList) -> [ClassDefinition] {
    list.indices.compactMap { token in
      guard keys.contains(list.text(token)), list.text(token - 1) != "enum", let head = head(token, list) else {
        return nil
      }
      return ClassDefinition(head, list)
    }
  }

  static let keys: Set<String> = ["struct", "class", "union"]
  /// With the key of the one definition of a type that is no class.
  static let typeKeys = keys.union(["enum"])

  /// The name and the opening brace of the definition that a class key at
  /// `token` begins, or nil.
  static func head(_ token: Int, _ list: TokenList) -> (name: Int, open: Int)? {
    var name = token + 1
    while name < list.count {
      if Attribute.isListStart(name, of: list) {
        name = list.after(name)
      } else if ["alignas", "__attribute__"].contains(list.text(name)), list.text(name + 1) == "(" {
        name = list.after(name + 1)
      } else {
        break
      }
    }
    guard list.isIdentifier(name) else { return nil }
    var position = name + 1
    if list.text(position) == "<" {
      guard let close = list.closingAngle(position) else { return nil }
      position = close + 1
    }
    if list.text(position) == "final" { position += 1 }
    if list.text(position) == ":" {
      while position < list.count, !["{", ";", "(", ")"].contains(list.text(position)) { position += 1 }
    }
    return list.text(position) == "{" ? (name, position) : nil
  }

  private init(_ head: (name: Int, open: Int), _ list: TokenList) {
    name = list.text(head.name)
    open = head.open
    close = min(list.partner[head.open], list.count)
    bases = Set(span(head.name + 1, open).filter { list.isIdentifier($0) }.map { list.text($0) })
    addMembers(span(open + 1, close), list, depth: 0)
  }

  /// - Parameter depth: structs and unions without a name that it is inside of.
  private mutating func addMembers(_ range: Range<Int>, _ list: TokenList, depth: Int) {
    guard depth < TokenList.maximumDepth else { return }
    var position = range.lowerBound
    var start = position
    // The name before the parameters of a function, once they are passed.
    var function: Int?
    while position < range.upperBound {
      switch list.text(position) {
      case "template" where list.text(position + 1) == "<":
        position = list.closingAngle(position + 1) ?? position
      case "(":
        if function == nil,
          list.isIdentifier(position - 1) || (2...3).contains(where: { list.text(position - $0) == "operator" }),
          !span(start, position).contains(where: { list.text($0) == "=" && list.text($0 - 1) != "operator" }),
          !["alignas", "__attribute__", "decltype"].contains(list.text(position - 1))
        {
          function = position - 1
        }
        position = list.after(position) - 1
      case "[": position = list.after(position) - 1
      case "<" where list.isIdentifier(position - 1) && list.text(position - 1) != "operator":
        position = list.closingAngle(position) ?? position
      case "{":
        let close = list.after(position) - 1
        if let name = function {
          // `S() : member{1} {}`
          if ![")", "}"].contains(list.text(position - 1)), list.text(name) == self.name { break }
          addFunction(name, start, list)
          (start, function) = (close + 1, nil)
        } else if Self.keys.contains(list.text(position - 1)), list.text(close + 1) == ";" {
          addMembers(span(position + 1, close), list, depth: depth + 1)
          start = close + 1
        } else if Self.isDefinition(start, position, list) {
          start = close + 1
        }
        position = close
      case ":" where position == start + 1 && ["public", "private", "protected"].contains(list.text(start)):
        start = position + 1
      case ";":
        if let name = function { addFunction(name, start, list) } else { addData(span(start, position), list) }
        (start, function) = (position + 1, nil)
      default: break
      }
      position += 1
    }
  }

  /// Whether a class key or `enum` is between the tokens, and the brace at `open` belongs to it.
  private static func isDefinition(_ start: Int, _ open: Int, _ list: TokenList) -> Bool {
    span(start, open).contains { keys.contains(list.text($0)) || list.text($0) == "enum" }
      && !span(start, open).contains { list.text($0) == "=" }
  }

  private mutating func addFunction(_ name: Int, _ start: Int, _ list: TokenList) {
    let words = Set(span(start, name).map { list.text($0) })
    guard list.isIdentifier(name), list.text(name) != self.name,
      words.isDisjoint(with: ["friend", "operator"]), list.text(name) != "operator"
    else { return }
    if words.contains("static") {
      staticFunctions.insert(list.text(name))
    } else {
      functions.insert(list.text(name))
    }
  }

  private mutating func addData(_ tokens: Range<Int>, _ list: TokenList) {
    let words = Set(tokens.map { list.text($0) })
    guard words.isDisjoint(with: ["using", "typedef", "friend", "static", "static_assert", "template"]) else { return }
    for declarator in list.splitAtCommas(tokens) {
      guard
        let end = declarator.first(where: { ["[", "=", "{"].contains(list.text($0)) })
          ?? declarator.last.map({ $0 + 1 }),
        list.isIdentifier(end - 1), list.text(end - 2) != ":"
      else { continue }
      dataMembers.insert(list.text(end - 1))
    }
  }
}
