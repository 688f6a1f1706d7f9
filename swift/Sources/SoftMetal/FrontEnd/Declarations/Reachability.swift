/// What a kernel can reach, by the names in its text: the transitive closure
/// over the functions, types and constants of the file.
struct Reachability {
  struct Facts {
    /// Threads wait for each other or share memory.
    var needsLanes = false
    var usesMatrices = false
    /// Loops in a thread: clang turns no loop over threads that has one inside into vectors.
    var hasLoops = false
    /// Private arrays, whose elements clang does turn into vectors.
    var hasArrays = false
    /// Names of function constants.
    var constants: Set<String> = []
    /// Those asked about with `is_function_constant_defined`, which may stay without a value.
    var optionalConstants: Set<String> = []
    /// Tokens of all that is reached.
    var size = 0

    fileprivate mutating func formUnion(_ other: Facts) {
      needsLanes = needsLanes || other.needsLanes
      usesMatrices = usesMatrices || other.usesMatrices
      hasLoops = hasLoops || other.hasLoops
      hasArrays = hasArrays || other.hasArrays
      constants.formUnion(other.constants)
      optionalConstants.formUnion(other.optionalConstants)
      size += other.size
    }
  }

  private struct Node {
    var facts = Facts()
    var successors: Set<Int> = []
  }

  private let list: TokenList
  private let constants: Set<String>
  private let nodesByName: [String: [Int]]
  /// One for each declaration.
  private var nodes: [Node] = []

  /// - Parameter constants: the names of the function constants.
  init(_ context: LoweringContext, constants: Set<String>) {
    list = context.list
    self.constants = constants
    nodesByName = Self.names(context)
    let kernels = Kernels.functions(context)
    for (index, declaration) in context.declarations.enumerated() {
      // One declaration can hold several function constants, which do not reach each other.
      let isConstant = declaration.attribute("function_constant") != nil && declaration.kind == .variable
      var node = isConstant ? Node() : scan(declaration.tokens)
      // Kernels alone have threadgroup memory: elsewhere the word stands in the types of pointers and objects.
      if kernels.contains(index), declaration.tokens.contains(where: { list.text($0) == "threadgroup" }) {
        node.facts.needsLanes = true
      }
      if declaration.kind == .function { noteLoops(declaration.tokens, in: &node.facts) }
      node.facts.size = declaration.tokens.count
      // Operators are used without their name.
      if declaration.kind == .function { node.successors.formUnion(nodesByName["operator"] ?? []) }
      nodes.append(node)
    }
  }

  func reachesFunctionConstant(_ declaration: Int) -> Bool {
    !facts(of: declaration).constants.isEmpty
  }

  /// The facts of everything that the declaration `root` and the names in
  /// `tokens` reach.
  func facts(of root: Int, tokens: Range<Int> = 0..<0) -> Facts {
    let start = scan(tokens)
    var facts = start.facts
    var visited = [Bool](repeating: false, count: nodes.count)
    var pending = [root] + start.successors
    while let index = pending.popLast() {
      guard !visited[index] else { continue }
      visited[index] = true
      facts.formUnion(nodes[index].facts)
      pending += nodes[index].successors
    }
    return facts
  }

  private static func names(_ context: LoweringContext) -> [String: [Int]] {
    var result: [String: [Int]] = [:]
    for (index, declaration) in context.declarations.enumerated() where declaration.kind != .instantiation {
      result[declaration.name, default: []].append(index)
      let list = context.list
      if declaration.kind == .variable {
        for other in list.splitAtCommas(span(declaration.headStart, declaration.tokens.upperBound)).dropFirst() {
          result[list.text(other.lowerBound), default: []].append(index)
        }
      }
      if declaration.kind == .function, list.text(declaration.nameToken - 1) == "::" {
        result[list.text(declaration.nameToken - 2), default: []].append(index)
      }
    }
    return result
  }

  private func scan(_ range: Range<Int>) -> Node {
    var node = Node()
    var position = range.lowerBound
    while position < range.upperBound {
      if Attribute.isListStart(position, of: list) {
        for attribute in Attribute.parseList(position, of: list) {
          for token in attribute.argument where list.isIdentifier(token) {
            note(list.text(token), isUse: false, in: &node)
          }
        }
        position = list.after(position)
        continue
      }
      if list.isIdentifier(position) {
        let next = list.text(position + 1)
        if list.text(position) == FunctionConstants.query, next == "(" {
          node.facts.optionalConstants.insert(list.text(list.after(position + 1) - 2))
        }
        note(list.text(position), isUse: next == "(" || next == "<", in: &node)
      }
      position += 1
    }
    return node
  }

  private func noteLoops(_ range: Range<Int>, in facts: inout Facts) {
    for position in range {
      let text = list.text(position)
      facts.hasLoops = facts.hasLoops || text == "for" || text == "while" || text == "do"
      guard text == "[", position - 2 >= range.lowerBound, list.text(position + 1) != "[",
        list.isIdentifier(position - 1)
      else { continue }
      // A type, a name, a bracket.
      let before = list.text(position - 2)
      let isType = before == ">" || (list.isIdentifier(position - 2) && before != "return" && before != "else")
      facts.hasArrays = facts.hasArrays || isType
    }
  }

  /// - Parameter isUse: whether the name is called, not that of a variable.
  private func note(_ name: String, isUse: Bool, in node: inout Node) {
    node.successors.formUnion(nodesByName[name] ?? [])
    if constants.contains(name) { node.facts.constants.insert(name) }
    let isMatrix = name == "make_filled_simdgroup_matrix" || (name.hasPrefix("simdgroup_") && name.hasSuffix("8x8"))
    if isMatrix || (isUse && name.hasPrefix("simdgroup_")) {
      node.facts.needsLanes = true
      if name != "simdgroup_barrier" { node.facts.usesMatrices = true }
    } else if name == "threadgroup_barrier" {
      node.facts.needsLanes = true
    } else if isUse, name.hasPrefix("simd_") || name.hasPrefix("quad_") {
      node.facts.needsLanes = true
    }
  }
}
