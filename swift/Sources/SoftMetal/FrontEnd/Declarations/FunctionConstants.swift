/// A program-scope `constant` with `[[function_constant(n)]]`.
struct FunctionConstant {
  let name: String
  /// Offset of the name in the source.
  let offset: Int
  let qualifier: String
  let typeName: String
  /// The attribute's name, and its argument.
  let attribute: Int
  let index: Range<Int>
  /// The value of the argument where it is made of literals.
  let number: Int?

  var qualifiedName: String { qualifier + name }
  var definedFlag: String { qualifier + "sm_defined_" + name }
  /// An enumerator with the value of an argument that names something.
  var shortIndexName: String { "sm_index_" + name }
  var indexName: String { "::" + qualifier + shortIndexName }
}

/// Makes function constants variables that the loader sets.
enum FunctionConstants {
  static func lower(_ context: inout LoweringContext) -> [FunctionConstant] {
    var result: [FunctionConstant] = []
    for declaration in context.declarations
    where declaration.kind == .variable && declaration.attribute("function_constant") != nil {
      result += lower(declaration, &context, first: result.count)
    }
    checkTypes(result, &context)
    let names = Set(result.map(\.name))
    lowerQueries(&context, names)
    checkAssignments(&context, names)
    return result
  }

  /// The function that asks whether a constant has a value.
  static let query = "is_function_constant_defined"

  private static let storageWords: Set<String> = ["static", "const", "constexpr", "extern", "constant", "volatile"]

  /// - Parameter first: the number of the declaration's first constant, by which a loader finds it on a GPU.
  private static func lower(
    _ declaration: Declaration, _ context: inout LoweringContext, first: Int
  ) -> [FunctionConstant] {
    let list = context.list
    let end = declaration.tokens.upperBound - 1
    guard let keyword = span(declaration.headStart, end).first(where: { list.text($0) == "constant" }) else {
      context.report(
        "'\(declaration.name)' needs the 'constant' address space to be a function constant", at: declaration.nameToken)
      return []
    }
    var result: [FunctionConstant] = []
    var typeName = ""
    for declarator in list.splitAtCommas(span(declaration.headStart, end)) {
      let attributes = Attribute.attributes(in: declarator, of: list)
      let plain = withoutAttributes(declarator, list)
      guard let name = plain.last(where: { list.isIdentifier($0) }),
        let constant = attributes.first(where: { $0.name == "function_constant" })
      else { continue }
      if let equals = plain.first(where: { ["=", "{"].contains(list.text($0)) }) {
        context.report("function constant '\(list.text(name))' cannot have an initializer", at: equals)
        continue
      }
      if result.isEmpty {
        typeName = plain.filter { $0 != name && !storageWords.contains(list.text($0)) }
          .map { list.text($0) }.joined(separator: " ")
      }
      context.insert(" SM_SYMBOL(constant, \(first + result.count)) = {}", after: name)
      result.append(
        FunctionConstant(
          name: list.text(name), offset: list.tokens[name].range.lowerBound, qualifier: declaration.qualifier,
          typeName: typeName, attribute: constant.token, index: constant.argument,
          number: IntegerExpression.value(of: constant.argument, list)))
    }
    rewriteStorage(span(declaration.headStart, end), keyword, &context)
    let flags = result.enumerated().map { number, constant in
      " SM_CONSTANT_STORAGE unsigned char sm_defined_\(constant.name) SM_SYMBOL(defined, \(first + number)) = 0;"
    }.joined()
    context.insert(flags, after: end)
    return result
  }

  /// Replaces `constant` by the storage macro and drops what does not go with it.
  static func rewriteStorage(_ tokens: Range<Int>, _ keyword: Int, _ context: inout LoweringContext) {
    let list = context.list
    for token in tokens where token != keyword && ["static", "const", "constexpr", "extern"].contains(list.text(token))
    {
      context.blank(token..<token + 1)
    }
    context.edits.replace(list.tokens[keyword].range, with: "SM_CONSTANT_STORAGE")
  }

  static func withoutAttributes(_ range: Range<Int>, _ list: TokenList) -> [Int] {
    var result: [Int] = []
    var position = range.lowerBound
    while position < range.upperBound {
      if Attribute.isListStart(position, of: list) {
        position = list.after(position)
      } else {
        result.append(position)
        position += 1
      }
    }
    return result
  }

  /// Refuses an index that is used twice, arrays and structs.
  private static func checkTypes(_ constants: [FunctionConstant], _ context: inout LoweringContext) {
    let list = context.list
    let classes = Set(ClassDefinition.all(list).map(\.name))
    var used: Set<Int> = []
    for constant in constants {
      if let number = constant.number, !used.insert(number).inserted {
        context.report("function constant index \(number) is already used", at: constant.attribute)
      }
      guard let name = list.tokens.firstIndex(where: { $0.range.lowerBound == constant.offset }) else { continue }
      let isArray = list.text(name + 1) == "[" && !Attribute.isListStart(name + 1, of: list)
      if isArray || classes.contains(constant.typeName) {
        context.report("a function constant is a scalar or a vector of the language", at: name)
      }
    }
  }

  private static let changes = TokenList.assignments.union(["++", "--"])

  /// Refuses what would change a constant, which is a variable to clang.
  private static func checkAssignments(_ context: inout LoweringContext, _ names: Set<String>) {
    let list = context.list
    // A variable of the same name may be changed.
    let shadowed = list.indices.filter { token in
      list.isIdentifier(token - 1) && ["=", ";", ",", ")"].contains(list.text(token + 1))
        && !TokenList.statementWords.contains(list.text(token - 1))
    }
    let names = names.subtracting(shadowed.map { list.text($0) })
    for token in list.indices where names.contains(list.text(token)) {
      let isStatement = [";", "{", "}", ")", "(", ","].contains(list.text(token - 1))
      let isChanged = isStatement && changes.contains(list.text(token + 1))
      if isChanged || ["++", "--"].contains(list.text(token - 1)) {
        context.report("cannot assign to the function constant '\(list.text(token))'", at: token)
      }
    }
  }

  /// `is_function_constant_defined(a::b)` becomes `(a::sm_defined_b != 0)`.
  private static func lowerQueries(_ context: inout LoweringContext, _ names: Set<String>) {
    let list = context.list
    for token in list.indices
    where list.text(token) == query && list.text(token + 1) == "(" {
      let close = list.after(token + 1) - 1
      guard close > token + 1, list.isIdentifier(close - 1) else { continue }
      guard names.contains(list.text(close - 1)) else {
        context.report("'\(list.text(close - 1))' is not a function constant", at: close - 1)
        continue
      }
      var start = token
      if list.text(token - 1) == "::" { start = list.isIdentifier(token - 2) ? token - 2 : token - 1 }
      context.blank(start..<token + 1)
      context.insert("sm_defined_", before: close - 1)
      context.insert(" != 0", after: close - 1)
    }
  }
}
