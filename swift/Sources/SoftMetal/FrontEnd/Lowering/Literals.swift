/// Sets an underscore before the suffixes of literals that C++ keeps for itself:
/// `1.5H` and `1.5bf` become `1.5_H` and `1.5_bf`, which the headers define.
enum Literals {
  private static let suffixes = ["bf", "BF", "H"]

  static func lower(_ context: inout LoweringContext) {
    for token in context.list.tokens { lower(token, &context.edits) }
    for macro in context.macros {
      for token in macro.body { lower(token, &context.edits) }
    }
  }

  private static func lower(_ token: Token, _ edits: inout EditList) {
    guard token.kind == .number, let suffix = suffixes.first(where: token.text.hasSuffix) else { return }
    let digits = token.text.dropLast(suffix.count)
    // In `0xbf` they are digits.
    if digits.lowercased().hasPrefix("0x"), !digits.lowercased().contains("p") { return }
    edits.insert("_", at: token.range.upperBound - suffix.utf8.count)
  }
}
