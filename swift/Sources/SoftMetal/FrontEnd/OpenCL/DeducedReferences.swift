/// Function templates that take `const thread T &x` or `const thread S<T> &x`, of which clang finds T from the argument,
/// and functions of the same name, among which it chooses.
///
/// They stay as they are: written as `const T &x`, which may be a temporary, T would have the memory of a variable in it.
/// What clang does not bind to `const thread T &`, temporaries and values in other memory, gets to them by overloads that
/// copy it: one that takes values, and is chosen last, and one for each set of references that are given temporaries.
///
/// A function that gives out the address of its argument has none, nor has one that returns a constant reference.
struct DeducedReferences {
  private let list: TokenList
  private let references: [ConstantReferenceParameter]
  private let function: ConstantReferenceParameter
  /// Nil for what is no template.
  private let header: TemplateHeader?
  private let parameters: [Parameter]

  static func lower(_ context: inout LoweringContext) {
    let parameters = ConstantReferenceParameter.all(context.list)
    let deducing = ConstantReferenceParameter.deducing(parameters)
    let all = parameters.filter { deducing.contains($0.function) && !$0.isOfSpecialization }
    for (_, references) in Dictionary(grouping: all, by: \.parameters.lowerBound).sorted(by: { $0.key < $1.key }) {
      guard let body = references.first?.body, let function = DeducedReferences(references, context) else { continue }
      context.insert(function.overloads(context), after: context.list.after(body) - 1)
    }
  }

  private init?(_ references: [ConstantReferenceParameter], _ context: LoweringContext) {
    list = context.list
    let list = list
    guard let function = references.first else { return nil }
    let header = TemplateHeader(function.head, list)
    guard
      !Self.givesMemory(span(header.map { $0.close + 1 } ?? function.head.lowerBound, function.head.upperBound), list),
      !references.contains(where: { Self.isAddressTaken(of: $0, list) }),
      let parameters = Self.parameters(of: function, references, list)
    else { return nil }
    self.references = references
    self.function = function
    self.header = header
    self.parameters = parameters
  }

  /// Whether what stands before a function's name is a pointer or a reference to what cannot be changed, as an argument
  /// cannot.
  private static func givesMemory(_ result: Range<Int>, _ list: TokenList) -> Bool {
    guard let sign = result.last, ["&", "*"].contains(list.text(sign)) else { return false }
    return result.contains { ["const", "auto"].contains(list.text($0)) }
  }

  private static func isAddressTaken(of parameter: ConstantReferenceParameter, _ list: TokenList) -> Bool {
    guard let name = parameter.name, let body = parameter.body else { return false }
    return span(parameter.parameters.upperBound, list.after(body)).contains { token in
      guard list.text(token) == list.text(name), list.text(token - 1) == "&" else { return false }
      let before = list.text(token - 2)
      return before == "return" || list.tokens[token - 2].kind == .punctuation && ![")", "]"].contains(before)
    }
  }

  // MARK: Overloads

  private func overloads(_ context: LoweringContext) -> String {
    // One with a pack of its own cannot have the one that marks an overload as the last to be chosen.
    var result = header?.hasPack ?? false ? "" : overload(temporaries: nil, context)
    guard references.count <= 4 else { return result }
    for temporaries in 1..<1 << references.count { result += overload(temporaries: temporaries, context) }
    return result
  }

  /// - Parameter temporaries: a bit for each of the references; nil for the overload that takes values.
  private func overload(temporaries: Int?, _ context: LoweringContext) -> String {
    var (declared, arguments, copies) = ([String](), [String](), "")
    for parameter in parameters {
      guard let index = parameter.reference else {
        declared.append(parameter.text(context))
        arguments.append(parameter.name + (parameter.isPack ? "..." : ""))
        continue
      }
      let type = list.joined(references[index].type)
      if temporaries == nil {
        declared.append("const \(type) \(parameter.name)")
        arguments.append(parameter.name)
      } else if let temporaries, temporaries >> index & 1 == 1 {
        declared.append("const \(type) &&\(parameter.name)")
        copies += "const \(type) sm_\(parameter.name) = \(parameter.name); "
        arguments.append(isConstructor ? "*(const thread \(type) *)&\(parameter.name)" : "sm_\(parameter.name)")
      } else {
        declared.append("const thread \(type) &\(parameter.name)")
        arguments.append(parameter.name)
      }
    }
    let start = header?.close ?? function.head.lowerBound
    var template = context.lowered(function.head.lowerBound..<start)
    if temporaries == nil {
      template += header == nil ? "template <int... SmNone> " : ", int... SmNone"
      declared.append("::softmetal::None<SmNone>...")
    }
    let head = "\(template)\(context.lowered(start..<function.head.upperBound)) \(function.function)"
    let call = "(\(arguments.joined(separator: ", ")))"
    let end = " \(head)(\(declared.joined(separator: ", ")))\(qualifiers(context))"
    if isConstructor { return "\(end) : \(function.function)\(call) {}" }
    let templateArguments = header.map { "<\($0.arguments.joined(separator: ", "))>" } ?? ""
    return "\(end) { \(copies)return \(function.function)\(templateArguments)\(call); }"
  }

  /// What stands between the parameters and the body.
  private func qualifiers(_ context: LoweringContext) -> String {
    guard !isConstructor, let body = function.body else { return "" }
    let start = list.tokens[function.parameters.upperBound - 1].range.upperBound
    return " " + context.loweredText(start..<list.tokens[body].range.lowerBound)
  }

  /// Whether no type stands before the name.
  private var isConstructor: Bool {
    span(header.map { $0.close + 1 } ?? function.head.lowerBound, function.head.upperBound).allSatisfy {
      ["inline", "constexpr", "explicit", "METAL_FUNC"].contains(list.text($0))
    }
  }

  // MARK: Parameters

  private struct Parameter {
    let tokens: Range<Int>
    /// Its name, or one of ours.
    let name: String
    /// Where a name of ours goes, before a default; nil where there is one.
    let place: Int?
    let isPack: Bool
    /// Its index among the references.
    let reference: Int?

    func text(_ context: LoweringContext) -> String {
      guard let place else { return context.lowered(tokens) }
      return "\(context.lowered(tokens.lowerBound..<place)) \(name) \(context.lowered(place..<tokens.upperBound))"
    }
  }

  /// Nil where the text does not tell the name of one, or where it has none to put one in.
  private static func parameters(
    of function: ConstantReferenceParameter, _ references: [ConstantReferenceParameter], _ list: TokenList
  ) -> [Parameter]? {
    var result: [Parameter] = []
    for part in list.splitAtCommas(function.parameters.dropFirst().dropLast()) {
      let end = part.first { list.text($0) == "=" } ?? part.upperBound
      let isPack = part.contains { list.text($0) == "..." }
      let reference = references.firstIndex { part.contains($0.space) }
      if let name = name(span(part.lowerBound, end), list) {
        result.append(
          Parameter(tokens: part, name: list.text(name), place: nil, isPack: isPack, reference: reference))
      } else if ["]", ")"].contains(list.text(end - 1)) {
        return nil
      } else {
        let name = "sm_argument_\(result.count)"
        result.append(Parameter(tokens: part, name: name, place: end, isPack: isPack, reference: reference))
      }
    }
    return result
  }

  /// The name that a parameter without its default declares, or nil.
  private static func name(_ tokens: Range<Int>, _ list: TokenList) -> Int? {
    // `thread float (&name)[4]`
    if let open = tokens.first(where: { list.text($0) == "(" && ["&", "*"].contains(list.text($0 + 1)) }) {
      return list.isIdentifier(open + 2) ? open + 2 : nil
    }
    var last = tokens.upperBound - 1
    while tokens.contains(last), list.text(last) == "]" { last = list.partner[last] - 1 }
    guard tokens.contains(last), list.isIdentifier(last), !VectorTypes.scalars.contains(list.text(last)) else {
      return nil
    }
    let words = span(tokens.lowerBound, last).filter { !notTypes.contains(list.text($0)) }
    return words.isEmpty || list.text(last - 1) == "::" ? nil : last
  }

  /// Words before a name that are no type.
  private static let notTypes = AddressSpace.all.union(["const", "volatile", "typename", "struct", "class", "enum"])
}

/// The `template <...>` that a declaration begins with.
private struct TemplateHeader {
  /// The token `>`.
  let close: Int
  /// The parameters as arguments, up to the first without a name.
  private(set) var arguments: [String] = []
  private(set) var hasPack = false

  init?(_ head: Range<Int>, _ list: TokenList) {
    guard let open = head.first(where: { list.text($0) == "<" }), list.text(open - 1) == "template",
      let close = list.closingAngle(open), close < head.upperBound
    else { return nil }
    self.close = close
    var isNamed = true
    for part in list.splitAtCommas(span(open + 1, close)) {
      let end = part.first { list.text($0) == "=" } ?? part.upperBound
      let isPack = part.contains { list.text($0) == "..." }
      hasPack = hasPack || isPack
      // `float (*F)(float)`
      let function = part.first { ["*", "&"].contains(list.text($0 - 1)) && list.text($0 + 1) == ")" }
      let name = function ?? end - 1
      isNamed = isNamed && name > part.lowerBound && list.isIdentifier(name) && list.text(name - 1) != "::"
      if isNamed { arguments.append(list.text(name) + (isPack ? "..." : "")) }
    }
  }
}
