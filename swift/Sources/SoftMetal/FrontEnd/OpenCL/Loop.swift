/// A loop of a source.
struct Loop {
  /// From the first token of what it repeats on; without braces, to the end of the block that it is in.
  let body: Range<Int>
  /// Whether it is in a `constexpr` function, where no lanes are.
  let isConstant: Bool

  static func all(_ list: TokenList) -> [Loop] {
    var loops: [Loop] = []
    // Blocks around a token: their ends, and whether they are of a constexpr function.
    var blocks: [(end: Int, isConstant: Bool)] = [(list.count, false)]
    var isConstant = false  // what the declaration under way says
    // Ends of the blocks that hold a `do` whose `while` is yet to come.
    var pending: [Int] = []
    for token in list.indices {
      let (end, isInConstant) = blocks[blocks.count - 1]
      switch list.text(token) {
      case "{":
        blocks.append((list.partner[token], isInConstant || isConstant))
        isConstant = false
      case "}":
        if blocks.count > 1 { blocks.removeLast() }
        isConstant = false
      case ";": isConstant = false
      case "constexpr": if list.text(token - 1) != "if" { isConstant = true }
      case "do":
        pending.append(end)
        loops.append(Loop(body(from: token + 1, end, list), isConstant: isInConstant))
      // Of a `do`, it is behind a whole statement; a loop of its own there would be none of the `do`'s.
      case "while" where pending.last == end && [";", "}"].contains(list.text(token - 1)): pending.removeLast()
      case "for", "while":
        guard list.text(token + 1) == "(" else { break }
        loops.append(Loop(body(from: list.after(token + 1), end, list), isConstant: isInConstant))
      default: break
      }
    }
    return loops
  }

  private init(_ body: Range<Int>, isConstant: Bool) {
    self.body = body
    self.isConstant = isConstant
  }

  private static func body(from start: Int, _ end: Int, _ list: TokenList) -> Range<Int> {
    let first = min(start, list.count)
    return first..<max(first, list.text(first) == "{" ? min(list.after(first), list.count) : end)
  }
}
