/// The names that stand for types in a source, whatever the place: built-in
/// ones and the source's own, but for the parameters of its templates.
struct TypeNames {
  private let names: Set<String>

  init(_ list: TokenList) {
    var own: Set<String> = []
    var declared: Set<Int> = []
    for token in list.indices {
      guard let name = Self.declaredName(at: token, list) else { continue }
      declared.insert(name)
      own.insert(list.text(name))
    }
    // One that is a variable elsewhere says nothing: `a * b` may be a product.
    for token in list.indices where own.contains(list.text(token)) && !declared.contains(token) {
      if Self.isVariable(token, list) { own.remove(list.text(token)) }
    }
    names = Self.builtIn.union(own)
  }

  func contains(_ name: String) -> Bool { names.contains(name) }

  private static let builtIn: Set<String> = {
    var names = VectorTypes.builtIn.union(VectorTypes.scalars).union(["array", "matrix", "simdgroup_matrix", "atomic"])
    for scalar in ["bool", "int", "uint", "ulong", "float"] { names.insert("atomic_" + scalar) }
    for scalar in ["half", "bfloat", "float"] {
      names.insert("simdgroup_\(scalar)8x8")
      for columns in 2...4 { for rows in 2...4 { names.insert("\(scalar)\(columns)x\(rows)") } }
    }
    return names
  }()

  /// The name that the class key, `using` or `typedef` at `token` declares, or nil.
  private static func declaredName(at token: Int, _ list: TokenList) -> Int? {
    switch list.text(token) {
    case "using": return list.text(token + 2) == "=" ? token + 1 : nil
    case "typedef":
      let end = list.statementEnd(token)
      return list.isIdentifier(end - 1) ? end - 1 : nil
    case let key where ClassDefinition.typeKeys.contains(key):
      let name = ClassDefinition.typeKeys.contains(list.text(token + 1)) ? token + 2 : token + 1
      return list.isIdentifier(name) && !["<", ","].contains(list.text(token - 1)) ? name : nil
    default: return nil
    }
  }

  /// Words before a name that do not make a variable of it.
  private static let otherWords: Set<String> = ClassDefinition.typeKeys.union([
    "typename", "const", "volatile", "constexpr", "static", "inline", "device", "constant", "threadgroup", "thread",
    "typedef", "using", "return", "else", "do", "case", "new", "operator", "namespace", "template", "friend", "sizeof",
    "unsigned", "signed",
  ])

  /// Whether the name at `token` follows a type, as in `float name = 2`.
  private static func isVariable(_ token: Int, _ list: TokenList) -> Bool {
    guard ["=", ";", ",", ")", "[", "{"].contains(list.text(token + 1)) else { return false }
    let before = list.text(token - 1)
    // `constant uint &name [[buffer(0)]]`
    if ["&", "*"].contains(before) { return list.isIdentifier(token - 2) || list.text(token - 2) == ">" }
    // `int n = 1, name = 2`
    if before == ",", list.text(token + 1) == "=" { return true }
    return list.isIdentifier(token - 1) ? !otherWords.contains(before) : before == ">"
  }
}
