/// A parameter `const thread T &x` of a function with a body, or of a friend without one; the variable of a loop likewise.
struct ConstantReferenceParameter {
  /// The token `thread`.
  let space: Int
  let type: Range<Int>
  /// The token of the name, or nil without one.
  let name: Int?
  /// What is before the type and the name of the function.
  let head: Range<Int>
  /// Such as `operator+`; without template arguments.
  let function: String
  /// With the parentheses.
  let parameters: Range<Int>
  /// Among the parameters.
  let index: Int
  let isOfConstantMethod: Bool
  /// Whether the type is what clang finds from the argument, and would have its memory in it.
  let isDeduced: Bool
  /// Whether the type names a parameter of the function's template.
  let isDependent: Bool
  /// Whether the function is the explicit specialisation of a template, `template <> void f<float>(...)`.
  let isOfSpecialization: Bool
  /// From the `:` to the body of a constructor; empty without them.
  let initialisers: Range<Int>
  /// The opening brace; nil for a friend that is only declared.
  let body: Int?

  var reference: Int { type.upperBound }
  var isOfOperator: Bool { function.hasPrefix("operator") }
  var isOfLoop: Bool { TokenList.statementWords.contains(function) }

  /// The functions other than operators of which one is a template that finds its arguments from such a parameter.
  static func deducing(_ parameters: [ConstantReferenceParameter]) -> Set<String> {
    Set(parameters.filter { $0.isDependent && !$0.isOfOperator }.map(\.function))
  }

  static func all(_ list: TokenList) -> [ConstantReferenceParameter] {
    list.indices.compactMap { list.text($0) == "thread" ? ConstantReferenceParameter($0, list) : nil }
  }

  private init?(_ space: Int, _ list: TokenList) {
    let isFirst = list.text(space + 1) == "const"
    guard isFirst || list.text(space - 1) == "const",
      ["(", ",", "]"].contains(list.text(isFirst ? space - 1 : space - 2)),
      let type = Self.type(at: isFirst ? space + 2 : space + 1, list),
      list.isIdentifier(type.upperBound + 1) || [",", ")"].contains(list.text(type.upperBound + 1)),
      let open = Self.parenthesis(around: space, list), let start = list.functionName(before: open),
      list.text(start - 1) != "::"
    else { return nil }
    self.space = space
    self.type = type
    name = list.isIdentifier(type.upperBound + 1) ? type.upperBound + 1 : nil
    head = Self.statementStart(start, list)..<start
    let isOperator = list.text(start) == "operator"
    function = span(start, isOperator ? open : start + 1).map { list.text($0) }.joined()
    parameters = open..<list.after(open)
    index = list.splitAtCommas(parameters.dropFirst().dropLast()).firstIndex { $0.contains(space) } ?? 0
    isOfConstantMethod = list.text(parameters.upperBound) == "const"
    var brace = parameters.upperBound
    while list.text(brace) == "const" || AddressSpace.all.contains(list.text(brace)) { brace += 1 }
    let end = list.text(brace) == ":" ? Self.end(ofInitialisers: brace, list) : brace
    initialisers = brace..<end
    body = list.text(end) == "{" ? end : nil
    let template = Self.templateParameters(head, list)
    let names = Set((template ?? []).map(\.name))
    isDependent = type.contains { names.contains(list.text($0)) }
    isDeduced = type.count == 1 && isDependent
    isOfSpecialization = template?.isEmpty ?? false
    let isFriend = head.contains { list.text($0) == "friend" }
    guard body != nil || isFriend else { return nil }
  }

  /// The name of a type, with its arguments, before `&`.
  private static func type(at start: Int, _ list: TokenList) -> Range<Int>? {
    var position = start
    while list.isIdentifier(position) || list.text(position) == "::" {
      position += 1
      if list.text(position) == "<" {
        guard let close = list.closingAngle(position) else { return nil }
        position = close + 1
      }
    }
    return position > start && list.text(position) == "&" ? start..<position : nil
  }

  /// Nil for what is no template.
  private static func templateParameters(_ head: Range<Int>, _ list: TokenList) -> [TemplateParameter]? {
    guard let open = head.first(where: { list.text($0) == "<" }), list.text(open - 1) == "template",
      let close = list.closingAngle(open)
    else { return nil }
    return TemplateParameter.parse(open, close, of: list)
  }

  /// The index behind `: a(1), B<T>{2}`.
  private static func end(ofInitialisers colon: Int, _ list: TokenList) -> Int {
    var position = colon
    while [":", ","].contains(list.text(position)) {
      while position < list.count, !["(", "{", ";"].contains(list.text(position)) { position += 1 }
      guard position < list.count, list.text(position) != ";" else { return position }
      position = list.after(position)
    }
    return position
  }

  private static func parenthesis(around token: Int, _ list: TokenList) -> Int? {
    var open = token - 1
    while open > 0, list.text(open) != "(" {
      if [";", "{", "}"].contains(list.text(open)) { return nil }
      open = [")", "]"].contains(list.text(open)) ? list.partner[open] - 1 : open - 1
    }
    return open > 0 ? open : nil
  }

  private static func statementStart(_ token: Int, _ list: TokenList) -> Int {
    var start = token
    while start > 0, ![";", "{", "}", ":"].contains(list.text(start - 1)) { start -= 1 }
    return start
  }
}
