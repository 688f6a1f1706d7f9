/// Finds references to elements of SIMD-group matrices that outlive a matrix operation.
///
/// One lane does the matrix operations of its SIMD group, and `thread_elements()`
/// waits for it. A reference that is used again after a later operation does
/// not: where there is one, every operation has to end with all lanes.
struct HeldElements {
  private let list: TokenList
  /// Functions of the source, any of which may do matrix operations.
  private let functions: Set<String>
  /// Those that take a reference or a pointer.
  private let takers: Set<String>

  /// Whether the source has such references, as far as its text tells; in doubt, it has.
  static func exist(in context: LoweringContext) -> Bool {
    let list = context.list
    let calls = list.indices.filter { list.text($0) == "thread_elements" && list.text($0 + 1) == "(" }
    return !calls.isEmpty && calls.contains(where: HeldElements(context).isHeld)
  }

  private init(_ context: LoweringContext) {
    list = context.list
    let declared = context.declarations.filter { $0.kind == .function }
    functions = Set(declared.map(\.name))
    takers = Set(
      declared.lazy.filter { [list] declaration in
        declaration.parameters.contains { ["&", "*"].contains(list.text($0)) }
      }.map(\.name))
  }

  private func isHeld(_ call: Int) -> Bool {
    let start = statementStart(call)
    if list.text(start) == "return" { return returnsReference(call) }
    if let name = declaredReference(span(start, call)) { return isUsedAfterWork(name, of: call) }
    return isArgument(call)
  }

  /// The first token of the statement that holds `token`.
  private func statementStart(_ token: Int) -> Int {
    var start = token
    while start > 0, ![";", "{", "}"].contains(list.text(start - 1)) {
      start = list.text(start - 1) == ")" || list.text(start - 1) == "]" ? max(list.partner[start - 1], 0) : start - 1
    }
    return start
  }

  /// The name in `TYPE & NAME =` and the like. An expression does not assign to a sum of bits or a product.
  private func declaredReference(_ tokens: Range<Int>) -> Int? {
    tokens.dropFirst().last { token in
      list.isIdentifier(token) && ["&", "&&", "*"].contains(list.text(token - 1))
        && token - 1 > tokens.lowerBound && ["=", "(", "{"].contains(list.text(token + 1))
    }
  }

  /// Whether the reference is used behind a matrix operation, or in a loop with one.
  private func isUsedAfterWork(_ name: Int, of call: Int) -> Bool {
    let start = list.after(call + 1)
    var end = start
    while end < list.count, list.text(end) != "}" { end = list.text(end) == "{" ? list.after(end) : end + 1 }
    let scope = span(start, end)
    let matrix = names(before: call)
    let uses = scope.filter { list.text($0) == list.text(name) && ![".", "->"].contains(list.text($0 - 1)) }
    let works = scope.filter { mayWork($0) || matrix.contains(list.text($0)) }
    guard let lastUse = uses.last, let firstWork = works.first else { return false }
    if lastUse > firstWork { return true }
    return scope.contains { token in
      guard ["for", "while", "do"].contains(list.text(token)) else { return false }
      let loop = span(token, min(loopEnd(token), end))
      return uses.contains(where: loop.contains) && works.contains(where: loop.contains)
    }
  }

  /// The names in `a.b[i].thread_elements`: what mentions one of them may assign to the matrix.
  private func names(before call: Int) -> Set<String> {
    var names: Set<String> = []
    var token = call - 1
    while [".", "->"].contains(list.text(token)) {
      token -= 1
      while list.text(token) == "]" { token = list.partner[token] - 1 }
      guard list.isIdentifier(token) else { break }
      names.insert(list.text(token))
      token -= 1
    }
    return names
  }

  /// The end of the statement that a loop's keyword begins.
  private func loopEnd(_ keyword: Int) -> Int {
    var token = keyword + 1
    if list.text(token) == "(" { token = list.after(token) }
    while token < list.count, list.text(token) != ";" {
      if list.text(token) == "{" { return list.after(token) }
      token = list.text(token) == "(" ? list.after(token) : token + 1
    }
    return token
  }

  /// Whether a token may call a matrix operation: a function of the language or of the source, or a method.
  private func mayWork(_ token: Int) -> Bool {
    let text = list.text(token)
    if text.hasPrefix("simdgroup_") && text != "simdgroup_barrier" || text == "make_filled_simdgroup_matrix" {
      return true
    }
    guard list.isIdentifier(token), list.text(token + 1) == "(" else { return false }
    return functions.contains(text)
      || [".", "->"].contains(list.text(token - 1)) && text != "thread_elements"
  }

  /// Whether the call's result goes into a function of the source that may keep a reference to it.
  private func isArgument(_ call: Int) -> Bool {
    var token = call - 1
    while token > 0, ![";", "{", "}"].contains(list.text(token)) {
      if list.text(token) == "(", takers.contains(list.text(token - 1)) { return true }
      token = [")", "]"].contains(list.text(token)) ? list.partner[token] - 1 : token - 1
    }
    return false
  }

  /// Whether the function around a `return` gives a reference or a pointer.
  private func returnsReference(_ token: Int) -> Bool {
    var open = token
    while true {
      open -= 1
      while open >= 0, list.text(open) != "{" { open = list.text(open) == "}" ? list.partner[open] - 1 : open - 1 }
      guard open >= 0 else { return true }
      var close = open - 1
      while ["const", "thread"].contains(list.text(close)) { close -= 1 }
      guard list.text(close) == ")", list.partner[close] > 0 else { continue }
      let name = list.partner[close] - 1
      if list.isCondition(name + 1) { continue }
      return span(statementStart(name), name).contains { ["&", "*"].contains(list.text($0)) }
    }
  }
}
