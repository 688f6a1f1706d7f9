/// Lets structs in device and threadgroup memory be assigned to.
///
/// A statement `place = value;` becomes `SM_PLACE(place) = value;`, where the
/// headers tell structs by their type, so that templates work too. A declaration
/// is never taken for such a statement: it has two names side by side.
enum StructAssignments {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let words = Set(list.indices.map { list.text($0) })
    guard !words.isDisjoint(with: classWords) || words.isSuperset(of: ["vec", "bool"]) else { return }
    for declaration in context.declarations where declaration.kind == .function || declaration.kind == .type {
      for token in declaration.tokens where list.text(token) == "=" && list.text(token - 1) != "operator" {
        // `S() = default` declares.
        if ["default", "delete"].contains(list.text(token + 1)) { continue }
        guard let start = statementStart(before: token, in: declaration.tokens, list), isPlace(start..<token, list)
        else { continue }
        context.wrap(start..<token, "SM_PLACE(", ")")
      }
    }
  }

  /// Words of sources that may have an object of class type: all others stay as they are.
  private static let classWords: Set<String> = {
    var words: Set<String> = ["struct", "class", "union", "bool2", "bool3", "bool4", "array", "matrix"]
    for component in VectorTypes.components { words.insert("packed_\(component)3") }
    return words.union(VectorTypes.matrices)
  }()

  /// The first token of the expression statement that ends before the `=` at `index`.
  private static func statementStart(before index: Int, in range: Range<Int>, _ list: TokenList) -> Int? {
    var position = index - 1
    while position > range.lowerBound {
      switch list.text(position) {
      case ";", "}", ":", "else", "do": return position + 1
      case "{": return isEnumeration(position, list) ? nil : position + 1
      case "]": position = list.partner[position]
      case ")":
        let open = list.partner[position]
        if list.isCondition(open) { return position + 1 }
        position = open
      case "*", ".", "->", "::": break
      case ">":
        guard let open = list.openingAngle(position) else { return nil }
        position = open
      default:
        guard list.isIdentifier(position) else { return nil }
      }
      guard position > range.lowerBound else { return nil }
      position -= 1
    }
    return nil
  }

  private static func isEnumeration(_ open: Int, _ list: TokenList) -> Bool {
    var position = open - 1
    while position >= 0, ![";", "{", "}", "(", ")"].contains(list.text(position)) {
      if list.text(position) == "enum" { return true }
      position -= 1
    }
    return false
  }

  /// Whether the tokens are one operand: `name`, `name[...]`, `(*name).member` and their like.
  private static func isPlace(_ tokens: Range<Int>, _ list: TokenList) -> Bool {
    let first = list.text(tokens.lowerBound)
    guard first == "*" || first == "(" || first == "::" || list.isIdentifier(tokens.lowerBound), first != "auto" else {
      return false
    }
    return list.operandEnd(tokens.lowerBound) == tokens.upperBound
  }
}
