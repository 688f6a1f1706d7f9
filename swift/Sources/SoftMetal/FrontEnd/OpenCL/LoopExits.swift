/// Marks the turns of loops that lanes may leave behind a function of their SIMD group, as in
///
///     while (true) {
///       if (key == simd_broadcast_first(key)) { sum = simd_sum(x); break; }
///     }
///
/// Such a sum is that of the lanes that leave in one turn. Compiled code does not tell a loop's last statements from
/// what follows the loop, where all lanes are together again. An object that lives as long as a turn does: whatever way
/// a turn ends, and behind the value that a `return` gives, its destructor says so by `sm_turn()`, at one place of the
/// loop.
///
/// A loop has no mark where nothing that its text names involves lanes before the last `break` or `return` in it.
struct LoopExits {
  private let list: TokenList
  private let lanes: LaneUse
  /// Of each token, the first behind it that involves lanes.
  private var nextUse: [Int]
  /// Of each token, the last `break` or `return` before it.
  private var lastExit: [Int?]

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    guard list.indices.contains(where: { LaneUse.isLaneFunction($0, of: list) }) else { return }
    let exits = LoopExits(context)
    for loop in Loop.all(list) where exits.areBehindLanes(loop) {
      // No `else` behind the loop is that of this `if`.
      context.insert("if (SmTurn sm_turn_of_loop{}) {} else ", before: loop.body.lowerBound)
    }
  }

  private init(_ context: LoweringContext) {
    list = context.list
    lanes = LaneUse(context)
    nextUse = Array(repeating: list.count, count: list.count + 1)
    for token in list.indices.reversed() { nextUse[token] = lanes.involves(token) ? token : nextUse[token + 1] }
    lastExit = [nil]
    for token in list.indices {
      let isExit = list.text(token) == "break" || list.text(token) == "return"
      lastExit.append(isExit ? token : lastExit[token])
    }
  }

  private func areBehindLanes(_ loop: Loop) -> Bool {
    guard !loop.isConstant, let exit = lastExit[loop.body.upperBound], loop.body.contains(exit) else { return false }
    return nextUse[loop.body.lowerBound] < list.statementEnd(exit)
  }
}
