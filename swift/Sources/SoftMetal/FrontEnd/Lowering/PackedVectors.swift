/// Lets packed three-component vectors, which are classes, be used as vectors.
///
/// Where a variable or member that was declared with such a type is read,
/// `SM_UNPACK(p[i])` makes one of clang's vectors of it, whatever memory it is
/// in: clang converts objects of classes in thread memory only. A component by
/// number becomes `SM_PARTS(p[i])[k]`. Names, assignments, components by name
/// and addresses stay: the headers and `StructAssignments` see to them. An
/// `array<T, N>` is indexed in the same way.
struct PackedVectors {
  private let list: TokenList
  private let types: Set<String>
  private let names: DeclaredNames
  /// Functions with a parameter that is a reference to a packed vector.
  private let referring: Set<String>

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let bools = DeclaredNames(context) { ["bool2", "bool3", "bool4"].contains(list.text($0)) }
    for token in list.indices where list.isIdentifier(token) {
      guard let name = bools.names(at: token).first else { continue }
      var end = token + 1
      for _ in 0..<name.levels where list.text(end) == "[" { end = list.after(end) }
      if list.text(end) == "." { lowerSwizzle(end + 1, &context) }
    }
    guard list.indices.contains(where: { isBuiltIn($0, list) }) else { return }
    let packed = PackedVectors(context)
    for declaration in context.declarations where declaration.kind == .function || declaration.kind == .type {
      for token in declaration.tokens {
        if let object = packed.object(at: token) { packed.lower(object, in: declaration, &context) }
      }
      for token in declaration.tokens where packed.takesValue(token, in: declaration) {
        packed.lowerPlace(token + 1, &context)
      }
    }
  }

  private init(_ context: LoweringContext) {
    let list = context.list
    self.list = list
    let types = Self.types(list)
    self.types = types
    names = DeclaredNames(context) { types.contains(list.text($0)) }
    var referring: Set<String> = []
    for declaration in context.declarations where declaration.kind == .function {
      let words = declaration.parameters
      if words.contains(where: { types.contains(list.text($0)) && list.text($0 + 1) == "&" }) {
        referring.insert(declaration.name)
      }
    }
    self.referring = referring
  }

  private static func isBuiltIn(_ token: Int, _ list: TokenList) -> Bool {
    let word = list.text(token)
    return word.hasPrefix("packed_") && word.hasSuffix("3") || (word == "array" && list.text(token + 1) == "<")
  }

  /// The built-in names and their aliases.
  private static func types(_ list: TokenList) -> Set<String> {
    var types: Set<String> = []
    for token in list.indices where isBuiltIn(token, list) {
      types.insert(list.text(token))
      if list.text(token - 1) == "=", list.text(token - 3) == "using" { types.insert(list.text(token - 2)) }
      if list.text(token - 1) == "typedef", list.isIdentifier(token + 1) { types.insert(list.text(token + 1)) }
    }
    return types
  }

  // MARK: Objects by name

  /// The tokens of the packed vector that the name or cast at `token` leads to:
  /// `name`, `a.name`, `name[i]`, `*name`, `((device packed_float3 *)p)[i]`.
  private func object(at token: Int) -> Range<Int>? {
    guard let (levels, start, end) = base(at: token) else { return nil }
    var position = end
    var left = levels
    while left > 0, list.text(position) == "[" {
      position = list.after(position)
      left -= 1
    }
    if left == 0 { return start..<position }
    guard left == 1 else { return nil }
    if list.text(position) == "->" { return nil }
    if list.text(start - 1) == "*", isPrefix(start - 1) { return start - 1..<position }
    // `*(p + 1)`
    guard position == end, list.text(start - 1) == "(", list.text(start - 2) == "*", isPrefix(start - 2),
      ["+", "-"].contains(list.text(position))
    else { return nil }
    return start - 2..<list.after(start - 1)
  }

  /// The tokens of a declared name, or of a cast to a pointer, and the levels from there to the packed vector.
  private func base(at token: Int) -> (levels: Int, start: Int, end: Int)? {
    if let name = names.names(at: token).first {
      guard list.text(token + 1) != "(", let start = list.operandStart(token + 1) else { return nil }
      return (name.levels, start, token + 1)
    }
    guard types.contains(list.text(token)), list.text(token + 1) == "*" else { return nil }
    var close = token + 2
    while ["const", "volatile"].contains(list.text(close)) { close += 1 }
    switch list.text(close) {
    case ")":
      guard list.partner[close] >= 0, let end = list.operandEnd(close + 1) else { return nil }
      let open = list.partner[close]
      let isGroup = list.text(open - 1) == "(" && list.partner[open - 1] == end
      return isGroup ? (1, open - 1, end + 1) : (1, open, end)
    case ">":
      let end = list.after(min(close + 1, list.count - 1))
      return list.text(close + 1) == "(" ? list.operandStart(end).map { (1, $0, end) } : nil
    default: return nil
    }
  }

  /// Whether the operator at `token` has no operand before it.
  private func isPrefix(_ token: Int) -> Bool {
    let before = list.text(token - 1)
    if list.isIdentifier(token - 1) { return TokenList.statementWords.contains(before) }
    return list.tokens[max(token - 1, 0)].kind == .punctuation && ![")", "]", ">"].contains(before)
  }

  private func lower(_ object: Range<Int>, in declaration: Declaration, _ context: inout LoweringContext) {
    let before = list.text(object.lowerBound - 1)
    if before == "return", !takesValue(object.lowerBound - 1, in: declaration) { return }
    if before == "&", isPrefix(object.lowerBound - 1) || isReference(object.lowerBound - 2) { return }
    if ["++", "--"].contains(before) || isReferenceInitialiser(object) || isOperand(object) { return }
    let after = list.text(object.upperBound)
    switch after {
    case "[": context.wrap(object, "SM_PARTS(", ")")
    case ".", "->":
      // A swizzle is made of the value, unless it is written to.
      let end = object.upperBound + 2
      guard list.text(end - 1).count > 1, !Self.assignments.contains(list.text(end)) else { return }
      context.wrap(object, "SM_UNPACK(", ")")
    default:
      if !Self.assignments.contains(after) { context.wrap(object, "SM_UNPACK(", ")") }
    }
  }

  /// `b.xy` of a vector of bool, which is an object of a class of its own where it is not written to.
  private static func lowerSwizzle(_ token: Int, _ context: inout LoweringContext) {
    let list = context.list
    guard Swizzles.components(list.text(token)) != nil, list.text(token - 1) == ".",
      let start = list.operandStart(token + 1), !assignments.contains(list.text(token + 1)),
      !["++", "--", "&"].contains(list.text(start - 1))
    else { return }
    context.wrap(start..<token + 1, "SM_VALUE(", ")")
  }

  private static let assignments = TokenList.assignments.union(["++", "--"])

  private func isReference(_ token: Int) -> Bool {
    list.isIdentifier(token) && !TokenList.statementWords.contains(list.text(token))
  }

  /// Whether the object initialises a reference, which keeps its memory.
  private func isReferenceInitialiser(_ object: Range<Int>) -> Bool {
    list.text(object.lowerBound - 1) == "=" && list.text(object.lowerBound - 3) == "&"
      && [";", ","].contains(list.text(object.upperBound))
  }

  /// Whether the object is the operand of `sizeof`, or an argument of a function that may take it by reference.
  private func isOperand(_ object: Range<Int>) -> Bool {
    guard ["(", ","].contains(list.text(object.lowerBound - 1)), [")", ","].contains(list.text(object.upperBound))
    else {
      return false
    }
    var open = object.lowerBound - 1
    while open >= 0, list.text(open) != "(" {
      if [";", "{", "}"].contains(list.text(open)) { return false }
      open = [")", "]"].contains(list.text(open)) ? list.partner[open] - 1 : open - 1
    }
    let callee = list.text(open - 1)
    return callee == "sizeof" || callee == "decltype" || callee == "alignof" || referring.contains(callee)
  }

  // MARK: Places of any type

  /// Whether what follows `token` is copied: not for a reference, which keeps its address space.
  private func takesValue(_ token: Int, in declaration: Declaration) -> Bool {
    switch list.text(token) {
    case "=": return list.text(token - 1) != "operator" && list.text(token - 2) != "&"
    case "return":
      guard declaration.kind == .function else { return false }
      return !span(declaration.headStart, declaration.nameToken).contains { list.text($0) == "&" }
    default: return false
    }
  }

  /// `= place;` becomes `= SM_VALUE(place);`, a copy where the type asks for one: in templates the name of the type
  /// may not tell.
  private func lowerPlace(_ start: Int, _ context: inout LoweringContext) {
    guard isPlace(start), let end = list.operandEnd(start), [";", ","].contains(list.text(end)) else { return }
    guard !(start..<end).contains(where: { object(at: $0)?.upperBound == end }) else { return }
    context.wrap(start..<end, "SM_VALUE(", ")")
  }

  /// Whether an operand at `token` may name an object: no literal, no keyword, no cast.
  private func isPlace(_ token: Int) -> Bool {
    if list.text(token) == "*" { return true }
    return list.isIdentifier(token) && ["[", ".", "->"].contains(list.text(token + 1))
  }
}
