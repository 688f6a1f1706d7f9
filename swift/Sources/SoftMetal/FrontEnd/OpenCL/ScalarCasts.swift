/// Casts to half and bfloat, between which clang has no conversion: `bfloat(x)`, `(bfloat)x` and
/// `static_cast<bfloat>(x)` become `sm_make<bfloat>(x)`, which goes through float.
///
/// bfloat is clang's `__bf16` and no class: a class would convert to and from every number, so that `b + 1`,
/// `c ? b : 0` and `switch` were ambiguous, and its arithmetic would be ours to define. What `__bf16` lacks is this
/// conversion alone. In a template it is missing where the type is a parameter: `T(x)` with bfloat as T and half as x.
enum ScalarCasts {
  private static let types: Set<String> = ["half", "bfloat"]

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices where types.contains(list.text(token)) {
      if list.text(token - 1) == "(", list.text(token + 1) == ")" {
        lowerPrefix(token, &context)
      } else if list.text(token - 1) == "<", list.text(token - 2) == "static_cast", list.text(token + 1) == ">" {
        context.edits.replace(list.tokens[token - 2].range, with: "sm_make")
      } else if list.text(token + 1) == "(", isExpression(before: token, list) {
        context.edits.replace(list.tokens[token].range, with: "sm_make<\(list.text(token))>")
      }
    }
  }

  private static func lowerPrefix(_ token: Int, _ context: inout LoweringContext) {
    let list = context.list
    guard let end = list.operandEnd(token + 2), isExpression(before: token - 1, list) else { return }
    context.edits.replace(list.byteRange(token - 1..<token + 2), with: "sm_make<\(list.text(token))>(")
    context.insert(")", after: end - 1)
  }

  private static func isExpression(before token: Int, _ list: TokenList) -> Bool {
    let before = list.text(token - 1)
    if list.isIdentifier(token - 1) { return ["return", "else", "case", "do"].contains(before) }
    return ![".", "->", ">", ";", "{", "}"].contains(before) || before == "{" && list.text(token - 2) != ")"
  }
}
