/// `decltype(x)`, which for clang has the memory of the variable in it: `SM_DECLTYPE(x)` is the type as it was written.
enum DeclaredTypes {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices where list.text(token) == "decltype" && list.text(token + 2) != "auto" {
      context.edits.replace(list.tokens[token].range, with: "SM_DECLTYPE")
    }
  }
}
