/// Turns MSL source into C++ for clang.
///
/// The user's text stays as it is, token for token and line for line, but for
/// the edits of the steps below and a tail that describes the kernels.
enum Lowering {
  /// - Parameters:
  ///   - source: the user's text, or the preprocessor's output for it.
  ///   - origin: where the lines of `source` come from.
  ///   - kernel: the host name of the only kernel to describe; nil for all.
  /// - Throws: `ShaderCompilerError` with every error found.
  static func lower(_ source: SourceText, origin: SourceOrigin, kernel: String? = nil) throws -> LoweredShader {
    var context = LoweringContext(source)
    Refusals.check(&context)
    Attributes.lower(&context)
    ArrayParameters.lower(&context)
    Increments.lower(&context)
    DeducedVectors.lower(&context)
    PackedVectors.lower(&context)
    Initialisers.lower(&context)
    ConstantInitialisers.lower(&context)
    Comparisons.lower(&context)
    Constructors.lower(&context)
    Structs.lower(&context)
    DefaultedConstructors.lower(&context)
    MemberQualifiers.lower(&context)
    StructAssignments.lower(&context)
    StructValues.lower(&context)
    LoopPragmas.lower(&context)
    Literals.lower(&context)
    Preprocessing.restoreIncludes(&context)
    let constants = FunctionConstants.lower(&context)
    let reachability = Reachability(context, constants: Set(constants.map(\.name)))
    let derived = DerivedConstants.lower(&context, reachability)
    ThreadgroupVariables.lower(&context, kernels: Kernels.functions(context))
    let entries = Kernels.lower(&context, reachability)
    Refusals.check(entries, &context)

    let described = entries.filter { kernel == nil || $0.hostName == kernel }
    let tail = Tail(described, constants, derived, context.list)
    let edited = context.edits.apply(to: source)
    let map = SourceMap(origin: origin, edited: edited, tailOrigins: tail.origins)
    guard context.diagnostics.isEmpty else { throw map.error(context.diagnostics) }
    let prefix = head(context) + "#line 1 \"\(origin.escapedLabel)\"\n"
    return LoweredShader(
      text: Array(prefix.utf8) + edited.bytes + Array(tail.text.utf8),
      functionNames: entries.map(\.hostName),
      compilesSeparately: compilesSeparately(entries),
      sourceMap: map)
  }

  /// What comes before the source. Lane functions tell their call sites apart by address, and matrices lie in the
  /// kernel's own frame: both need every function inlined into the kernel. Until then any may lead to a meeting of
  /// lanes. A call of the source's functions that is left after inlining is one of a function to itself, if it is no
  /// loop by then.
  private static func head(_ context: LoweringContext) -> String {
    let includes = Preprocessing.headers(context.list).map { "#include <\($0)>\n" }.joined()
    return (HeldElements.exist(in: context) ? "#define SM_HELD_ELEMENTS 1\n" : "") + Swizzles.definitions(context)
      + "#include <softmetal_object>\n" + push("always_inline, convergent") + includes
      + "#define noinline\n#define __noinline__\n"
      + push("disable_tail_calls, error(\"\(ClangLog.recursion)\")")
  }

  private static func push(_ attributes: String) -> String {
    "#pragma clang attribute push(__attribute__((\(attributes))), apply_to = function)\n"
  }

  /// Whether clang takes longer for the code of a kernel than for reading the file once more: about 0.1 ms a token
  /// that the kernel reaches against 70 ms.
  private static func compilesSeparately(_ entries: [KernelEntry]) -> Bool {
    let size = entries.reduce(0) { $0 + $1.facts.size }
    return entries.count > 1 && size > 700 * entries.count
  }
}
