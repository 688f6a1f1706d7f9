/// What of a source involves lanes, as far as its text tells: functions of SIMD and quad groups, and names of functions,
/// classes and aliases that have them in their text, whatever they reach them by.
struct LaneUse {
  private let list: TokenList
  private var names: Set<String> = []
  /// Operators, destructors and functions that templates take have no name where they are called.
  private var isEverywhere = false

  /// Something that is defined, with the names that lead to it.
  private struct Definition {
    let tokens: Range<Int>
    let names: Set<String>
  }

  init(_ context: LoweringContext) {
    list = context.list
    isEverywhere = TemplateParameter.lists(of: list).contains { $0.contains { context.list.text($0) == "(" } }
    var others = Self.definitions(context)
    while !others.isEmpty {
      var left: [Definition] = []
      for definition in others {
        guard definition.tokens.contains(where: isUse) else {
          left.append(definition)
          continue
        }
        names.formUnion(definition.names)
        if definition.tokens.contains(where: hasNoName) { isEverywhere = true }
      }
      if left.count == others.count { break }
      others = left
    }
  }

  func involves(_ token: Int) -> Bool { isEverywhere || isUse(token) }

  private func isUse(_ token: Int) -> Bool {
    Self.isLaneFunction(token, of: list) || list.isIdentifier(token) && names.contains(list.text(token))
  }

  static func isLaneFunction(_ token: Int, of list: TokenList) -> Bool {
    guard list.isIdentifier(token), ["(", "<"].contains(list.text(token + 1)) else { return false }
    return list.text(token).hasPrefix("simd_") || list.text(token).hasPrefix("quad_")
  }

  private func hasNoName(_ token: Int) -> Bool {
    list.text(token) == "operator" || list.text(token) == "~" && list.text(token + 2) == "("
  }

  private static func definitions(_ context: LoweringContext) -> [Definition] {
    let list = context.list
    let declared = context.declarations.compactMap { declaration -> Definition? in
      guard declaration.body != nil || declaration.kind == .alias else { return nil }
      return Definition(tokens: declaration.tokens, names: [declaration.name])
    }
    let classes = ClassDefinition.all(list).map { definition in
      Definition(
        tokens: span(definition.open, min(definition.close + 1, list.count)),
        names: definition.functions.union(definition.staticFunctions).union([definition.name]))
    }
    return declared + classes
  }
}
