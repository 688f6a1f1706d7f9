/// Lets user-defined structs be copied from every address space.
///
/// Left alone: unions, enumerations, structs without a name, and structs that
/// declare a constructor, an assignment or a destructor of their own, since the
/// added defaults could contradict those; structs with a reference or constant
/// member, which cannot be assigned.
enum Structs {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices where list.text(token) == "struct" || list.text(token) == "class" {
      guard list.text(token - 1) != "enum", let (name, open) = definition(token, list) else { continue }
      let close = min(list.partner[open], list.count)
      guard isPlain(list.text(name), span(open + 1, close), list) else { continue }
      let isLocal = context.declarations.contains { $0.body?.contains(token) ?? false }
      context.insert(" \(isLocal ? "SM_LOCAL_STRUCT" : "SM_STRUCT")(\(list.text(name)))", after: open)
    }
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

  private static func isPlain(_ name: String, _ members: Range<Int>, _ list: TokenList) -> Bool {
    var position = members.lowerBound
    var statement = position
    while position < members.upperBound {
      switch list.text(position) {
      case "(":
        let before = list.text(position - 1)
        if before == name, list.text(position - 2) != "operator" { return false }
        if before == "=", list.text(position - 2) == "operator" { return false }
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
        if isUnassignable(span(statement, position), list) { return false }
        statement = position + 1
      default: break
      }
      position += 1
    }
    return true
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
