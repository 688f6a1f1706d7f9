/// Refuses pointers to functions: their types, and functions that are named
/// without being called.
struct FunctionPointers {
  private let list: TokenList
  /// The source's functions whose names are theirs alone.
  private let functions: Set<String>

  static func check(_ context: inout LoweringContext) {
    let check = FunctionPointers(context)
    // A function as a template's argument is known when the template is compiled.
    let templates = TemplateParameter.lists(of: context.list)
    for token in context.list.indices {
      guard let place = check.pointer(at: token) ?? check.function(at: token) else { continue }
      guard !templates.contains(where: { $0.contains(token) }) else { continue }
      context.report("function pointers are not supported in Metal", at: place)
    }
  }

  private init(_ context: LoweringContext) {
    let list = context.list
    self.list = list
    let found = context.declarations.filter { $0.kind == .function && $0.name != "operator" }
    // A name that anything else has as well may stand for that.
    let others = Set(
      list.indices.filter { token in
        list.isIdentifier(token) && (list.isIdentifier(token - 1) || ["*", "&", ">"].contains(list.text(token - 1)))
          && ["=", ";", ",", ")", "[", "{", ":"].contains(list.text(token + 1))
          && !["return", "else", "case"].contains(list.text(token - 1)) && !Self.isAddress(token, list)
      }.map { list.text($0) })
    functions = Set(found.map(\.name)).subtracting(others)
  }

  /// Words before a parenthesis that are no type.
  private static let statements: Set<String> = [
    "return", "sizeof", "if", "for", "while", "switch", "else", "do", "decltype",
  ]

  /// The name in `type (*name)(...)`, or the sign without one, at the parenthesis; nil where there is no such type.
  private func pointer(at token: Int) -> Int? {
    guard list.text(token) == "(", list.isIdentifier(token - 1) || list.text(token - 1) == ">" else { return nil }
    let before = list.text(token - 1)
    // A typedef has no pointer yet.
    guard !Self.statements.contains(before), list.text(token - 2) != "typedef" else {
      return nil
    }
    var sign = token + 1
    if AddressSpace.all.contains(list.text(sign)) { sign += 1 }
    if list.isIdentifier(sign), list.text(sign + 1) == "::" { sign += 2 }
    guard ["*", "&"].contains(list.text(sign)), list.text(list.after(token)) == "(" else { return nil }
    let name = list.isIdentifier(sign + 1) ? sign + 1 : sign
    let close = list.text(name + 1) == "[" ? list.after(name + 1) : name + 1
    return close == list.after(token) - 1 ? name : nil
  }

  /// The name at `token` when it is that of a function and its value is taken.
  private func function(at token: Int) -> Int? {
    guard list.isIdentifier(token), functions.contains(list.text(token)) else { return nil }
    guard [";", ",", ")", "}", ":", "?"].contains(list.text(token + 1)) else { return nil }
    let before = list.text(token - 1)
    // `(f)(x)` is a call.
    if before == "(", list.text(token + 1) == ")", list.text(token + 2) == "(" { return nil }
    if list.text(token - 2) == "decltype" || isTemplateArgument(token) { return nil }
    let follows = ["=", "(", ",", "{", "?", ":", "return"].contains(before)
    return follows || Self.isAddress(token, list) ? token : nil
  }

  /// Whether the name at `token` is in `name<...>`.
  private func isTemplateArgument(_ token: Int) -> Bool {
    var position = token - 1
    while position >= 0 {
      switch list.text(position) {
      case ")", "]", "}": position = list.partner[position]
      case "(", "[", "{", ";": return false
      case "<":
        if list.isIdentifier(position - 1), let close = list.closingAngle(position), close > token { return true }
      default: break
      }
      position -= 1
    }
    return false
  }

  /// Whether `&` before `token` takes an address and is no operator between two values.
  private static func isAddress(_ token: Int, _ list: TokenList) -> Bool {
    var sign = token - 1
    while list.text(sign) == "::", list.isIdentifier(sign - 1) { sign -= 2 }
    return list.text(sign) == "&" && ["=", "(", ",", "{", "?", ":", "return"].contains(list.text(sign - 1))
  }
}
