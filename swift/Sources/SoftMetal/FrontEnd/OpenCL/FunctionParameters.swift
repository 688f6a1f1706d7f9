/// Functions as parameters of templates: C++ for OpenCL has references to functions, and no pointers to them.
/// `template <float (*F)(float)>` becomes `template <float (&F)(float)>`, and likewise a typedef of such a pointer.
enum FunctionParameters {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let templates = TemplateParameter.lists(of: list)
    for token in list.indices where list.text(token) == "(" && list.text(token + 1) == "*" {
      guard list.text(list.after(token)) == "(" else { continue }
      let isTypedef = list.isIdentifier(token + 2) && list.text(statementStart(token, list)) == "typedef"
      guard isTypedef || templates.contains(where: { $0.contains(token) }) else { continue }
      context.edits.replace(list.tokens[token + 1].range, with: "&")
    }
  }

  private static func statementStart(_ token: Int, _ list: TokenList) -> Int {
    var start = token
    while start > 0, ![";", "{", "}"].contains(list.text(start - 1)) { start -= 1 }
    return start
  }
}
