/// Turns MSL source into C++ for OpenCL, for clang.
///
/// The user's text stays as it is, token for token and line for line, but for
/// the edits of the steps below and a tail that describes the kernels.
enum Lowering {
  /// - Parameters:
  ///   - source: the user's text, or the preprocessor's output for it.
  ///   - origin: where the lines of `source` come from.
  ///   - kernel: the host name of the only kernel to describe; nil for all.
  ///   - needingLanes: kernels that turned out to need lanes, where the text does not show it.
  /// - Throws: `ShaderCompilerError` with every error found.
  static func lower(
    _ source: SourceText, origin: SourceOrigin, dialect: Dialect = .openCL, kernel: String? = nil,
    needingLanes: Set<String> = []
  )
    throws
    -> LoweredShader
  {
    var context = LoweringContext(source)
    for step in steps {
      context.edits.step = step.name
      step.run(&context)
    }
    context.edits.step = "FunctionConstants"
    let constants = FunctionConstants.lower(&context)
    let reachability = Reachability(context, constants: Set(constants.map(\.name)))
    context.edits.step = "DerivedConstants"
    let derived = DerivedConstants.lower(&context, reachability)
    context.edits.step = "ThreadgroupVariables"
    ThreadgroupVariables.lower(&context, kernels: Kernels.functions(context))
    context.edits.step = "Kernels"
    let entries = Kernels.lower(&context, reachability)
    Refusals.check(entries, &context)

    var described = entries.filter { kernel == nil || $0.hostName == kernel }
    for index in described.indices where needingLanes.contains(described[index].hostName) {
      described[index].facts.needsFibres = true
    }
    let tail = Tail(described, constants, derived, context.list)
    let edited = context.edits.apply(to: source)
    let map = SourceMap(origin: origin, edited: edited, tailOrigins: tail.origins)
    guard context.diagnostics.isEmpty else { throw map.error(context.diagnostics) }
    if let overlap = context.edits.overlap() { throw map.error(overlap) }
    var macros: [String] = []
    if HeldElements.exist(in: context) { macros.append("SM_HELD_ELEMENTS") }
    if described.contains(where: { !$0.facts.needsFibres }) { macros.append("SM_HAS_LOOPS") }
    let prefix = head(context) + "#line 1 \"\(origin.escapedLabel)\"\n"
    return LoweredShader(
      text: Array(prefix.utf8) + edited.bytes + Array(tail.text.utf8),
      functionNames: entries.map(\.hostName),
      describedNames: described.map(\.hostName),
      macros: macros,
      includesLibrary: Preprocessing.headers(context.list).contains("metal_stdlib"),
      compilesSeparately: compilesSeparately(entries),
      sourceMap: map)
  }

  private struct Step {
    let name: String
    let run: (inout LoweringContext) -> Void
  }

  /// The steps that need no outcome of another. What C++ for OpenCL lacks needs no types to be found.
  private static let steps = [
    Step(name: "Refusals", run: Refusals.check),
    Step(name: "Attributes", run: Attributes.lower),
    Step(name: "ScalarCasts", run: ScalarCasts.lower),
    Step(name: "FunctionParameters", run: FunctionParameters.lower),
    Step(name: "QualifiedConstructors", run: QualifiedConstructors.lower),
    Step(name: "ThreadMethods", run: ThreadMethods.lower),
    Step(name: "StaticDefinitions", run: StaticDefinitions.lower),
    Step(name: "ConstantInitialisers", run: ConstantInitialisers.lower),
    Step(name: "DeclaredTypes", run: DeclaredTypes.lower),
    Step(name: "ConditionalArms", run: ConditionalArms.lower),
    Step(name: "Structs", run: Structs.lower),
    Step(name: "LoopPragmas", run: LoopPragmas.lower),
    Step(name: "Literals", run: Literals.lower),
    Step(name: "Preprocessing", run: Preprocessing.restoreDirectives),
  ]

  /// What comes before the source. Lane functions tell their call sites apart by address, and matrices lie in the
  /// kernel's own frame: both need every function inlined into the kernel. Until then any may lead to lane
  /// synchronization. A call of the source's functions that is left after inlining is one of a function to itself, if it is no
  /// loop by then.
  private static func head(_ context: LoweringContext) -> String {
    let includes = Preprocessing.headers(context.list).map { "#include <\($0)>\n" }.joined()
    return "#include <softmetal_object>\n" + push("always_inline, convergent") + includes
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
