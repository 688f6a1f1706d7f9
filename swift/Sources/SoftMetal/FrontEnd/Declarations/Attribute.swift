/// One attribute of a `[[...]]` list, such as `buffer(0)`. Of a scoped one, such
/// as `clang::optnone`, the name is the scope.
struct Attribute {
  let name: String
  /// Index of the name's token.
  let token: Int
  /// Tokens between the parentheses; empty without them.
  let argument: Range<Int>

  /// The attributes of every `[[...]]` list in `range`, nested scopes excluded.
  static func attributes(in range: Range<Int>, of list: TokenList) -> [Attribute] {
    var result: [Attribute] = []
    var position = range.lowerBound
    while position < range.upperBound {
      if isListStart(position, of: list) {
        result += parseList(position, of: list)
        position = list.after(position)
      } else if list.text(position) == "(" || list.text(position) == "{" {
        position = list.after(position)
      } else {
        position += 1
      }
    }
    return result
  }

  /// Whether a `[[` begins at token `index`.
  static func isListStart(_ index: Int, of list: TokenList) -> Bool {
    guard list.text(index) == "[", list.text(index + 1) == "[" else { return false }
    return list.partner[index] == list.partner[index + 1] + 1
  }

  /// The attributes of the list that starts at token `index`.
  static func parseList(_ index: Int, of list: TokenList) -> [Attribute] {
    let inside = span(index + 2, list.after(index + 1) - 1)
    return list.splitAtCommas(inside).compactMap { part in
      let name = part.lowerBound
      guard name < part.upperBound, list.isIdentifier(name) else { return nil }
      guard list.text(name + 1) == "(", name + 1 < part.upperBound else {
        return Attribute(name: list.text(name), token: name, argument: part.upperBound..<part.upperBound)
      }
      return Attribute(name: list.text(name), token: name, argument: span(name + 2, list.after(name + 1) - 1))
    }
  }

  /// Attributes of C++ and clang, which the compiler itself reads. All others
  /// belong to the Metal Shading Language and leave the text.
  static let standardNames: Set<String> = [
    "maybe_unused", "fallthrough", "nodiscard", "noreturn", "likely", "unlikely", "deprecated",
    "always_inline", "noinline", "gnu", "clang", "unroll",
  ]
}
