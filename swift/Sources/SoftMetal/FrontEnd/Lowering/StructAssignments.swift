/// Lets structs in device and threadgroup memory be assigned to.
///
/// `items[i] = x`, `*p = x` and `reference = x` become `softmetal::assign(...) = x`
/// where the name was declared in the same function as a pointer, an array or a
/// reference to a struct of the file in one of those memories.
struct StructAssignments {
  private let list: TokenList
  private var structs: Set<String> = []

  static func lower(_ context: inout LoweringContext) {
    let assignments = StructAssignments(context.list)
    for declaration in context.declarations where declaration.kind == .function || declaration.kind == .type {
      assignments.lower(declaration.tokens, &context)
    }
  }

  private init(_ list: TokenList) {
    self.list = list
    for token in list.indices where list.text(token) == "struct" || list.text(token) == "class" {
      if list.isIdentifier(token + 1) { structs.insert(list.text(token + 1)) }
    }
    // `typedef struct { ... } Name;`
    for token in list.indices where list.text(token) == "typedef" && list.text(token + 1) == "struct" {
      var open = token + 2
      while list.isIdentifier(open) { open += 1 }
      if list.text(open) == "{", list.isIdentifier(list.after(open)) { structs.insert(list.text(list.after(open))) }
    }
  }

  private func lower(_ range: Range<Int>, _ context: inout LoweringContext) {
    let names = declaredNames(range)
    guard !names.isEmpty else { return }
    for token in range where list.text(token) == "=" {
      guard let start = statementStart(before: token, in: range), isPlace(start..<token, names) else { continue }
      context.insert("::softmetal::assign(", before: start)
      context.insert(")", after: token - 1)
    }
  }

  // MARK: Declarations

  private static let qualifiers: Set<String> = ["device", "threadgroup", "const", "volatile", "static", "struct"]

  /// Names declared as structs that lie in device or threadgroup memory.
  private func declaredNames(_ range: Range<Int>) -> Set<String> {
    var names: Set<String> = []
    for token in range where structs.contains(list.text(token)) {
      var start = token
      while Self.qualifiers.contains(list.text(start - 1)) { start -= 1 }
      var end = token + 1
      if list.text(end) == "<", let close = list.closingAngle(end) { end = close + 1 }
      while Self.qualifiers.contains(list.text(end)) { end += 1 }
      let words = Set((start..<end).map { list.text($0) })
      guard !words.contains("const"), words.contains("device") || words.contains("threadgroup") else { continue }
      while ["*", "&", "(", "thread", "const"].contains(list.text(end)) { end += 1 }
      addDeclarators(end, to: &names)
    }
    return names
  }

  /// Adds the name at `token` and those that follow in `name[2], other;`.
  private func addDeclarators(_ token: Int, to names: inout Set<String>) {
    var position = token
    while list.isIdentifier(position) {
      var end = position + 1
      while list.text(end) == "[" { end = list.after(end) }
      // Not the type of another parameter.
      guard position == token || [",", ";"].contains(list.text(end)) else { return }
      names.insert(list.text(position))
      guard list.text(end) == "," else { return }
      position = end + 1
    }
  }

  // MARK: Assignments

  /// The first token of the expression statement that ends before the `=` at `index`.
  private func statementStart(before index: Int, in range: Range<Int>) -> Int? {
    var position = index - 1
    while position > range.lowerBound {
      switch list.text(position) {
      case ";", "{", "}", ":": return position + 1
      case "]": position = list.partner[position]
      case ")":
        let open = list.partner[position]
        // The condition of `if (...)`, `for (...)`, `while (...)`.
        if ["if", "for", "while"].contains(list.text(open - 1)) { return position + 1 }
        position = open
      case "else", "do": return position + 1
      case "*": break
      default:
        guard list.isIdentifier(position) else { return nil }
      }
      guard position > range.lowerBound else { return nil }
      position -= 1
    }
    return nil
  }

  /// Whether the tokens are `name`, `name[...]` or `*name` with a known name.
  private func isPlace(_ tokens: Range<Int>, _ names: Set<String>) -> Bool {
    var first = tokens.lowerBound
    if list.text(first) == "*" {
      first += 1
      if list.text(first) == "(", list.after(first) == tokens.upperBound {
        return (first..<tokens.upperBound).contains { names.contains(list.text($0)) }
      }
      return names.contains(list.text(first)) && first + 1 == tokens.upperBound
    }
    guard names.contains(list.text(first)) else { return false }
    var end = first + 1
    while list.text(end) == "[" { end = list.after(end) }
    return end == tokens.upperBound
  }
}
