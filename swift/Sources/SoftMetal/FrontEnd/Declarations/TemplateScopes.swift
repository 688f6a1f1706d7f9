/// The type parameters of templates that are in scope, for tokens that are visited in order.
struct TemplateScopes {
  private var scopes: [(names: Set<String>, end: Int)] = []

  /// Goes on to `token`.
  mutating func advance(to token: Int, _ list: TokenList) {
    while let scope = scopes.last, scope.end <= token { scopes.removeLast() }
    guard list.text(token) == "template", list.text(token + 1) == "<", let close = list.closingAngle(token + 1) else {
      return
    }
    let names = TemplateParameter.parse(token + 1, close, of: list).filter(\.isType).map(\.name)
    scopes.append((Set(names), Self.declarationEnd(close + 1, list)))
  }

  func contains(_ name: String) -> Bool { scopes.contains { $0.names.contains(name) } }

  /// The end of the declaration that starts at `token`, after its `;` or body.
  private static func declarationEnd(_ token: Int, _ list: TokenList) -> Int {
    var position = token
    while position < list.count {
      switch list.text(position) {
      case ";": return position + 1
      case "{": return list.after(position)
      case "(", "[": position = list.after(position)
      case ")", "]", "}": return position
      default: position += 1
      }
    }
    return list.count
  }
}
