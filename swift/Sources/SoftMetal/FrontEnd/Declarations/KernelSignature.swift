/// The parameters of a kernel as the types of `softmetal_object` that supply
/// their arguments.
struct KernelSignature {
  struct Argument {
    /// Type in `softmetal_object`, such as `Buffer` or `ThreadsPerGrid`.
    let type: String
    /// Expression of the index, which may name template parameters; empty for a position.
    var index = ""
    /// Function constant that decides on the presence; empty if always present.
    var condition = ""
    /// As the source names it; empty without a name.
    var name = ""
    /// Token that stands for the argument in diagnostics.
    var token = 0
    /// Value of the index where the text tells it.
    var number: Int?

    /// What its index counts.
    var kind: String { type == "ThreadgroupMemory" ? "threadgroup" : "buffer" }

    static let indices = 0...30
    static let outOfBounds = "is out of bounds: it must be between 0 and 30"
    static let alreadyUsed = "is already used by another argument of the kernel"
  }

  /// One for each parameter.
  private(set) var arguments: [Argument] = []
  /// MSL attributes of positions and sizes, with the type that supplies each.
  static let positions: [String: String] = [
    "thread_position_in_grid": "ThreadPositionInGrid",
    "threads_per_grid": "ThreadsPerGrid",
    "thread_position_in_threadgroup": "ThreadPositionInThreadgroup",
    "threads_per_threadgroup": "ThreadsPerThreadgroup",
    "threadgroup_position_in_grid": "ThreadgroupPositionInGrid",
    "threadgroups_per_grid": "ThreadgroupsPerGrid",
    "thread_index_in_threadgroup": "ThreadIndexInThreadgroup",
    "thread_index_in_simdgroup": "ThreadIndexInSimdgroup",
    "simdgroup_index_in_threadgroup": "SimdgroupIndexInThreadgroup",
    "threads_per_simdgroup": "ThreadsPerSimdgroup",
    "thread_execution_width": "ThreadsPerSimdgroup",
    "simdgroups_per_threadgroup": "SimdgroupsPerThreadgroup",
    "dispatch_threads_per_threadgroup": "DispatchThreadsPerThreadgroup",
    "dispatch_simdgroups_per_threadgroup": "DispatchSimdgroupsPerThreadgroup",
    "grid_origin": "GridOrigin",
    "grid_size": "GridSize",
    "thread_index_in_quadgroup": "ThreadIndexInQuadgroup",
    "quadgroup_index_in_threadgroup": "QuadgroupIndexInThreadgroup",
    "quadgroups_per_threadgroup": "QuadgroupsPerThreadgroup",
    "dispatch_quadgroups_per_threadgroup": "DispatchQuadgroupsPerThreadgroup",
  ]

  private struct Parameter {
    let tokens: Range<Int>
    let attributes: [Attribute]
    /// Function constant that decides on the presence, or empty.
    let condition: String
  }

  /// Reads the parameters of `declaration`. Wrong ones are reported.
  init(_ declaration: Declaration, _ context: inout LoweringContext) {
    let list = context.list
    let isVoid = declaration.parameters.count == 1 && list.text(declaration.parameters.lowerBound) == "void"
    guard !isVoid else { return }
    let parameters = list.splitAtCommas(declaration.parameters).map { tokens in
      let attributes = Attribute.attributes(in: tokens, of: list)
      let condition = attributes.first { $0.name == "function_constant" }.map { list.joined($0.argument) } ?? ""
      return Parameter(tokens: tokens, attributes: attributes, condition: condition)
    }
    let used = Self.names(usedBy: declaration, context)
    var free = FreeIndices(parameters.map(\.attributes), context)
    for parameter in parameters { add(parameter, used, &free, &context) }
    PositionWidths.check(parameters.map { ($0.tokens, $0.attributes) }, &context)
  }

  /// The names in the body of a function.
  private static func names(usedBy declaration: Declaration, _ context: LoweringContext) -> Set<String> {
    Set((declaration.body ?? 0..<0).map { context.list.text($0) })
  }

  private mutating func add(
    _ parameter: Parameter, _ used: Set<String>, _ free: inout FreeIndices, _ context: inout LoweringContext
  ) {
    let list = context.list
    let places = parameter.attributes.filter { Self.isPlace($0.name) }
    if places.count > 1, let second = places.dropFirst().first {
      context.report("a kernel argument has one index or position; this one has more", at: second.token)
      return
    }
    for attribute in parameter.attributes {
      if let position = Self.positions[attribute.name] {
        Self.checkType(parameter.tokens, attribute, &context)
        arguments.append(Argument(type: position, token: attribute.token))
        return
      }
    }
    let place = parameter.attributes.first { $0.name == "buffer" || $0.name == "threadgroup" }
    let start = parameter.tokens.lowerBound
    if place == nil, let unknown = parameter.attributes.first(where: { !Self.isNeutral($0.name) }) {
      context.report("attribute '\(unknown.name)' is not supported on a kernel argument", at: unknown.token)
      return
    }
    let plain = FunctionConstants.withoutAttributes(parameter.tokens, list)
    let isReference = plain.contains { ["*", "&", "["].contains(list.text($0)) }
    let space = plain.first { AddressSpace.qualified.contains(list.text($0)) }
    guard isReference else {
      context.report(
        "a kernel argument is a pointer or a reference to 'device', 'constant' or 'threadgroup' memory, "
          + "or has the attribute of a thread position", at: start)
      return
    }
    guard let space else {
      context.report("a pointer or reference argument of a kernel needs an address space", at: start)
      return
    }
    let isThreadgroup = list.text(space) == "threadgroup"
    if let place, (place.name == "threadgroup") != isThreadgroup {
      context.report(
        "attribute '\(place.name)' does not go with the address space '\(list.text(space))'", at: place.token)
      return
    }
    let isUsed = plain.contains { used.contains(list.text($0)) }
    var argument = Argument(
      type: isThreadgroup ? "ThreadgroupMemory" : isUsed ? "Buffer" : "UnusedBuffer", condition: parameter.condition,
      name: Self.name(plain, list), token: start)
    if let place, place.argument.isEmpty {
      context.report("attribute '\(place.name)' needs an index", at: place.token)
      return
    } else if let place {
      argument.index = Self.parenthesized(list.joined(place.argument))
      argument.token = place.token
      argument.number = IntegerExpression.value(of: place.argument, list)
    } else {
      let number = isThreadgroup ? free.takeThreadgroup() : free.takeBuffer()
      argument.index = String(number)
      argument.number = number
    }
    arguments.append(argument)
  }

  private static let pointerQualifiers: Set<String> = ["const", "volatile", "restrict", "__restrict", "__restrict__"]

  /// The declared name among the tokens of a pointer, a reference or an array; empty without one.
  private static func name(_ tokens: [Int], _ list: TokenList) -> String {
    let declarator = tokens.prefix { list.text($0) != "[" }
    let sign = declarator.lastIndex { ["*", "&"].contains(list.text($0)) }
    let names = declarator[(sign ?? declarator.startIndex)...].filter {
      list.isIdentifier($0) && !pointerQualifiers.contains(list.text($0))
    }
    return names.last.map { list.text($0) } ?? ""
  }

  /// Refuses the built-in types that a position cannot have.
  private static func checkType(_ tokens: Range<Int>, _ attribute: Attribute, _ context: inout LoweringContext) {
    let list = context.list
    let plain = FunctionConstants.withoutAttributes(tokens, list)
    if let sign = plain.first(where: { ["*", "&"].contains(list.text($0)) }) {
      context.report("attribute '\(attribute.name)' cannot be applied to a pointer or reference", at: sign)
      return
    }
    let words = plain.filter { list.isIdentifier($0) && list.text($0) != "const" }
    guard words.count == 2, let type = words.first, let name = words.last else { return }
    let text = list.text(type)
    let isScalar =
      attribute.name.contains("index") || attribute.name.contains("simdgroup")
      || attribute.name.contains("quadgroup") || attribute.name == "thread_execution_width"
    let allowed = isScalar ? ["uint", "ushort"] : ["uint", "uint2", "uint3", "ushort", "ushort2", "ushort3"]
    guard !allowed.contains(text), isBuiltIn(text) else { return }
    context.report(
      "attribute '\(attribute.name)' cannot be applied to type '\(text)'; expected \(allowed.joined(separator: ", "))",
      at: name)
  }

  private static func isBuiltIn(_ type: String) -> Bool {
    VectorTypes.builtIn.contains(type) || VectorTypes.components.contains(type) || type == "size_t"
  }

  private static func isPlace(_ name: String) -> Bool {
    name == "buffer" || name == "threadgroup" || positions[name] != nil
  }

  private static func isNeutral(_ name: String) -> Bool {
    name == "function_constant" || Attribute.standardNames.contains(name)
  }

  private static func parenthesized(_ text: String) -> String {
    text.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 } ? text : "(\(text))"
  }
}

/// The indices that arguments without one get: the lowest free, in order.
private struct FreeIndices {
  private var buffers: Set<Int> = []
  private var threadgroups: Set<Int> = []

  init(_ attributes: [[Attribute]], _ context: LoweringContext) {
    for attribute in attributes.joined() {
      guard let index = IntegerExpression.value(of: attribute.argument, context.list) else { continue }
      if attribute.name == "buffer" { buffers.insert(index) }
      if attribute.name == "threadgroup" { threadgroups.insert(index) }
    }
  }

  mutating func takeBuffer() -> Int { Self.take(from: &buffers) }
  mutating func takeThreadgroup() -> Int { Self.take(from: &threadgroups) }

  private static func take(from used: inout Set<Int>) -> Int {
    var index = 0
    while used.contains(index) { index += 1 }
    used.insert(index)
    return index
  }
}
