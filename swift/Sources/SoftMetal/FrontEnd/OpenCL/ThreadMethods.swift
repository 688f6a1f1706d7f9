/// Member functions without a qualifier are those of objects in `thread` memory. C++ for OpenCL takes them for functions
/// of objects in any memory but `constant`; so the ones that may change their object get the qualifier.
///
/// Constant functions stay as they are: clang does not call a `const thread` one on a temporary, whose memory has no
/// name. They are accepted on objects in other memory, then, which is more than Metal takes. Where a class gives out
/// constant `thread` references to a part of its object, all its constant functions get the qualifier.
enum ThreadMethods {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for definition in ClassDefinition.all(list) {
      let functions = MemberFunction.all(of: definition, list).filter { !$0.isConstructor && !$0.isStatic }
      let givesConstants = functions.contains { $0.isConst && givesThreadMemory($0, list) }
      for function in functions {
        let isQualified = !function.isConst || givesConstants
        if isQualified, function.space == nil {
          context.insert(" thread", after: function.parameters.upperBound - 1)
        } else if !isQualified, let space = function.space, list.text(space) == "thread" {
          context.blank(space..<space + 1)
        }
      }
    }
  }

  /// Whether a function gives out a `thread` reference or pointer.
  private static func givesThreadMemory(_ function: MemberFunction, _ list: TokenList) -> Bool {
    let result = Set(span(function.tokens.lowerBound, function.name).map { list.text($0) })
    return result.contains("thread") && !result.isDisjoint(with: ["&", "*"])
  }
}
