/// An entry point of the compiled object.
struct KernelEntry {
  let hostName: String
  /// The function, such as `attention<float, 32>`.
  let expression: String
  let signature: KernelSignature
  /// Expression of `[[max_total_threads_per_threadgroup]]`; 0 where there is none.
  let maxThreads: String
  var facts: Reachability.Facts
  /// Token that stands for the kernel in diagnostics.
  let token: Int
  /// Template parameters by name, with the text that this entry gives them.
  let templateArguments: [String: String]
  /// Of an instantiation that leaves some of them to its parameters.
  var deduced: DeducedArguments?
}

/// Finds kernels, plain ones and instantiations of templates.
enum Kernels {
  /// Whether the declaration itself says that it is a kernel.
  static func isKernel(_ declaration: Declaration, _ list: TokenList) -> Bool {
    guard declaration.kind == .function || declaration.kind == .instantiation else { return false }
    if declaration.attribute("kernel") != nil { return true }
    if declaration.kind == .instantiation {
      if declaration.attribute("host_name") != nil { return true }
      return declaration.tokens.contains { list.text($0) == "kernel" }
    }
    return span(declaration.headStart, declaration.nameToken).contains { list.text($0) == "kernel" }
  }

  /// Indices of the functions that run as kernels: those marked, and the
  /// templates that a marked instantiation names.
  static func functions(_ context: LoweringContext) -> Set<Int> {
    let list = context.list
    var result: Set<Int> = []
    for (index, declaration) in context.declarations.enumerated() where isKernel(declaration, list) {
      if declaration.kind == .function {
        result.insert(index)
      } else if let target = target(of: declaration, context) {
        result.insert(target.function)
      }
    }
    return result
  }

  /// Gives a kernel that shares its name with another function a name of ours: an overload cannot be an argument of a
  /// template, as it is in the object's table.
  static func rename(_ kernels: Set<Int>, _ context: inout LoweringContext) {
    let declarations = context.declarations
    let functions = declarations.indices.filter { declarations[$0].kind == .function }
    let byName = Dictionary(grouping: functions) { declarations[$0].name }
    for index in kernels.sorted() {
      let kernel = declarations[index]
      let same = byName[kernel.name] ?? []
      guard kernel.body != nil, !same.contains(where: { declarations[$0].isExplicitSpecialization }),
        same.contains(where: { $0 != index && (!kernels.contains($0) || declarations[$0].body != nil) })
      else { continue }
      let name = "sm_overload_\(index)_\(kernel.name)"
      context.kernelNames[index] = name
      context.edits.replace(context.list.tokens[kernel.nameToken].range, with: name)
    }
  }

  static func lower(_ context: inout LoweringContext, _ reachability: Reachability) -> [KernelEntry] {
    let list = context.list
    var entries: [KernelEntry] = []
    var signatures: [Int: KernelSignature] = [:]
    for (index, declaration) in context.declarations.enumerated() where isKernel(declaration, list) {
      if declaration.kind == .instantiation {
        if let entry = instantiation(declaration, &context, reachability, &signatures) { entries.append(entry) }
        context.blank(declaration.tokens)
      } else if declaration.templateParameters == nil || declaration.isExplicitSpecialization {
        if declaration.templateParameters == nil { makeStatic(declaration, &context) }
        guard declaration.body != nil else { continue }
        entries.append(
          KernelEntry(
            hostName: hostName(declaration, &context) ?? declaration.name,
            expression: expression(index, context), signature: KernelSignature(declaration, &context),
            maxThreads: maxThreads([declaration], list), facts: reachability.facts(of: index),
            token: declaration.nameToken, templateArguments: [:]))
      }
    }
    return entries
  }

  /// The host reaches kernels through the object's table only.
  private static func makeStatic(_ declaration: Declaration, _ context: inout LoweringContext) {
    let head = span(declaration.headStart, declaration.nameToken)
    guard !head.contains(where: { ["static", "extern"].contains(context.list.text($0)) }) else { return }
    context.insert("static ", before: declaration.headStart)
  }

  private static func expression(_ index: Int, _ context: LoweringContext) -> String {
    let (declaration, list) = (context.declarations[index], context.list)
    let arguments = span(declaration.nameToken + 1, declaration.parameters.lowerBound - 1)
    // The whole name: of a function of the library with the same one clang would not know which.
    let name = "::\(declaration.qualifier)\(context.kernelNames[index] ?? declaration.name)"
    return list.text(arguments.lowerBound) == "<" ? name + list.joined(arguments) : name
  }

  private static func maxThreads(_ declarations: [Declaration], _ list: TokenList) -> String {
    for declaration in declarations {
      if let attribute = declaration.attribute("max_total_threads_per_threadgroup") {
        return "(" + list.joined(attribute.argument) + ")"
      }
    }
    return "0"
  }

  private static func hostName(_ declaration: Declaration, _ context: inout LoweringContext) -> String? {
    guard let attribute = declaration.attribute("host_name") else { return nil }
    let list = context.list
    guard !attribute.argument.isEmpty, attribute.argument.allSatisfy({ list.tokens[$0].kind == .string }) else {
      context.report("'host_name' needs a string literal", at: attribute.token)
      return nil
    }
    return attribute.argument.map { token in
      list.source.string(list.tokens[token].range).dropFirst().dropLast()
    }.joined()
  }

  // MARK: Instantiations

  private struct Target {
    let function: Int
    /// Token of the template's name.
    let name: Int
    /// Tokens between `<` and `>`; empty where all are deduced.
    let arguments: Range<Int>
    /// Tokens with the parentheses of the parameters; nil in `decltype(f<1>) f<1>`.
    var parameters: Range<Int>?
  }

  /// The function template that an explicit instantiation names.
  private static func target(of declaration: Declaration, _ context: LoweringContext) -> Target? {
    let list = context.list
    var position = declaration.headStart
    while position < declaration.tokens.upperBound {
      if list.text(position) == "(" || list.text(position) == "[" {
        position = list.after(position)
        continue
      }
      if list.isIdentifier(position), list.text(position + 1) == "<", let close = list.closingAngle(position + 1) {
        let parameters = list.text(close + 1) == "(" ? span(close + 1, list.after(close + 1)) : nil
        if let function = template(named: list.text(position), parameters, context) {
          return Target(
            function: function, name: position, arguments: span(position + 2, close), parameters: parameters)
        }
      }
      if list.isIdentifier(position), list.text(position + 1) == "(" {
        let parameters = span(position + 1, list.after(position + 1))
        if let function = template(named: list.text(position), parameters, context) {
          return Target(
            function: function, name: position, arguments: position..<position, parameters: parameters)
        }
      }
      position += 1
    }
    return nil
  }

  /// The template of that name that an instantiation with these parameters means: before others one that is marked as
  /// a kernel, and one with parameters of the same memory.
  private static func template(
    named name: String, _ parameters: Range<Int>?, _ context: LoweringContext
  ) -> Int? {
    let list = context.list
    var candidates = context.declarations.indices.filter { index in
      let declaration = context.declarations[index]
      return declaration.kind == .function && declaration.name == name
        && !(declaration.templateParameters ?? []).isEmpty
    }
    prefer { isKernel(context.declarations[$0], list) }
    if let parameters {
      let wanted = memory(parameters.dropFirst().dropLast(), list)
      prefer { memory(context.declarations[$0].parameters, list) == wanted }
    }
    return candidates.first { context.declarations[$0].body != nil } ?? candidates.first

    func prefer(_ isPreferred: (Int) -> Bool) {
      guard candidates.count > 1 else { return }
      let preferred = candidates.filter(isPreferred)
      if !preferred.isEmpty { candidates = preferred }
    }
  }

  /// For each parameter the words that say to which memory it points or refers.
  private static func memory(_ parameters: Range<Int>, _ list: TokenList) -> [[String]] {
    let words = AddressSpace.all.union(["*", "&"])
    return list.splitAtCommas(parameters).map { $0.map { list.text($0) }.filter { words.contains($0) } }
  }

  private static func instantiation(
    _ declaration: Declaration, _ context: inout LoweringContext, _ reachability: Reachability,
    _ signatures: inout [Int: KernelSignature]
  ) -> KernelEntry? {
    let list = context.list
    guard let target = target(of: declaration, context) else {
      context.report(
        "an explicit instantiation of a kernel names a function template of this file with its arguments",
        at: declaration.tokens.lowerBound)
      return nil
    }
    let function = context.declarations[target.function]
    let signature = signatures[target.function] ?? KernelSignature(function, &context)
    signatures[target.function] = signature
    let given = list.splitAtCommas(target.arguments).map { list.joined($0) }
    let parameters = function.templateParameters ?? []
    let named = Dictionary(zip(parameters.lazy.filter { !$0.isPack }.map(\.name), given)) { first, _ in first }
    let deduced = target.parameters.flatMap {
      DeducedArguments(function, given: named, declaration, types: $0, context)
    }
    let values = bind(parameters, named.merging(deduced?.values ?? [:]) { first, _ in first }, list)
    if let missing = parameters.first(where: { !$0.isPack && values[$0.name] == nil }) {
      context.report(
        "the argument '\(missing.name)' of '\(function.name)' cannot be deduced here: name it", at: target.name)
      return nil
    }
    let name = "::\(function.qualifier)\(context.kernelNames[target.function] ?? function.name)"
    let arguments = deduced == nil ? given : parameters.lazy.filter { !$0.isPack }.compactMap { values[$0.name] }
    return KernelEntry(
      hostName: hostName(declaration, &context) ?? "\(function.name)<\(given.joined(separator: ", "))>",
      expression: "\(name)<\(arguments.joined(separator: ", "))>",
      signature: signature, maxThreads: maxThreads([declaration, function], list),
      facts: reachability.facts(of: target.function, tokens: target.arguments), token: target.name,
      templateArguments: values, deduced: deduced)
  }

  /// The values of a template's parameters: those known, and defaults.
  private static func bind(
    _ parameters: [TemplateParameter], _ known: [String: String], _ list: TokenList
  ) -> [String: String] {
    var result: [String: String] = known
    for parameter in parameters where !parameter.isPack && result[parameter.name] == nil {
      guard !parameter.defaultArgument.isEmpty else { continue }
      result[parameter.name] = substitute(list.joined(parameter.defaultArgument), result)
    }
    return result
  }

  /// `expression` with names replaced by their values in parentheses, if they
  /// are expressions.
  static func substitute(_ expression: String, _ values: [String: String]) -> String {
    guard !values.isEmpty else { return expression }
    let bytes = Array(expression.utf8)
    return Tokenizer.tokenize(bytes).map { token in
      let text = String(decoding: bytes[token.range], as: UTF8.self)
      return values[text] ?? text
    }.joined(separator: " ")
  }
}
