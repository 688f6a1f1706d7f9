/// Member functions without a qualifier are those of objects in `thread` memory. C++ for OpenCL takes them for functions
/// of objects in any memory, which serves as long as no class has functions of `thread` objects alone, or gives out
/// `thread` references to a part of its object. In a source with such a class the functions that may change their
/// object get the qualifier, and beside a constant one of that kind the constant ones of its class. Others stay, and so
/// do those of classes without data: they are called on temporaries, which lie in no memory that could be named.
enum ThreadMethods {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let classes = ClassDefinition.all(list).map { definition in
      let functions = MemberFunction.all(of: definition, list).filter { !$0.isConstructor && !$0.isStatic }
      return (definition, functions)
    }
    guard classes.contains(where: { $0.1.contains { isOfThread($0, list) } }) else { return }
    for (definition, functions) in classes where !definition.dataMembers.isEmpty {
      let hasConst = functions.contains { $0.isConst && isOfThread($0, list) }
      for function in functions where function.space == nil && (!function.isConst || hasConst) {
        context.insert(" thread", after: function.parameters.upperBound - 1)
      }
    }
  }

  /// Whether a function has the qualifier, or gives out a `thread` reference or pointer.
  private static func isOfThread(_ function: MemberFunction, _ list: TokenList) -> Bool {
    if let space = function.space { return list.text(space) == "thread" }
    let result = Set(span(function.tokens.lowerBound, function.name).map { list.text($0) })
    return result.contains("thread") && !result.isDisjoint(with: ["&", "*"])
  }
}
