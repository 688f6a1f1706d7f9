/// Marks where lanes leave a loop behind a function of their SIMD group, as in
///
///     while (true) {
///       if (key == simd_broadcast_first(key)) { sum = simd_sum(x); break; }
///     }
///
/// Such a sum is that of the lanes that leave in one turn. Compiled code does not tell a loop's last statements from
/// what follows the loop, where all lanes are together again: `sm_leave(n)` before `break` and `return` does. Of which
/// loop says `sm_turn(n)`, which is true, in its condition, or before its body where that takes none.
struct LoopExits {
  private let list: TokenList
  /// Names of the source's functions that involve lanes, whatever they reach them by.
  private let functions: Set<String>

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    guard list.indices.contains(where: { isLaneFunction($0, of: list) }) else { return }
    let exits = LoopExits(list: list, functions: functions(context))
    var loops: Set<Int> = []
    for token in list.indices where list.text(token) == "break" || list.text(token) == "return" {
      if let loop = exits.mark(token, &context) { loops.insert(loop) }
    }
    for loop in loops.sorted() {
      guard let condition = exits.condition(of: loop) else {
        // No `else` behind the loop is that of this `if`.
        context.insert("if (!sm_turn(\(loop))) {} else ", before: exits.body(of: loop))
        continue
      }
      if condition.isEmpty {
        context.insert(" sm_turn(\(loop))", after: condition.lowerBound - 1)
      } else {
        context.wrap(condition, "sm_turn(\(loop)) && (", ")")
      }
    }
  }

  /// Marks `break` or `return` where it leaves a loop behind a lane function; gives the loop's keyword.
  private func mark(_ token: Int, _ context: inout LoweringContext) -> Int? {
    let isReturn = list.text(token) == "return"
    guard let block = list.enclosingBrace(token), let loop = loop(around: block, isReturn) else { return nil }
    let result = token + 1..<max(token + 1, list.statementEnd(token))
    if isReturn, involveLanes(result), list.text(result.lowerBound) != "{" {
      context.wrap(result, "sm_leaving<\(loop)>(", ")")
    } else if [";", "{", "}"].contains(list.text(token - 1)), involveLanes(block + 1..<token) {
      context.insert("sm_leave(\(loop)); ", before: token)
    } else {
      return nil
    }
    return loop
  }

  /// The keyword of the loop that the statement which begins at `start` is in; for `break`, without a `switch` between.
  private func loop(around start: Int, _ isReturn: Bool) -> Int? {
    var start = start
    while start > 0 {
      let before = start - 1
      switch list.text(before) {
      case "do": return before
      case ")":
        guard list.partner[before] > 0 else { return nil }
        var keyword = list.partner[before] - 1
        if list.text(keyword) == "constexpr" { keyword -= 1 }
        switch list.text(keyword) {
        case "for", "while": return keyword
        case "if": start = keyword
        case "switch" where isReturn: start = keyword
        default: return nil
        }
      case ";", "{", "}", ":", "else":
        guard let block = list.enclosingBrace(start) else { return nil }
        start = block
      default: return nil
      }
    }
    return nil
  }

  private func body(of loop: Int) -> Int { list.text(loop) == "do" ? loop + 1 : list.after(loop + 1) }

  /// What a loop goes on by; nil where that declares a variable, in a loop over a range, and where a `do` has no braces.
  private func condition(of loop: Int) -> Range<Int>? {
    var open = loop + 1
    if list.text(loop) == "do" {
      guard list.text(open) == "{", list.text(list.after(open)) == "while" else { return nil }
      open = list.after(open) + 1
    }
    guard list.text(open) == "(" else { return nil }
    let close = list.after(open) - 1
    var range = span(open + 1, close)
    if list.text(loop) == "for" {
      let first = list.statementEnd(open + 1)
      guard first < close else { return nil }
      range = span(first + 1, min(list.statementEnd(first + 1), close))
    }
    let declares = range.count > 2 && list.isIdentifier(range.lowerBound) && list.isIdentifier(range.lowerBound + 1)
    return declares ? nil : range
  }

  private func involveLanes(_ tokens: Range<Int>) -> Bool {
    tokens.contains { token in
      Self.isLaneFunction(token, of: list) || list.text(token + 1) == "(" && functions.contains(list.text(token))
    }
  }

  private static func isLaneFunction(_ token: Int, of list: TokenList) -> Bool {
    guard list.isIdentifier(token), ["(", "<"].contains(list.text(token + 1)) else { return false }
    return list.text(token).hasPrefix("simd_") || list.text(token).hasPrefix("quad_")
  }

  private static func functions(_ context: LoweringContext) -> Set<String> {
    let list = context.list
    var names: Set<String> = []
    var others = context.declarations.filter { $0.kind == .function && $0.body != nil }
    while true {
      let found = others.filter { function in
        (function.body ?? 0..<0).contains { token in
          isLaneFunction(token, of: list) || list.isIdentifier(token) && names.contains(list.text(token))
        }
      }
      if found.isEmpty { return names }
      names.formUnion(found.map(\.name))
      others.removeAll { names.contains($0.name) }
    }
  }
}
