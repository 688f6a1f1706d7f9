/// A member function as its text shows it, with a body or without.
struct MemberFunction {
  /// The whole declaration.
  let tokens: Range<Int>
  /// The token before the parameters, or before their template arguments.
  let name: Int
  /// With the parentheses.
  let parameters: Range<Int>
  let isConstructor: Bool
  let isStatic: Bool
  let isConst: Bool
  /// The token of an address space behind the parameters, or nil.
  let space: Int?

  /// All of a class but friends.
  static func all(of definition: ClassDefinition, _ list: TokenList) -> [MemberFunction] {
    var result: [MemberFunction] = []
    var start = definition.open + 1
    var position = start
    while position < definition.close {
      switch list.text(position) {
      case ";": start = position + 1
      case ":" where position == start + 1: start = position + 1
      case "{":
        position = list.after(position) - 1
        start = position + 1
      case "template" where list.text(position + 1) == "<":
        position = list.closingAngle(position + 1) ?? position
      case "[": position = list.after(position) - 1
      case "<" where list.isIdentifier(position - 1) && list.text(position - 1) != "operator":
        position = list.closingAngle(position) ?? position
      case "=" where list.text(position - 1) != "operator":
        position = min(list.statementEnd(position), definition.close) - 1
      case "(":
        guard list.text(position - 1) != "operator", isFunction(start, position, list) else {
          position = list.after(position) - 1
          break
        }
        let end = end(after: list.after(position), definition, list)
        result.append(MemberFunction(start..<end, open: position, definition, list))
        position = end
        start = end
        continue
      default: break
      }
      position += 1
    }
    return result
  }

  private init(_ tokens: Range<Int>, open: Int, _ definition: ClassDefinition, _ list: TokenList) {
    self.tokens = tokens
    parameters = open..<list.after(open)
    var name = open - 1
    if list.text(name) == ">", let angle = list.openingAngle(name) { name = angle - 1 }
    self.name = name
    let words = Set(span(tokens.lowerBound, open).map { list.text($0) })
    isStatic = words.contains("static")
    isConstructor = list.text(name) == definition.name && !words.contains("operator")
    var end = parameters.upperBound
    while ["const", "volatile"].contains(list.text(end)) { end += 1 }
    isConst = span(parameters.upperBound, end).contains { list.text($0) == "const" }
    space = AddressSpace.all.contains(list.text(end)) ? end : nil
  }

  /// Whether the parenthesis at `open` begins the parameters of a member function.
  private static func isFunction(_ start: Int, _ open: Int, _ list: TokenList) -> Bool {
    let words = Set(span(start, open).map { list.text($0) })
    guard words.isDisjoint(with: ["typedef", "using", "static_assert", "friend"]) else { return false }
    if ["alignas", "__attribute__", "decltype", "sizeof"].contains(list.text(open - 1)) { return false }
    return words.contains("operator") || list.isIdentifier(open - 1) || list.text(open - 1) == ">"
  }

  /// The index behind a function whose parameters end before `position`.
  private static func end(after position: Int, _ definition: ClassDefinition, _ list: TokenList) -> Int {
    var position = position
    while position < definition.close {
      switch list.text(position) {
      case ";": return position + 1
      case "(", "[": position = list.after(position)
      case "{":
        // The braces of `S() : member{1} {}` follow a name, and a comma or the body follows them.
        let after = list.after(position)
        guard list.isIdentifier(position - 1), [",", "{"].contains(list.text(after)) else { return after }
        position = after
      default: position += 1
      }
    }
    return definition.close
  }
}
