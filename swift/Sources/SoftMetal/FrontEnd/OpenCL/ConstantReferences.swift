/// `const thread T &x` as `const T &x`: the argument may be a temporary, whose memory has no name for clang. In the body
/// the name is one of `thread` memory again, so that its address may be taken and functions may get it.
///
/// Functions that are declared without a body stay, and those that `DeducedReferences` is about. Of those that are
/// evaluated at compile time, where no cast between memories can be, and of loops, the names stay that need their memory.
struct ConstantReferences {
  private let list: TokenList
  private let parameters: [ConstantReferenceParameter]
  /// Functions that are somewhere declared without a body.
  private let declared: Set<String>

  static func lower(_ context: inout LoweringContext) {
    let references = ConstantReferences(context)
    let deducing = ConstantReferenceParameter.deducing(references.parameters)
    var named: [Int: [ConstantReferenceParameter]] = [:]
    for parameter in references.parameters {
      guard let body = parameter.body, !references.declared.contains(parameter.function),
        !deducing.contains(parameter.function)
      else { continue }
      let isConstant = parameter.head.contains { context.list.text($0) == "constexpr" }
      if parameter.isDeduced {
        guard references.mayBeValue(parameter) else { continue }
        context.blank(parameter.reference..<parameter.reference + 1)
      } else if isConstant || parameter.isOfLoop {
        guard !references.needsMemory(parameter, body) else { continue }
      } else if references.initialisersNeedMemory(parameter) {
        continue
      } else if parameter.name != nil {
        named[body, default: []].append(parameter)
      }
      context.blank(parameter.space..<parameter.space + 1)
    }
    for (body, parameters) in named.sorted(by: { $0.key < $1.key }) { place(parameters, in: body, &context) }
  }

  private init(_ context: LoweringContext) {
    let list = context.list
    self.list = list
    parameters = ConstantReferenceParameter.all(list)
    let declarations = context.declarations.filter { $0.kind == .function && $0.body == nil }.map { declaration in
      let name = declaration.nameToken
      let start = (0...2).map { name - $0 }.first { list.text($0) == "operator" } ?? name
      return span(start, name + 1).map { list.text($0) }.joined()
    }
    declared = Set(declarations).union(parameters.filter { $0.body == nil }.map(\.function))
  }

  /// Names of parameters can be declared again in a block of the body only.
  private static func place(
    _ parameters: [ConstantReferenceParameter], in body: Int, _ context: inout LoweringContext
  ) {
    let list = context.list
    var (outer, inner) = ("", "")
    for parameter in parameters {
      guard let name = parameter.name else { continue }
      let (type, text) = (list.joined(parameter.type), list.text(name))
      outer += " const \(type) &sm_\(text) = \(text);"
      inner += " const thread \(type) &\(text) = *(const thread \(type) *)&sm_\(text);"
    }
    context.insert(outer + " {" + inner, after: body)
    context.insert("} ", before: list.after(body) - 1)
  }

  /// Whether nothing that the operator does can change the argument, and no operator of the same name takes another
  /// reference, which clang could not tell from a value.
  private func mayBeValue(_ parameter: ConstantReferenceParameter) -> Bool {
    let isMethod = list.splitAtCommas(parameter.parameters.dropFirst().dropLast()).count < 2
    guard !isMethod || parameter.isOfConstantMethod else { return false }
    return list.indices.allSatisfy { token in
      guard list.text(token) == "operator",
        let open = (token + 2..<token + 4).first(where: { list.text($0) == "(" }),
        span(token, open).map({ list.text($0) }).joined() == parameter.function
      else { return true }
      return list.splitAtCommas(span(open + 1, list.after(open) - 1)).allSatisfy { part in
        let words = Set(part.map { list.text($0) })
        return words.isDisjoint(with: ["&", "*"]) || words.isSuperset(of: ["const", "thread"])
      }
    }
  }

  /// Whether a constructor gives the parameter to its base, to a member that is a reference, or within an expression to a
  /// function: there its name is not one of `thread` memory.
  private func initialisersNeedMemory(_ parameter: ConstantReferenceParameter) -> Bool {
    guard let name = parameter.name.map({ list.text($0) }), !parameter.initialisers.isEmpty,
      let brace = list.enclosingBrace(parameter.space)
    else { return false }
    var position = parameter.initialisers.lowerBound
    while parameter.initialisers.contains(position) {
      let member = list.text(position + 1)
      while !["(", "{"].contains(list.text(position)) { position += 1 }
      let value = span(position + 1, list.after(position) - 1)
      position = list.after(position)
      guard value.contains(where: { list.text($0) == name }) else { continue }
      if value.count > 1 {
        let isGiven = value.contains {
          list.text($0) == name && ["&", "(", "{", ","].contains(list.text($0 - 1))
            && [",", ")", "}"].contains(list.text($0 + 1))
        }
        if isGiven { return true }
      } else if !hasMember(member, in: span(brace, list.after(brace))) {
        return true
      }
    }
    return false
  }

  /// Whether a class declares a data member of that name that is no reference.
  private func hasMember(_ name: String, in members: Range<Int>) -> Bool {
    members.contains {
      list.text($0) == name && (list.isIdentifier($0 - 1) || list.text($0 - 1) == ">")
        && [";", "=", "{", ","].contains(list.text($0 + 1))
    }
  }

  /// Whether the address of the parameter is taken, or a function may get a reference to it.
  private func needsMemory(_ parameter: ConstantReferenceParameter, _ body: Int) -> Bool {
    guard let name = parameter.name else { return false }
    return span(body, list.after(body)).contains { token in
      guard list.text(token) == list.text(name) else { return false }
      let before = list.text(token - 1)
      return before == "&" || ["(", ","].contains(before) && [",", ")"].contains(list.text(token + 1))
    }
  }
}
