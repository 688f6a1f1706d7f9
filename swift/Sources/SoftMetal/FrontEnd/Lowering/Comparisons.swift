/// Gives comparisons of vectors the type that Metal gives them.
///
/// clang has a mask for `v < w`, an integer vector of 0 and -1, which becomes a
/// vector of bool where one is asked for. Where the type of the expression itself
/// matters, as in `float3(v < w)`, `(v < w).x`, `auto m = v < w`, `decltype(v < w)`
/// and an argument of a function of the source, the expression becomes
/// `sm_truth(v < w)`; a scalar passes through that unchanged.
enum Comparisons {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let classes = ClassDefinition.all(list)
    let functions = context.declarations.filter { $0.kind == .function }
    let names = classes.reduce(Set(functions.map(\.name))) { $0.union($1.functions).union($1.staticFunctions) }
    let declared = Set(functions.map(\.nameToken))
    lower(list, calls: names, &context.edits) { token in
      declared.contains(token)
        || list.enclosingBrace(token).map { open in classes.contains { $0.open == open } } ?? false
    }
    for function in functions {
      guard let body = function.body,
        span(function.headStart, function.nameToken).contains(where: { list.text($0) == "auto" })
      else { continue }
      for token in body where list.text(token) == "return" {
        if let end = statementEnd(token, list) { wrap(span(token + 1, end), list, &context.edits) }
      }
    }
  }

  private static func statementEnd(_ token: Int, _ list: TokenList) -> Int? {
    span(token, list.count).first { list.text($0) == ";" }
  }

  /// - Parameters:
  ///   - calls: names of functions whose arguments may decide on a type.
  ///   - isDeclared: whether such a name at a token is declared there.
  private static func lower(
    _ list: TokenList, calls: Set<String>, _ edits: inout EditList, isDeclared: (Int) -> Bool
  ) {
    for token in list.indices {
      switch list.text(token) {
      case "(":
        let close = list.after(token) - 1
        if list.text(token - 1) == "decltype" { wrap(span(token + 1, close), list, &edits) }
        var name = token - 1
        if list.text(name) == ">", let open = list.openingAngle(name) { name = open - 1 }
        if calls.contains(list.text(name)), !isDeclared(name) {
          wrapArguments(span(token + 1, close), list, &edits)
          continue
        }
        let isIndexed = list.text(close + 1) == "[" || (list.text(close + 1) == "." && list.isIdentifier(close + 2))
        if isIndexed, list.operandStart(close + 1) == token { wrap(span(token + 1, close), list, &edits) }
      case "auto":
        lowerInitialiser(token, list, &edits)
      case let type where numberVectors.contains(type):
        lowerInitialiser(token, list, &edits)
      default: break
      }
    }
  }

  /// Built-in vectors of numbers, which do not come from vectors of bool.
  private static let numberVectors = VectorTypes.builtIn.filter { $0.last?.isNumber ?? false && !$0.contains("bool") }

  /// `auto name = v < w` at the type.
  private static func lowerInitialiser(_ type: Int, _ list: TokenList, _ edits: inout EditList) {
    guard list.isIdentifier(type + 1), list.text(type + 2) == "=", let end = statementEnd(type, list) else { return }
    if let value = split(span(type + 3, end), list, at: [","]).first { wrap(value, list, &edits) }
  }

  /// Wraps each of the arguments in `range` that is a comparison.
  static func wrapArguments(_ range: Range<Int>, _ list: TokenList, _ edits: inout EditList) {
    for argument in split(range, list, at: [","]) { wrap(argument, list, &edits) }
  }

  private static func wrap(_ range: Range<Int>, _ list: TokenList, _ edits: inout EditList) {
    guard isComparison(range, list, depth: 0) else { return }
    edits.wrap(list.byteRange(range), "sm_truth(", ")")
  }

  private static let comparing: Set<String> = ["<", ">", "<=", ">=", "==", "!=", "&&", "||"]
  /// What binds less than a comparison, and decides on the type.
  private static let weaker = TokenList.assignments.union(["?", ",", ";"])

  /// Whether the value of the expression in `range` is one of truth.
  private static func isComparison(_ range: Range<Int>, _ list: TokenList, depth: Int) -> Bool {
    guard let first = range.first, depth < 64 else { return false }
    if list.text(first) == "(", list.partner[first] == range.upperBound - 1 {
      return isComparison(span(first + 1, range.upperBound - 1), list, depth: depth + 1)
    }
    let operators = outer(range, list).map { list.text($0) }
    if operators.contains("?") {
      let branches = split(range, list, at: ["?", ":"])
      return branches.count == 3 && branches.dropFirst().allSatisfy { isComparison($0, list, depth: depth + 1) }
    }
    if !weaker.isDisjoint(with: operators) { return false }
    if !comparing.isDisjoint(with: operators) { return true }
    if list.text(first) == "!" { return list.operandEnd(first) == range.upperBound }
    let parts = split(range, list, at: ["&", "|", "^"])
    return parts.count > 1 && parts.allSatisfy { isComparison($0, list, depth: depth + 1) }
  }

  private static func split(_ range: Range<Int>, _ list: TokenList, at separators: Set<String>) -> [Range<Int>] {
    var parts: [Range<Int>] = []
    var start = range.lowerBound
    for token in outer(range, list) where separators.contains(list.text(token)) {
      parts.append(span(start, token))
      start = token + 1
    }
    return parts + [span(start, range.upperBound)]
  }

  /// The operators of `range` that no bracket and no template argument list encloses; of shifts to the right none.
  private static func outer(_ range: Range<Int>, _ list: TokenList) -> [Int] {
    var found: [Int] = []
    var position = range.lowerBound
    while position < range.upperBound {
      switch list.text(position) {
      case "(", "[", "{":
        position = list.after(position)
        continue
      case "<":
        if list.isIdentifier(position - 1), let close = list.closingAngle(position), close < range.upperBound,
          ["(", "::", "{"].contains(list.text(close + 1))
        {
          position = close
        } else {
          found.append(position)
        }
      case ">"
      where [">", ">="].contains(list.text(position + 1))
        && list.tokens[position].range.upperBound == list.tokens[position + 1].range.lowerBound:
        position += 1
      default:
        if list.tokens[position].kind == .punctuation { found.append(position) }
      }
      position += 1
    }
    return found
  }
}
