/// Removes definitions of static constants outside of their class, which initialises them: C++ for OpenCL wants every
/// constant of the program to have a value where it is declared, and has none of these to ask for.
enum StaticDefinitions {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for declaration in context.declarations where declaration.kind == .variable {
      guard list.text(declaration.nameToken - 1) == "::" else { continue }
      let rest = span(declaration.nameToken, declaration.tokens.upperBound)
      if !rest.contains(where: { ["=", "{"].contains(list.text($0)) }) { context.blank(declaration.tokens) }
    }
  }
}
