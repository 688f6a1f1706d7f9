/// What follows the user's text: the table of kernels and function constants.
struct Tail {
  /// File name of the tail in diagnostics. Line k belongs to `origins[k - 1]`.
  static let fileName = "softmetal_tail"

  private(set) var text = ""
  /// Offset in the source that each line stems from.
  private(set) var origins: [Int] = []
  private var conditions: [String: Int] = [:]

  init(
    _ entries: [KernelEntry], _ constants: [FunctionConstant], _ derived: [DerivedConstant], _ list: TokenList
  ) {
    text = "\n#pragma clang attribute pop\n#pragma clang attribute pop\n"
    text += "#ifndef SM_EXECUTE_NVPTX\n"
    for (index, constant) in derived.enumerated() {
      // Where the names of its initializer are known.
      let function = "static void sm_initialize_\(index)() { \(constant.statement) }"
      addLine(LoweringContext.inNamespace(constant.qualifier, function), from: constant.offset)
    }
    text += "#endif\n"
    for entry in entries {
      for line in entry.deduced?.lines ?? [] { addLine(line, from: list.tokens[entry.token].range.lowerBound) }
    }
    for constant in constants where constant.number == nil { addIndex(constant, constants, list) }
    text += "namespace {\n"
    for (index, entry) in entries.enumerated() { addKernel(entry, index, constants, list) }
    text += "#ifdef SM_EXECUTE_NVPTX\n}\n"
    for index in entries.indices { text += "SM_ENTRY(\(index + 1), sm_kernel_\(index))\n" }
    text += "#else\n"
    addTables(entries, constants, derived, list)
    text += "#endif\n"
  }

  /// The kernel's name in code for a GPU, which has one.
  static let entryName = "sm_entry_1"

  /// What the loader reads of an object, with the code that sets it up.
  private mutating func addTables(
    _ entries: [KernelEntry], _ constants: [FunctionConstant], _ derived: [DerivedConstant], _ list: TokenList
  ) {
    addTable("SmKernel sm_kernels", entries.count) { tail, index in
      let entry = entries[index]
      let indices = tail.constantIndices(entry, constants)
      let array = indices.isEmpty ? "nullptr" : "sm_constants_\(index)"
      tail.addLine(
        "sm_kernel_\(index)::describe(\(Self.literal(entry.hostName)), sm_names_\(index), \(indices.count), \(array)),",
        from: list.tokens[entry.token].range.lowerBound)
    }
    addTable("SmFunctionConstant sm_function_constants", constants.count) { tail, index in
      let constant = constants[index]
      let name = constant.qualifiedName
      tail.addLine(
        "{\(Self.literal(constant.name)), \(constant.number.map(String.init) ?? constant.indexName), sizeof(\(name)), "
          + "\(Self.literal(constant.typeName)), SM_CONSTANT_ADDRESS(\(name)), &\(constant.definedFlag)},",
        from: constant.offset)
    }
    addTable("SmDerivedConstant sm_derived_constants", derived.count) { tail, index in
      let name = derived[index].qualifier + derived[index].name
      tail.addLine("{SM_CONSTANT_ADDRESS(\(name)), sizeof(\(name))},", from: derived[index].offset)
    }
    text += "SM_THREADGROUP_SECTION\nvoid sm_initialize() {\n::softmetal::place_threadgroup_variables();\n"
    for (index, constant) in derived.enumerated() { text += "::\(constant.qualifier)sm_initialize_\(index)();\n" }
    text += "}\n}\n"
    text += "#ifdef SM_PTX\nSM_INCLUDE_TEXT(SM_PTX)\n#else\n#define sm_ptx nullptr\n#endif\n"
    text += """
      extern "C" __attribute__((visibility("default"))) const SmObject sm_object = {SM_OBJECT_VERSION, \
      \(entries.count), \(entries.isEmpty ? "nullptr" : "sm_kernels"), \
      \(constants.count), \(derived.count), \(constants.isEmpty ? "nullptr" : "sm_function_constants"), \
      \(derived.isEmpty ? "nullptr" : "sm_derived_constants"), SM_ADDRESS(sm_initialize), sm_ptx};

      """
  }

  private mutating func addLine(_ line: String, from offset: Int) {
    origins.append(offset)
    text += "#line \(origins.count) \"\(Self.fileName)\"\n\(line)\n"
  }

  private mutating func addTable(_ declaration: String, _ count: Int, row: (inout Tail, Int) -> Void) {
    guard count > 0 else { return }
    text += "const \(declaration)[] = {\n"
    for index in 0..<count { row(&self, index) }
    text += "};\n"
  }

  /// Has clang compute an index that the text does not tell, and compare it with the others.
  private mutating func addIndex(_ constant: FunctionConstant, _ all: [FunctionConstant], _ list: TokenList) {
    let before = all.prefix { $0.offset < constant.offset }.filter { $0.number == nil }.map(\.indexName)
    let others = before + all.compactMap(\.number).map(String.init)
    let offset = list.tokens[constant.attribute].range.lowerBound
    let enumerator = "enum { \(constant.shortIndexName) = (\(list.joined(constant.index))) };"
    addLine(LoweringContext.inNamespace(constant.qualifier, enumerator), from: offset)
    guard !others.isEmpty else { return }
    let condition = others.map { "\(constant.indexName) != \($0)" }.joined(separator: " && ")
    addLine("static_assert(\(condition), \"function constant index is already used\");", from: offset)
  }

  private mutating func addKernel(
    _ entry: KernelEntry, _ index: Int, _ constants: [FunctionConstant], _ list: TokenList
  ) {
    let offset = list.tokens[entry.token].range.lowerBound
    checkIndices(entry, list)
    let arguments = entry.signature.arguments.map { spec($0, entry, offset) }
    let indices = constantIndices(entry, constants)
    if !indices.isEmpty {
      text += "const uint32_t sm_constants_\(index)[] = {\(indices.map(String.init).joined(separator: ", "))};\n"
    }
    // Never empty, which C++ does not allow an array to be.
    let names = entry.signature.arguments.filter { !$0.index.isEmpty }.map { Self.literal($0.name) } + ["nullptr"]
    text += "SM_LITERAL_CHAR *const sm_names_\(index)[] = {\(names.joined(separator: ", "))};\n"
    let execution = Self.execution(entry.facts)
    let matrices = entry.facts.usesMatrices ? "1" : "0"
    let maxThreads = Kernels.substitute(entry.maxThreads, entry.templateArguments)
    let parts = [execution, String(index + 1), maxThreads, matrices, "(\(entry.expression))"] + arguments
    addLine(
      "using sm_kernel_\(index) = ::softmetal::Kernel<\(parts.joined(separator: ", "))>;", from: offset)
    for (place, argument) in entry.signature.arguments.enumerated() where argument.index.isEmpty {
      addLine(
        "static_assert(sm_kernel_\(index)::accepts[\(place)], "
          + "\"attribute '\(list.text(argument.token))' cannot be applied to this type\");",
        from: list.tokens[argument.token].range.lowerBound)
    }
  }

  /// Independent threads are a plain loop, unless clang would leave that loop to one thread after another.
  private static func execution(_ facts: Reachability.Facts) -> String {
    if facts.needsLanes { return "SM_EXECUTION_THREADS" }
    return facts.hasLoops && !facts.hasArrays ? "SM_EXECUTION_VECTORS_OR_LOOP" : "SM_EXECUTION_LOOP"
  }

  /// Has clang check the indices that the text does not tell, such as enumerators.
  private mutating func checkIndices(_ entry: KernelEntry, _ list: TokenList) {
    typealias Argument = KernelSignature.Argument
    let arguments = entry.signature.arguments.filter { !$0.index.isEmpty }
    let indices = arguments.map { Kernels.substitute($0.index, entry.templateArguments) }
    for (place, argument) in arguments.enumerated() {
      var conditions: [(String, String)] = []
      if argument.number == nil {
        let limits =
          "\(indices[place]) >= \(Argument.indices.lowerBound) && \(indices[place]) <= \(Argument.indices.upperBound)"
        conditions.append((limits, Argument.outOfBounds))
      }
      for other in 0..<place where arguments[other].kind == argument.kind {
        guard argument.number == nil || arguments[other].number == nil else { continue }
        conditions.append(("\(indices[place]) != \(indices[other])", Argument.alreadyUsed))
      }
      for (condition, message) in conditions {
        addLine(
          "static_assert(\(condition), \"\(argument.kind) index \(message)\");",
          from: list.tokens[argument.token].range.lowerBound)
      }
    }
  }

  private mutating func spec(_ argument: KernelSignature.Argument, _ entry: KernelEntry, _ offset: Int) -> String {
    guard !argument.index.isEmpty else { return "::softmetal::\(argument.type)" }
    let index = Kernels.substitute(argument.index, entry.templateArguments)
    guard !argument.condition.isEmpty else { return "::softmetal::\(argument.type)<\(index)>" }
    let number: Int
    if let known = conditions[argument.condition] {
      number = known
    } else {
      number = conditions.count
      conditions[argument.condition] = number
      addLine(
        "__attribute__((always_inline)) int sm_condition_\(number)() { return static_cast<bool>(\(argument.condition)); }",
        from: offset)
    }
    return "::softmetal::\(argument.type)If<\(index), sm_condition_\(number)>"
  }

  /// The constants that the kernel needs values of.
  private func constantIndices(_ entry: KernelEntry, _ constants: [FunctionConstant]) -> [Int] {
    let names = entry.facts.constants.subtracting(entry.facts.optionalConstants)
    return constants.indices.filter { names.contains(constants[$0].name) }
  }

  private static func literal(_ text: String) -> String {
    "\"" + text + "\""
  }
}
