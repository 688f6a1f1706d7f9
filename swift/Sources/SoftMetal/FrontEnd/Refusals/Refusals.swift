/// Refuses what Apple's compiler refuses and clang would accept.
enum Refusals {
  /// Checks that need the text only.
  static func check(_ context: inout LoweringContext) {
    let list = context.list
    guard list.isBalanced else {
      // At the end of the text clang would find the tables that follow it.
      if let open = list.indices.first(where: { list.text($0) == "{" && list.partner[$0] == list.count }) {
        context.report("expected '}': this '{' is never closed", at: open)
      }
      return
    }
    for token in list.indices where list.isIdentifier(token) {
      if let message = message(token, list) { context.report(message, at: token) }
    }
    for token in list.indices where isLambda(token, list) {
      context.report("lambda expressions are not supported in Metal", at: token)
    }
    for token in memberPointers(list) {
      context.report("pointers to members are not supported in Metal", at: token)
    }
    for token in autoParameters(list) {
      context.report("'auto' is not allowed in a template parameter: Metal is C++14", at: token)
    }
    AddressSpaceRefusals.check(&context)
    FunctionPointers.check(&context)
    Recursion.check(&context)
    KernelRules.check(&context)
    for declaration in context.declarations where declaration.kind == .function && Kernels.isKernel(declaration, list) {
      var before = declaration.nameToken - 1
      while list.text(before) == "kernel" { before -= 1 }
      if list.text(before) != "void" {
        context.report("kernel '\(declaration.name)' must return void", at: declaration.nameToken)
      }
    }
  }

  static let words: [String: String] = [
    "double": "'double' is not supported in Metal; use 'float'",
    "virtual": "virtual functions are not supported in Metal",
    "dynamic_cast": "'dynamic_cast' is not supported in Metal",
    "typeid": "'typeid' is not supported in Metal",
    "new": "'new' is not supported in Metal",
    "delete": "'delete' is not supported in Metal",
    "try": "exceptions are not supported in Metal",
    "catch": "exceptions are not supported in Metal",
    "throw": "exceptions are not supported in Metal",
    "goto": "'goto' is not supported in Metal",
    "thread_local": "'thread_local' is not supported in Metal",
    "register": "'register' is not supported in Metal",
    "asm": "inline assembly is not supported in Metal",
    "__asm__": "inline assembly is not supported in Metal",
    "__asm": "inline assembly is not supported in Metal",
    "__float128": "'__float128' is not supported in Metal; use 'float'",
    "__int128": "'__int128' is not supported in Metal; use 'long'",
    "__int128_t": "'__int128_t' is not supported in Metal; use 'long'",
    "__uint128_t": "'__uint128_t' is not supported in Metal; use 'ulong'",
    "_Complex": "'_Complex' is not supported in Metal",
    "wchar_t": "'wchar_t' is not supported in Metal",
  ]

  /// `template <auto N>`; as the result of a function it says no type, `auto (*f)(T) -> T`.
  private static func autoParameters(_ list: TokenList) -> [Int] {
    TemplateParameter.lists(of: list).flatMap { parameters in
      parameters.filter { list.text($0) == "auto" && list.text($0 + 1) != "(" }
    }
  }

  private static func message(_ token: Int, _ list: TokenList) -> String? {
    let text = list.text(token)
    let before = list.text(token - 1)
    if text == "std", !isMember(token, list), list.text(token + 1) == "::" || isUsed(token, list) {
      return "the C++ standard library is not available in Metal"
    }
    if text == "operator", ["new", "delete"].contains(list.text(token + 1)) {
      return "'operator \(list.text(token + 1))' is not supported in Metal"
    }
    if isGraphics(token, list) {
      return
        "'\(text)' belongs to graphics: SoftMetal runs compute kernels on buffers, without textures and render stages"
    }
    if text.hasPrefix("__builtin_") { return "'\(text)' is not available in Metal" }
    // `= delete` is a declaration of its own; members may have any name.
    if text == "delete", before == "=" || before == "operator" { return nil }
    if text == "new", before == "operator" { return nil }
    return words[text]
  }

  /// The signs of `&Class::member`.
  private static func memberPointers(_ list: TokenList) -> [Int] {
    let signs = list.indices.filter {
      list.text($0) == "&" && list.text($0 + 2) == "::" && ["=", "(", ",", "return", "{"].contains(list.text($0 - 1))
    }
    guard !signs.isEmpty else { return [] }
    let classes = ClassDefinition.all(list)
    return signs.filter { sign in
      classes.contains { definition in
        definition.name == list.text(sign + 1)
          && definition.dataMembers.union(definition.functions).contains(list.text(sign + 3))
      }
    }
  }

  /// Whether the name at `token` is one of a namespace or a type: `my::std`, but not `return ::std`.
  private static func isMember(_ token: Int, _ list: TokenList) -> Bool {
    list.text(token - 1) == "::" && list.isIdentifier(token - 2)
      && !TokenList.statementWords.contains(list.text(token - 2))
  }

  /// Whether `using namespace` is before `token`.
  private static func isUsed(_ token: Int, _ list: TokenList) -> Bool {
    list.text(token - 1) == "namespace" && list.text(token - 2) == "using"
  }

  private static let graphicsTemplates: Set<String> = {
    var names: Set<String> = ["texture_buffer", "acceleration_structure", "intersector", "imageblock", "mesh"]
    for shape in ["1d", "1d_array", "2d", "2d_array", "2d_ms", "2d_ms_array", "3d", "cube", "cube_array"] {
      names.formUnion(["texture\(shape)", "depth\(shape)"])
    }
    return names
  }()

  /// Whether a type of textures, or the stage of a render function, is at `token`.
  private static func isGraphics(_ token: Int, _ list: TokenList) -> Bool {
    let text = list.text(token)
    if graphicsTemplates.contains(text) { return list.text(token + 1) == "<" }
    if text == "sampler" { return list.isIdentifier(token + 1) || list.text(token + 1) == "(" }
    guard text == "vertex" || text == "fragment", list.isIdentifier(token + 1) else { return false }
    // A type and a name, at the start of a declaration.
    return token == 0 || [";", "}"].contains(list.text(token - 1)) && list.isIdentifier(token + 2)
  }

  /// Whether the `[` at `token` begins a lambda: an index or a bound follows a
  /// name or a closing bracket, a structured binding follows `auto`, and `=`
  /// follows a designator, as in `float m[4] = { [0 ... 3] = -1 }`.
  private static func isLambda(_ token: Int, _ list: TokenList) -> Bool {
    guard list.text(token) == "[", list.text(token + 1) != "[", token > 0 else { return false }
    guard list.text(list.after(token)) != "=" else { return false }
    let before = list.text(token - 1)
    if before == "&" || before == "&&" { return list.text(token - 2) != "auto" }
    if list.isIdentifier(token - 1) { return before == "return" }
    return list.tokens[token - 1].kind == .punctuation && !["[", "]", ")", ">"].contains(before)
  }

  /// Checks of the entry points.
  static func check(_ entries: [KernelEntry], _ context: inout LoweringContext) {
    var names: Set<String> = []
    for entry in entries {
      if !names.insert(entry.hostName).inserted {
        context.report("two kernels have the name '\(entry.hostName)'", at: entry.token)
      }
    }
    var seen: Set<Int> = []
    for entry in entries {
      var used: [String: Set<Int>] = [:]
      for argument in entry.signature.arguments where !seen.contains(argument.token) {
        guard let number = argument.number else { continue }
        let kind = argument.kind
        if !Argument.indices.contains(number) {
          context.report("\(kind) index \(number) \(Argument.outOfBounds)", at: argument.token)
        } else if !used[kind, default: []].insert(number).inserted {
          context.report("\(kind) index \(number) \(Argument.alreadyUsed)", at: argument.token)
        }
      }
      seen.formUnion(entry.signature.arguments.map(\.token))
    }
  }

  private typealias Argument = KernelSignature.Argument
}
