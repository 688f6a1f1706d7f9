/// Lets packed three-component vectors, which are classes, be used as vectors.
///
/// Where a variable or member that was declared with such a type is read,
/// `SM_UNPACK(p[i])` makes one of clang's vectors of it, whatever memory it is
/// in: clang converts objects of classes in thread memory only. A component by
/// number becomes `SM_PARTS(p[i])[k]`. Names, assignments, components by name
/// and addresses stay: the headers and `StructAssignments` see to them. An
/// `array<T, N>` and a matrix are indexed in the same way.
struct PackedVectors {
  private let list: TokenList
  private let objects: DeclaredObjects
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
        if let object = packed.objects.object(at: token) { packed.lower(object, in: declaration, &context) }
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
    objects = DeclaredObjects(context, types: types)
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
    if word.hasPrefix("packed_") && word.hasSuffix("3") || VectorTypes.matrices.contains(word) { return true }
    return (word == "array" || word == "matrix") && list.text(token + 1) == "<"
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

  private func lower(_ object: Range<Int>, in declaration: Declaration, _ context: inout LoweringContext) {
    // The component itself, to be read or written to.
    if list.text(object.upperBound) == "[" { return context.wrap(object, "SM_PARTS(", ")") }
    let before = list.text(object.lowerBound - 1)
    if before == "return", !takesValue(object.lowerBound - 1, in: declaration) { return }
    if before == "&", objects.isPrefix(object.lowerBound - 1) || isReference(object.lowerBound - 2) { return }
    if ["++", "--"].contains(before) || isReferenceInitialiser(object) || isOperand(object) { return }
    let after = list.text(object.upperBound)
    switch after {
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
    guard !(start..<end).contains(where: { objects.object(at: $0)?.upperBound == end }) else { return }
    context.wrap(start..<end, "SM_VALUE(", ")")
  }

  /// Whether an operand at `token` may name an object: no literal, no keyword, no cast.
  private func isPlace(_ token: Int) -> Bool {
    if list.text(token) == "*" { return true }
    return list.isIdentifier(token) && ["[", ".", "->"].contains(list.text(token + 1))
  }
}
