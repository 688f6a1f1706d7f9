/// Lets user-defined structs be copied from every address space.
///
/// Left alone: unions, enumerations, structs without any name, and structs that
/// declare a copy constructor, an assignment or a destructor of their own, since
/// the added defaults could contradict those; structs with a reference or constant
/// member, which cannot be assigned.
enum Structs {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices where list.text(token) == "struct" || list.text(token) == "class" {
      guard list.text(token - 1) != "enum" else { continue }
      if let name = aliasOfUnnamed(token, list) {
        context.insert(" \(name)", after: token)
        insertCopies(name, open: token + 1, &context)
      } else if let (name, open) = definition(token, list) {
        insertCopies(list.text(name), open: open, isClass: list.text(token) == "class", &context)
      }
    }
  }

  private static func insertCopies(_ name: String, open: Int, isClass: Bool = false, _ context: inout LoweringContext) {
    let list = context.list
    guard let kind = kind(name, span(open + 1, min(list.partner[open], list.count)), list) else { return }
    let isLocal = context.declarations.contains { $0.body?.contains(open) ?? false }
    guard !isLocal || kind == .plain else { return }
    let copies = "\(isLocal ? "SM_LOCAL_STRUCT" : kind.rawValue)(\(name))"
    context.insert(isClass ? " public: \(copies) private:" : " " + copies, after: open)
  }

  /// A name for the struct of `typedef struct { ... } Name;`, which copies need.
  private static func aliasOfUnnamed(_ token: Int, _ list: TokenList) -> String? {
    guard list.text(token - 1) == "typedef", list.text(token + 1) == "{" else { return nil }
    let alias = list.after(token + 1)
    guard list.isIdentifier(alias), list.text(alias + 1) == ";" else { return nil }
    return "sm_struct_" + list.text(alias)
  }

  /// The name and the opening brace of the definition that a class key at
  /// `token` begins, or nil.
  private static func definition(_ token: Int, _ list: TokenList) -> (name: Int, open: Int)? {
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

  /// The macro that a struct gets.
  private enum Kind: String {
    case plain = "SM_STRUCT"
    case constructed = "SM_CONSTRUCTED_STRUCT"
  }

  /// Nil for a struct that is left alone.
  private static func kind(_ name: String, _ members: Range<Int>, _ list: TokenList) -> Kind? {
    var kind = Kind.plain
    var position = members.lowerBound
    var statement = position
    while position < members.upperBound {
      switch list.text(position) {
      case "(":
        let before = list.text(position - 1)
        if before == name, list.text(position - 2) != "operator" {
          if list.text(position - 2) == "~" || isCopy(name, position, list) { return nil }
          kind = .constructed
        }
        if before == "=", list.text(position - 2) == "operator" { return nil }
        position = list.after(position)
        continue
      case "[":
        position = list.after(position)
        continue
      case "{":
        position = list.after(position)
        statement = position
        continue
      case ";":
        if isUnassignable(span(statement, position), list) { return nil }
        statement = position + 1
      default: break
      }
      position += 1
    }
    return kind
  }

  /// Whether the parameters at `open` are those of a copy constructor.
  private static func isCopy(_ name: String, _ open: Int, _ list: TokenList) -> Bool {
    span(open + 1, list.after(open)).contains { list.text($0) == name && list.text($0 + 1) == "&" }
  }

  /// Whether a member declaration is a reference or a constant of the object.
  private static func isUnassignable(_ tokens: Range<Int>, _ list: TokenList) -> Bool {
    let texts = tokens.map { list.text($0) }
    if texts.contains("static") || texts.contains("using") || texts.contains("typedef") || texts.contains("(") {
      return false
    }
    let isPointer = texts.contains("*")
    return texts.contains("&") || (!isPointer && (texts.contains("const") || texts.contains("constexpr")))
  }
}
