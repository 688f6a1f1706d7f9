/// A program-scope `constant` whose initializer depends on function constants:
/// it gets its value when the object is loaded.
struct DerivedConstant {
  /// The namespace that it is in, with `::` at the end; empty at the top.
  let qualifier: String
  let name: String
  /// A statement for the initialize function.
  let statement: String
  /// Offset of the declaration in the source.
  let offset: Int
}

enum DerivedConstants {
  /// - Parameter reachability: says which declarations reach a function constant.
  static func lower(_ context: inout LoweringContext, _ reachability: Reachability) -> [DerivedConstant] {
    var result: [DerivedConstant] = []
    for (index, declaration) in context.declarations.enumerated()
    where declaration.kind == .variable && declaration.attribute("function_constant") == nil
      && reachability.reachesFunctionConstant(index)
    {
      if let constant = lower(declaration, &context, number: result.count) { result.append(constant) }
    }
    return result
  }

  private static func lower(
    _ declaration: Declaration, _ context: inout LoweringContext, number: Int
  ) -> DerivedConstant? {
    let list = context.list
    let end = declaration.tokens.upperBound - 1
    let head = span(declaration.headStart, declaration.nameToken)
    guard let keyword = head.first(where: { list.text($0) == "constant" }) else { return nil }
    let name = declaration.name
    let typeName = head.filter { !["constant", "static", "const", "constexpr", "extern"].contains(list.text($0)) }
      .map { list.text($0) }.joined(separator: " ")
    var dimensions = declaration.nameToken + 1
    while list.text(dimensions) == "[" { dimensions = list.after(dimensions) }
    let dimensionText =
      dimensions > declaration.nameToken + 1 ? list.joined(declaration.nameToken + 1..<dimensions) : ""
    guard dimensions < end, list.text(dimensions) == "=" || list.text(dimensions) == "{" else { return nil }
    if list.splitAtCommas(dimensions..<end).count > 1 {
      context.report("declare '\(name)' alone: its value depends on function constants", at: declaration.nameToken)
      return nil
    }
    let first = list.text(dimensions) == "=" ? dimensions + 1 : dimensions
    let range = list.tokens[first].range.lowerBound..<list.tokens[end].range.lowerBound
    let value = context.loweredText(range)
    FunctionConstants.rewriteStorage(head, keyword, &context)
    context.insert(" SM_SYMBOL(derived, \(number)) = {}", before: dimensions)
    context.blank(dimensions..<end)
    let statement: String
    if dimensionText.isEmpty {
      statement =
        list.text(first) == "{" ? "\(name) = \(typeName)\(value);" : "\(name) = (\(value));"
    } else {
      statement = """
        { \(typeName) values\(dimensionText) = \(value); \
        for (unsigned long i = 0; i < sizeof(values) / sizeof(values[0]); ++i) \(name)[i] = values[i]; }
        """
    }
    return DerivedConstant(
      qualifier: declaration.qualifier, name: name, statement: statement,
      offset: list.tokens[declaration.nameToken].range.lowerBound)
  }
}
