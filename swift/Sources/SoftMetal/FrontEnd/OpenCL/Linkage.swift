/// Drops `extern "C"`: nothing is linked by name, and what the steps add to structs needs the linkage of C++.
enum Linkage {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices where list.text(token) == "extern" {
      guard token + 1 < list.count, list.tokens[token + 1].kind == .string else { continue }
      context.blank(token..<token + 2)
      guard list.text(token + 2) == "{", list.partner[token + 2] < list.count else { continue }
      context.blank(token + 2..<token + 3)
      context.blank(list.partner[token + 2]..<list.partner[token + 2] + 1)
    }
  }
}
