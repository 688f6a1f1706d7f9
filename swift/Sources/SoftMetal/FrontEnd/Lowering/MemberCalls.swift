/// Tells member functions in which memory their object is, where functions of
/// the name are for different ones.
///
/// `p[i].f(x)` becomes `SM_CALL((p[i]), f, x)`, and a call without an object
/// gets the memory of the function that it is in: `f(::softmetal::DeviceObject{}, x)`.
struct MemberCalls {
  private let list: TokenList
  private let members: [QualifiedMember]
  private let classes: [ClassDefinition]
  /// Names of functions, of any class, that tell memory apart.
  private let names: Set<String>
  private let declared: [Int: Declaration]

  static func lower(_ members: [QualifiedMember], _ classes: [ClassDefinition], _ context: inout LoweringContext) {
    let calls = MemberCalls(members, classes, context)
    for token in calls.list.indices where calls.names.contains(calls.list.text(token)) { calls.lower(token, &context) }
    for (sign, function) in QualifiedMember.operators.sorted(by: { $0.key < $1.key }) {
      calls.lowerOperator(sign, function, &context)
    }
  }

  private init(_ members: [QualifiedMember], _ classes: [ClassDefinition], _ context: LoweringContext) {
    let list = context.list
    self.list = list
    self.members = members
    self.classes = classes
    let functions = members.filter { $0.kind == .function }
    // Those of `array<T, N>` in the headers.
    let hasArrays = list.indices.contains { list.text($0) == "array" && list.text($0 + 1) == "<" }
    names = Set(functions.map { list.text($0.name) }).union(hasArrays ? ["size", "empty"] : [])
    declared = Dictionary(
      context.declarations.lazy.filter { $0.kind == .function }.map { ($0.nameToken, $0) }, uniquingKeysWith: { $1 })
  }

  // MARK: Functions by name

  private func lower(_ token: Int, _ context: inout LoweringContext) {
    var open = token + 1
    if list.text(open) == "<", let close = list.closingAngle(open) { open = close + 1 }
    guard list.text(open) == "(", !members.contains(where: { $0.name == token }) else { return }
    var before = token - 1
    if list.text(before) == "template" { before -= 1 }
    if [".", "->"].contains(list.text(before)) {
      lowerCall(token, before, open, &context)
    } else if let space = space(token) {
      let isEmpty = list.text(open + 1) == ")"
      let tag = "::softmetal::\(space)" + (isDeclaration(token) ? "" : "{}")
      context.insert(tag + (isEmpty ? "" : ", "), after: open)
    }
  }

  /// `object.f<T>(x)` with the access at `access` and the parenthesis at `open`.
  private func lowerCall(_ token: Int, _ access: Int, _ open: Int, _ context: inout LoweringContext) {
    guard let start = list.operandStart(access) else {
      // An object that was just made is in thread memory.
      context.insert("::softmetal::ThreadObject{}" + (list.text(open + 1) == ")" ? "" : ", "), after: open)
      return
    }
    context.wrap(start..<token + 1, "SM_CALL(", "")
    context.wrap(start..<access, list.text(access) == "->" ? "(*" : "(", ")")
    context.edits.replace(list.tokens[access].range, with: ", SM_NAME(")
    context.edits.replace(list.tokens[open].range, with: list.text(open + 1) == ")" ? ")" : "), ")
  }

  /// The memory that a declaration of, or a call without an object to, the function at `token` is for; nil for a
  /// function that is no member, or static.
  private func space(_ token: Int) -> String? {
    let name = list.text(token)
    if let owner = QualifiedMember.qualification(token, list) {
      guard let definition = classes.first(where: { $0.name == owner }), declares(name, definition) else { return nil }
      return isDeclaration(token) ? "ThreadObject" : memory(of: token)
    }
    return enclosing(token).contains { declares(name, $0) } ? memory(of: token) : nil
  }

  private func declares(_ name: String, _ owner: ClassDefinition, depth: Int = 0) -> Bool {
    if owner.staticFunctions.contains(name) { return false }
    if owner.functions.contains(name) { return true }
    return depth < 16 && classes.contains { owner.bases.contains($0.name) && declares(name, $0, depth: depth + 1) }
  }

  /// The classes around `token`: those whose braces it is in, or whose function it is in outside of them.
  private func enclosing(_ token: Int) -> [ClassDefinition] {
    let outside = declared.first { $1.tokens.contains(token) }.flatMap { QualifiedMember.qualification($0.key, list) }
    return classes.filter { span($0.open, $0.close).contains(token) || $0.name == outside }
  }

  private func memory(of token: Int) -> String {
    let member = members.last { $0.body.map { span($0, list.after($0)).contains(token) } ?? false }
    return (member?.space ?? "Thread") + "Object"
  }

  /// Whether the function at `token` is declared there, in its class or outside of it.
  private func isDeclaration(_ token: Int) -> Bool {
    if declared[token] != nil { return true }
    guard let brace = list.enclosingBrace(token), classes.contains(where: { $0.open == brace }) else { return false }
    var start = token
    while start > brace + 1, ![";", "{", "}", "="].contains(list.text(start - 1)) { start -= 1 }
    return list.text(start - 1) != "=" && start < token
  }

  // MARK: Operators that only members can be

  /// `object[i]` and `object(x)` of variables that were declared with a class of such an operator.
  private func lowerOperator(_ sign: String, _ function: String, _ context: inout LoweringContext) {
    let owners = members.filter { $0.kind == .named(function) }.compactMap(\.owner)
    guard !owners.isEmpty, sign != "=" else { return }
    let objects = DeclaredObjects(context, types: Set(owners.map(\.name)), areCalled: sign == "(")
    for open in Set(owners.map(\.open)).sorted() {
      context.edits.insert(" SM_THREAD_\(sign == "[" ? "AT" : "CALL")", at: list.tokens[open].range.upperBound)
    }
    for token in list.indices {
      guard let object = objects.object(at: token), list.text(object.upperBound) == sign else { continue }
      let close = list.partner[object.upperBound]
      guard close > 0, close < list.count else { continue }
      context.wrap(object.lowerBound..<object.upperBound + 1, "SM_CALL(", "")
      context.wrap(object, "(", ")")
      let isEmpty = close == object.upperBound + 1
      context.edits.replace(list.tokens[object.upperBound].range, with: ", \(function)" + (isEmpty ? "" : ", "))
      context.edits.replace(list.tokens[close].range, with: ")")
    }
  }
}
