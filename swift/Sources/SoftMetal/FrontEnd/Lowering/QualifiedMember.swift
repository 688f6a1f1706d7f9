/// A member function for objects in device, constant or threadgroup memory.
struct QualifiedMember {
  enum Kind: Equatable {
    case function
    /// `operator[]`, `operator()` and `operator=`, by the names of the functions that stand for them.
    case named(String)
    /// Any other operator.
    case symbol
    case conversion
    case constructor
  }

  /// The address space, as its object type in the headers is called: `Device` of `DeviceObject`.
  let space: String
  let kind: Kind
  /// The address space itself.
  let qualifier: Int
  /// The name, or the word `operator`.
  let name: Int
  /// The parameters with their parentheses.
  let parameters: Range<Int>
  let isConst: Bool
  /// The opening brace; nil for a declaration.
  let body: Int?
  /// The class, by its name where the function is defined outside of it.
  let owner: ClassDefinition?

  private static let spaces = ["device": "Device", "constant": "Constant", "threadgroup": "Threadgroup"]
  static let operators = ["[": "sm_at", "(": "sm_call", "=": "sm_assign"]

  static func all(_ list: TokenList, _ classes: [ClassDefinition]) -> [QualifiedMember] {
    list.indices.compactMap { QualifiedMember(qualifier: $0, list, classes) }
  }

  /// Nil where `qualifier` is no address space of a member function.
  private init?(qualifier: Int, _ list: TokenList, _ classes: [ClassDefinition]) {
    guard let space = Self.spaces[list.text(qualifier)] else { return nil }
    var close = qualifier - 1
    while ["const", "volatile"].contains(list.text(close)) { close -= 1 }
    var end = qualifier + 1
    while ["const", "volatile"].contains(list.text(end)) { end += 1 }
    guard list.text(close) == ")", list.partner[close] > 0,
      ["{", ";", ":"].contains(list.text(end)) || (list.text(end) == "->" && list.isIdentifier(end + 1))
    else { return nil }
    let open = list.partner[close]
    let enclosing = list.enclosingBrace(qualifier)
    let (name, kind) = Self.name(open, list)
    guard list.isIdentifier(name) else { return nil }
    self.space = space
    self.qualifier = qualifier
    self.name = name
    parameters = open..<close + 1
    isConst = span(close, end).contains { list.text($0) == "const" }
    owner =
      classes.first { $0.open == enclosing }
      ?? Self.qualification(name, list).flatMap { name in classes.first { $0.name == name } }
    let isConstructor = list.text(name) == owner?.name
    self.kind = isConstructor ? .constructor : kind
    if list.text(end) == "->" { end = span(end, list.count).first { ["{", ";"].contains(list.text($0)) } ?? end }
    body = list.text(end) == "{" && !isConstructor ? end : nil
  }

  /// The name, or `operator`, before the parameters at `open`.
  private static func name(_ open: Int, _ list: TokenList) -> (Int, Kind) {
    if let word = (2...3).first(where: { list.text(open - $0) == "operator" }).map({ open - $0 }) {
      if let function = operators[list.text(word + 1)] { return (word, .named(function)) }
      if !list.isIdentifier(word + 1) { return (word, .symbol) }
    }
    var position = open - 1
    while position > 0, list.isIdentifier(position) || ["::", "<", ">", ","].contains(list.text(position)) {
      if list.text(position) == "operator" { return (position, .conversion) }
      position -= 1
    }
    return (open - 1, .function)
  }

  /// The class of `Class::name` and `Class<T>::name`.
  static func qualification(_ name: Int, _ list: TokenList) -> String? {
    guard list.text(name - 1) == "::" else { return nil }
    if list.text(name - 2) == ">" { return list.openingAngle(name - 2).map { list.text($0 - 1) } }
    return list.text(name - 2)
  }
}
