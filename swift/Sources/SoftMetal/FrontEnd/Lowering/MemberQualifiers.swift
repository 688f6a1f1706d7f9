/// Sets member functions of `device`, `constant` and `threadgroup` objects apart.
///
/// clang has no objects with an address space in C++. `void f(int x) device`
/// becomes `void f(::softmetal::DeviceObject, int x)`, and all functions of its
/// name get such a parameter, which `MemberCalls` gives by the memory of the
/// object. In the body `sm_self` is the object in its own memory, and so are
/// references of the names of those data members that it mentions.
///
/// An operator that may be a function of its own becomes a friend, `friend void
/// operator+=(device S &sm_self, float x)`; `operator[]`, `()` and `=` become
/// functions with names. A conversion stays for thread objects, into which
/// others are copied first.
enum MemberQualifiers {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let classes = ClassDefinition.all(list)
    let members = QualifiedMember.all(list, classes)
    let qualified = Set(members.map { list.text($0.name) })
    for member in members {
      lower(member, classes, &context)
      refuseThreadCalls(member, qualified: qualified, &context)
    }
    MemberCalls.lower(members, classes, &context)
  }

  private static func lower(_ member: QualifiedMember, _ classes: [ClassDefinition], _ context: inout LoweringContext) {
    let list = context.list
    context.blank(member.qualifier..<member.qualifier + 1)
    let tag = "::softmetal::\(member.space)Object" + (member.parameters.count == 2 ? "" : ", ")
    switch member.kind {
    case .constructor:
      context.insert(tag, after: member.parameters.lowerBound)
      return
    case .conversion:
      context.edits.blank(list.tokens[member.name].range, in: list.source)
      context.insert(" sm_conversion_\(member.qualifier)", before: member.parameters.lowerBound)
      return
    case .symbol:
      lowerSymbol(member, &context)
    case .named(let function):
      context.edits.replace(list.byteRange(member.name..<member.parameters.lowerBound), with: function)
      fallthrough
    case .function:
      context.insert(tag, after: member.parameters.lowerBound)
      // Objects in constant memory are constant.
      if member.space == "Constant", !member.isConst {
        context.insert(" const", after: member.parameters.upperBound - 1)
      }
    }
    lowerHead(member, &context)
    lowerBody(member, classes, &context)
  }

  /// The first token of the declaration, after `template <...>`.
  private static func declarationStart(_ member: QualifiedMember, _ list: TokenList) -> Int {
    var start = member.name
    while start > 0, ![";", "{", "}", ":"].contains(list.text(start - 1)) {
      if list.text(start - 1) == ">", let open = list.openingAngle(start - 1) {
        if list.text(open - 1) == "template" { break }
        start = open
      } else {
        start = [")", "]"].contains(list.text(start - 1)) ? max(list.partner[start - 1], 0) : start - 1
      }
    }
    return start
  }

  /// The cast to the object's memory is no constant expression.
  private static func lowerHead(_ member: QualifiedMember, _ context: inout LoweringContext) {
    for token in span(declarationStart(member, context.list), member.name)
    where context.list.text(token) == "constexpr" {
      context.blank(token..<token + 1)
    }
  }

  private static func lowerSymbol(_ member: QualifiedMember, _ context: inout LoweringContext) {
    guard let owner = member.owner else { return }
    let list = context.list
    context.insert("friend ", before: declarationStart(member, list))
    let space = member.space.lowercased()
    let object = (member.isConst && space != "constant" ? "const " : "") + "\(space) \(owner.name) &sm_self"
    context.insert(object + (member.parameters.count == 2 ? "" : ", "), after: member.parameters.lowerBound)
    // A friend has no qualifiers.
    for token in span(member.parameters.upperBound, member.body ?? member.qualifier)
    where ["const", "volatile"].contains(list.text(token)) {
      context.blank(token..<token + 1)
    }
  }

  private static func lowerBody(
    _ member: QualifiedMember, _ classes: [ClassDefinition], _ context: inout LoweringContext
  ) {
    let list = context.list
    guard let open = member.body, list.partner[open] < list.count else { return }
    let body = span(open + 1, list.after(open) - 1)
    var prelude = ""
    if member.kind != .symbol {
      prelude = " auto &sm_self = ::softmetal::in_\(member.space.lowercased())(*this);"
    }
    let parameters = Set(member.parameters.map { list.text($0) })
    let names = dataMembers(member.owner, classes, depth: 0).subtracting(parameters)
    for name in Set(body.map { list.text($0) }).intersection(names).sorted() {
      prelude += " auto &\(name) = sm_self.\(name);"
    }
    context.insert(prelude + " {", after: open)
    context.insert("} ", before: body.upperBound)
    for token in body where list.text(token) == "this" {
      context.edits.replace(list.tokens[token].range, with: "(&sm_self)")
    }
  }

  /// In the body the object is a thread object for clang, of which functions without a qualifier could be called.
  private static func refuseThreadCalls(
    _ member: QualifiedMember, qualified: Set<String>, _ context: inout LoweringContext
  ) {
    let list = context.list
    guard let open = member.body, let owner = member.owner else { return }
    let names = owner.functions.subtracting(qualified)
    for token in span(open, list.after(open)) where names.contains(list.text(token)) && list.text(token + 1) == "(" {
      guard ![".", "->", "::"].contains(list.text(token - 1)) else { continue }
      let space = member.space.lowercased()
      context.report(
        "member function '\(list.text(token))' is not qualified for an object in \(space) memory", at: token)
    }
  }

  /// The data members of a class and of its bases.
  private static func dataMembers(_ owner: ClassDefinition?, _ classes: [ClassDefinition], depth: Int) -> Set<String> {
    guard let owner, depth < 16 else { return [] }
    return classes.filter { owner.bases.contains($0.name) }.reduce(owner.dataMembers) {
      $0.union(dataMembers($1, classes, depth: depth + 1))
    }
  }
}
