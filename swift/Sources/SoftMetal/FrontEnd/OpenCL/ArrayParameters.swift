/// A parameter `T x[4]`, which is a pointer to `thread` memory, says so: clang would take that memory for a part of a T
/// that it finds from the argument.
enum ArrayParameters {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let functions = context.declarations.filter { $0.kind == .function }.map(\.parameters)
    let members = ClassDefinition.all(list).flatMap { MemberFunction.all(of: $0, list) }
      .map { span($0.parameters.lowerBound + 1, $0.parameters.upperBound - 1) }
    for parameter in (functions + members).flatMap({ list.splitAtCommas($0) }) {
      let tokens = FunctionConstants.withoutAttributes(parameter, list)
      let words = Set(tokens.map { list.text($0) })
      if let first = tokens.first, words.contains("["), words.isDisjoint(with: AddressSpace.all.union(["&", "*", "("]))
      {
        context.insert("thread ", before: first)
      }
    }
  }
}
