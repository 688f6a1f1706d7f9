/// The variables, parameters and members that a source declares with a type
/// of interest, found by their form: `type name`, `type *name[2]`.
///
/// A name is known in the declaration at program scope that it is in, or
/// everywhere when it is a variable of the program; a member, after `.` and
/// `->`, everywhere too.
struct DeclaredNames {
  struct Name {
    /// How many subscripts or dereferences lead from the name to its type.
    let levels: Int
  }

  private let list: TokenList
  /// By name, with the token range in which it is known.
  private var names: [String: [(name: Name, scope: Range<Int>, isMember: Bool)]] = [:]
  private var declarators: Set<Int> = []
  /// Where a name that is neither pointer nor reference is declared with parentheses after it.
  private(set) var parenthesised: [(name: Int, type: Range<Int>)] = []

  /// - Parameter isType: whether the word at a token names a type of interest.
  init(_ context: LoweringContext, isType: (Int) -> Bool) {
    list = context.list
    for declaration in context.declarations {
      for token in declaration.tokens where list.isIdentifier(token) && isType(token) {
        add(type: token, in: declaration)
      }
    }
  }

  /// What the name at `token`, which is not being declared there, may have been declared as.
  func names(at token: Int) -> [Name] {
    guard list.isIdentifier(token), !declarators.contains(token), let found = names[list.text(token)] else { return [] }
    let isAccess = [".", "->"].contains(list.text(token - 1))
    return found.filter { $0.scope.contains(token) || (isAccess && $0.isMember) }.map(\.name)
  }

  private static let qualifiers: Set<String> = [
    "const", "volatile", "device", "constant", "thread", "threadgroup", "restrict", "__restrict", "constexpr",
  ]

  private mutating func add(type: Int, in declaration: Declaration) {
    let end = declaration.tokens.upperBound
    let scope = declaration.kind == .variable ? list.indices : declaration.tokens
    var position = type + 1
    if list.text(position) == "<" {
      guard let close = list.closingAngle(position) else { return }
      position = close + 1
    }
    var start = type
    while list.text(start - 1) == "::" {
      let open = list.text(start - 2) == ">" ? list.openingAngle(start - 2) ?? start : start - 1
      guard list.isIdentifier(open - 1) else { break }
      start = open - 1
    }
    if list.text(start - 1) == "typename" { start -= 1 }
    let words = start..<position
    while Self.qualifiers.contains(list.text(start - 1)) { start -= 1 }
    guard list.text(start - 1) != "typedef" else { return }
    // Declarators, of which only the first has the qualifiers of the type.
    while position < end {
      var levels = 0
      let first = position
      while ["*", "&"].contains(list.text(position)) || Self.qualifiers.contains(list.text(position)) {
        if list.text(position) == "*" { levels += 1 }
        position += 1
      }
      // After a comma may be the type of the next parameter.
      guard list.isIdentifier(position), !list.isIdentifier(position + 1),
        !VectorTypes.scalars.contains(list.text(position)), !VectorTypes.builtIn.contains(list.text(position))
      else { return }
      let name = position
      position += 1
      while list.text(position) == "[", list.text(position + 1) != "[" {
        levels += 1
        position = list.after(position)
      }
      guard ["=", ";", ",", ")", "{", "(", "[", ":"].contains(list.text(position)) else { return }
      declarators.insert(name)
      let isObject = levels == 0 && !(first..<name).contains { list.text($0) == "&" }
      if isObject, list.text(position) == "(" { parenthesised.append((name, words)) }
      let isMember = declaration.kind == .type
      names[list.text(name), default: []].append((Name(levels: levels), scope, isMember))
      while position < end, ![",", ";", ")", "}"].contains(list.text(position)) {
        position = ["(", "[", "{"].contains(list.text(position)) ? list.after(position) : position + 1
      }
      guard list.text(position) == "," else { return }
      position += 1
    }
  }
}
