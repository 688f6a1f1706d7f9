/// The arguments of a kernel template that an explicit instantiation leaves to its parameters' types, as in
/// `template kernel void f<16>(device float *);` of `template <int N, typename T> kernel void f(device T *out)`.
///
/// Clang deduces them, by a class template that is specialised for the type of the function.
struct DeducedArguments {
  /// What clang needs for it, behind the source.
  let lines: [String]
  /// Expressions of the values, by the parameter's name.
  let values: [String: String]

  /// - Parameters:
  ///   - given: the arguments that the instantiation names.
  ///   - types: tokens with the parentheses of its parameters.
  /// - Returns: nil where the types of the parameters name no other parameter of the template.
  init?(
    _ function: Declaration, given: [String: String], _ instantiation: Declaration, types: Range<Int>,
    _ context: LoweringContext
  ) {
    let list = context.list
    let named = Set(FunctionConstants.withoutAttributes(function.parameters, list).map { list.text($0) })
    let parameters = (function.templateParameters ?? []).filter {
      given[$0.name] == nil && !$0.isPack && named.contains($0.name)
    }
    guard !parameters.isEmpty else { return nil }
    let number = instantiation.tokens.lowerBound
    let deduction = "sm_deduction_\(number)"
    let declared = parameters.map { list.joined($0.tokens) }.joined(separator: ", ")
    let pattern = Kernels.substitute(context.lowered(function.parameters), given)
    // The type and the number stand for what cannot be deduced, after the error that says so.
    let fallback = parameters.map { Self.member($0, type: "int", number: "0") }.joined()
    let members = parameters.map { Self.member($0, type: $0.name, number: $0.name) }.joined()
    lines = [
      LoweringContext.inNamespace(
        function.qualifier,
        "template <typename F> struct \(deduction) { static_assert(__is_same(F, void), \"the arguments of the template "
          + "'\(function.name)' cannot be deduced from these parameters\"); \(fallback)}; "
          + "template <\(declared)> struct \(deduction)<void(\(pattern))> { \(members)};"),
      LoweringContext.inNamespace(
        instantiation.qualifier,
        "typedef ::\(function.qualifier)\(deduction)<void\(context.lowered(types))> sm_deduced_\(number);"),
    ]
    values = Dictionary(
      uniqueKeysWithValues: parameters.map {
        ($0.name, "::\(instantiation.qualifier)sm_deduced_\(number)::sm_\($0.name)")
      })
  }

  private static func member(_ parameter: TemplateParameter, type: String, number: String) -> String {
    let name = "sm_\(parameter.name)"
    return parameter.isType ? "typedef \(type) \(name); " : "static constexpr auto \(name) = \(number); "
  }
}
