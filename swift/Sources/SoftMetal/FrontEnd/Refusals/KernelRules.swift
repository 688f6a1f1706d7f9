/// Refuses what kernels may not be or do, and functions with any number of arguments.
enum KernelRules {
  static func check(_ context: inout LoweringContext) {
    let list = context.list
    let kernels = context.declarations.filter { $0.kind == .function && Kernels.isKernel($0, list) }
    let names = Set(kernels.map(\.name)).subtracting(
      context.declarations.filter { $0.kind == .function && !Kernels.isKernel($0, list) }.map(\.name))
    for declaration in context.declarations where declaration.kind == .function {
      for token in declaration.body ?? 0..<0 where names.contains(list.text(token)) && isCall(token, list) {
        context.report("kernel '\(list.text(token))' cannot be called: it runs when it is dispatched", at: token)
      }
      if let dots = declaration.parameters.last, list.text(dots) == "...", !list.isIdentifier(dots - 1) {
        context.report("variadic functions are not supported in Metal", at: dots)
      }
      for attribute in Attribute.attributes(in: declaration.body ?? 0..<0, of: list)
      where attribute.name == "function_constant" {
        context.report("'function_constant' is an attribute of constants of the program", at: attribute.token)
      }
    }
    for kernel in kernels {
      for parameter in list.splitAtCommas(kernel.parameters) {
        let tokens = FunctionConstants.withoutAttributes(parameter, list)
        if let equals = tokens.first(where: { list.text($0) == "=" }) {
          context.report("a kernel cannot have a default argument", at: equals)
        }
      }
    }
    for definition in ClassDefinition.all(list) {
      for token in span(definition.open + 1, definition.close)
      where list.text(token) == "kernel" && list.text(token + 1) == "void" {
        context.report("a kernel cannot be a member function", at: token)
      }
    }
  }

  private static func isCall(_ token: Int, _ list: TokenList) -> Bool {
    var next = token + 1
    // `name<T>(...)` of a template.
    if list.text(next) == "<", let close = list.closingAngle(next) { next = close + 1 }
    return list.text(next) == "(" && [";", "{", "}", ")", "else", "do"].contains(list.text(token - 1))
  }
}
