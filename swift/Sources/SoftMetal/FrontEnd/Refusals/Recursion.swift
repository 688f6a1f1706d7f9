/// Finds functions that call themselves, directly or through others.
///
/// Calls are matched by name, so only functions whose name is theirs alone
/// count: no templates, no overloads, no members. Clang finds the others, at the call.
struct Recursion {
  private let list: TokenList
  private let declarations: [Declaration]
  /// Index of the definition of each function considered.
  private let definitions: [String: Int]

  static func check(_ context: inout LoweringContext) {
    let recursion = Recursion(context)
    for declaration in recursion.cycles().map({ context.declarations[$0] }) {
      context.report(
        "function '\(declaration.name)' calls itself; recursion is not supported in Metal", at: declaration.nameToken)
    }
  }

  private init(_ context: LoweringContext) {
    list = context.list
    declarations = context.declarations
    var definitions: [String: Int] = [:]
    var ambiguous: Set<String> = []
    for (index, declaration) in context.declarations.enumerated() where declaration.kind == .function {
      if declaration.templateParameters != nil || list.text(declaration.nameToken - 1) == "::" {
        ambiguous.insert(declaration.name)
      } else if declaration.body != nil, definitions.updateValue(index, forKey: declaration.name) != nil {
        ambiguous.insert(declaration.name)
      }
    }
    for name in ambiguous.union(LibraryFunctions.names) { definitions[name] = nil }
    self.definitions = definitions
  }

  /// One function of each cycle of calls, the first in the source.
  private func cycles() -> [Int] {
    var result: [Int] = []
    var inCycle: Set<Int> = []
    for index in definitions.values.sorted() where !inCycle.contains(index) {
      let reached = reachable(from: index)
      guard reached.contains(index) else { continue }
      result.append(index)
      inCycle.formUnion(reached.filter { reachable(from: $0).contains(index) })
    }
    return result
  }

  private func reachable(from index: Int) -> Set<Int> {
    var result: Set<Int> = []
    var pending = calls(of: index)
    while let next = pending.popLast() {
      if result.insert(next).inserted { pending += calls(of: next) }
    }
    return result
  }

  private func calls(of index: Int) -> [Int] {
    guard let body = declarations[index].body else { return [] }
    return body.compactMap { token in
      guard list.isIdentifier(token), list.text(token + 1) == "(" else { return nil }
      let before = list.text(token - 1)
      if before == "." || before == "->" || before == "::" { return nil }
      return definitions[list.text(token)]
    }
  }
}
