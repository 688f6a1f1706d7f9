/// Turns MSL source into C++ for OpenCL, for clang.
///
/// The user's text stays as it is, token for token and line for line, but for
/// the edits of the steps below and a tail that describes the kernels.
enum Lowering {
  /// - Parameters:
  ///   - source: the user's text, or the preprocessor's output for it.
  ///   - origin: where the lines of `source` come from.
  ///   - languageVersion: 310 for version 3.1.
  /// - Throws: `ShaderCompilerError` with every error found.
  static func program(
    _ source: SourceText, origin: SourceOrigin, languageVersion: Int = 310
  ) throws -> LoweredProgram {
    var context = LoweringContext(source)
    LanguageVersion.check(languageVersion, &context)
    for step in steps {
      context.edits.step = step.name
      step.run(&context)
    }
    context.edits.step = "FunctionConstants"
    let constants = FunctionConstants.lower(&context)
    let reachability = Reachability(context, constants: Set(constants.map(\.name)))
    context.edits.step = "DerivedConstants"
    let derived = DerivedConstants.lower(&context, reachability)
    let kernels = Kernels.functions(context)
    context.edits.step = "Kernels"
    Kernels.rename(kernels, &context)
    context.edits.step = "ThreadgroupVariables"
    ThreadgroupVariables.lower(&context, kernels: kernels)
    context.edits.step = "Kernels"
    let entries = Kernels.lower(&context, reachability)
    Refusals.check(entries, &context)
    let program = LoweredProgram(
      head: head(context) + "#line 1 \"\(origin.escapedLabel)\"\n", edited: context.edits.apply(to: source),
      list: context.list, origin: origin, entries: entries, constants: constants, derived: derived,
      includesLibrary: Preprocessing.headers(context.list).contains("metal_stdlib"),
      usesRareSwizzles: RareSwizzles.areUsed(in: context.list))
    guard context.diagnostics.isEmpty else { throw program.map.error(context.diagnostics) }
    if let overlap = context.edits.overlap() { throw program.map.error(overlap) }
    return program
  }

  private struct Step {
    let name: String
    let run: (inout LoweringContext) -> Void
  }

  /// The steps that need no outcome of another. What C++ for OpenCL lacks needs no types to be found.
  private static let steps = [
    Step(name: "Refusals", run: Refusals.check),
    Step(name: "MetalAttributes", run: MetalAttributes.lower),
    Step(name: "Linkage", run: Linkage.lower),
    Step(name: "QualifiedKeywords", run: QualifiedKeywords.lower),
    Step(name: "ScalarCasts", run: ScalarCasts.lower),
    Step(name: "ReferenceCasts", run: ReferenceCasts.lower),
    Step(name: "FunctionParameters", run: FunctionParameters.lower),
    Step(name: "ArrayParameters", run: ArrayParameters.lower),
    Step(name: "QualifiedConstructors", run: QualifiedConstructors.lower),
    Step(name: "ThreadMethods", run: ThreadMethods.lower),
    Step(name: "StaticDefinitions", run: StaticDefinitions.lower),
    Step(name: "ConstantInitialisers", run: ConstantInitialisers.lower),
    Step(name: "DeclaredTypes", run: DeclaredTypes.lower),
    Step(name: "NestedSwizzles", run: NestedSwizzles.lower),
    Step(name: "ConstantReferences", run: ConstantReferences.lower),
    Step(name: "ConditionalArms", run: ConditionalArms.lower),
    Step(name: "Structs", run: Structs.lower),
    Step(name: "LoopPragmas", run: LoopPragmas.lower),
    Step(name: "LoopExits", run: LoopExits.lower),
    Step(name: "Literals", run: Literals.lower),
    Step(name: "DeducedReferences", run: DeducedReferences.lower),
    Step(name: "Preprocessing", run: Preprocessing.restoreDirectives),
  ]

  /// What comes before the source. Lane functions tell their call sites apart by address, and matrices lie in the
  /// kernel's own frame: both need every function inlined into the kernel. Until then any may lead to lane
  /// synchronization. A call of the source's functions that is left after inlining is one of a function to itself, if it is no
  /// loop by then. Values that braces would narrow are errors of the source, and no concern of the headers.
  private static func head(_ context: LoweringContext) -> String {
    let includes = Preprocessing.headers(context.list).map { "#include <\($0)>\n" }.joined()
    return "#include <softmetal_object>\n" + push("always_inline, convergent") + includes
      + "#define noinline\n#define __noinline__\n#define optnone\n"
      + push("disable_tail_calls, error(\"\(ClangLog.recursion)\")")
      + "#pragma clang diagnostic error \"-Wc++11-narrowing\"\n"
  }

  private static func push(_ attributes: String) -> String {
    "#pragma clang attribute push(__attribute__((\(attributes))), apply_to = function)\n"
  }
}
