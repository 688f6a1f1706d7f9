/// Places `threadgroup` variables of kernels in the threadgroup's memory.
///
/// `threadgroup float a[4], b;` becomes a type and a reference for each
/// variable; a threadgroup pointer or reference stays as it is.
struct ThreadgroupVariables {
  private var count = 0

  static func lower(_ context: inout LoweringContext, kernels: Set<Int>) {
    var variables = ThreadgroupVariables()
    for (index, declaration) in context.declarations.enumerated() {
      if declaration.kind == .function, let body = declaration.body {
        let owner = kernels.contains(index) ? selfExpression(index, context) : nil
        for token in body where context.list.text(token) == "threadgroup" {
          variables.lower(token, in: body, owner: owner, &context)
        }
      } else if declaration.kind == .variable {
        let head = span(declaration.headStart, declaration.nameToken)
        if head.contains(where: { context.list.text($0) == "threadgroup" }),
          !head.contains(where: { ["*", "&", "<"].contains(context.list.text($0)) })
        {
          variables.reportOutside(declaration.nameToken, &context)
        }
      }
    }
  }

  /// The kernel's own specialization, as its body can name it.
  private static func selfExpression(_ index: Int, _ context: LoweringContext) -> String {
    let (declaration, list) = (context.declarations[index], context.list)
    let name = context.kernelNames[index] ?? declaration.name
    guard let parameters = declaration.templateParameters else { return name }
    if parameters.isEmpty {
      return name + list.joined(span(declaration.nameToken + 1, declaration.parameters.lowerBound - 1))
    }
    return name + "<" + parameters.map { $0.name + ($0.isPack ? "..." : "") }.joined(separator: ", ") + ">"
  }

  private mutating func reportOutside(_ token: Int, _ context: inout LoweringContext) {
    context.report(
      "variable '\(context.list.text(token))' in the threadgroup address space is not inside a kernel", at: token)
  }

  private mutating func lower(_ keyword: Int, in body: Range<Int>, owner: String?, _ context: inout LoweringContext) {
    let list = context.list
    guard let start = statementStart(keyword, in: body, list), let end = statementEnd(keyword, in: body, list) else {
      return
    }
    let declarators = list.splitAtCommas(span(start, end))
    guard let first = declarators.first, let name = declaratorName(first, list) else { return }
    guard let owner else {
      reportOutside(name, &context)
      return
    }
    let typeName = typeText(span(start, name), &context)
    context.edits.replace(list.tokens[keyword].range, with: "typedef    ")
    for (index, declarator) in declarators.enumerated() {
      guard let variable = index == 0 ? name : declaratorName(declarator, list) else {
        context.report("expected the name of a threadgroup variable", at: declarator.lowerBound)
        return
      }
      var initializer = variable + 1
      while list.text(initializer) == "[" { initializer = list.after(initializer) }
      if list.text(initializer) == "__attribute__" { initializer = list.after(initializer + 1) }
      let value = list.text(initializer) == "=" ? initializer + 1 : initializer
      if list.text(value) == "{", list.after(value) == declarator.upperBound {
        // Metal takes braces and leaves the memory as it is.
        context.blank(initializer..<declarator.upperBound)
      } else if initializer < declarator.upperBound {
        context.report(
          "variable '\(list.text(variable))' in the threadgroup address space cannot have an initializer",
          at: initializer)
        return
      }
      let type = "sm_type_\(count)_\(list.text(variable))"
      if index > 0 {
        let comma = declarator.lowerBound - 1
        context.edits.replace(list.tokens[comma].range, with: "; typedef \(typeName)")
      }
      context.insert("sm_type_\(count)_", before: variable)
      context.insert(
        "; threadgroup \(type) &\(list.text(variable)) = ::softmetal::threadgroup_variable<\(type), \(count), "
          + "(\(owner))>()",
        before: declarator.upperBound)
      count += 1
    }
  }

  /// The first token of the declaration that holds `keyword`, or nil where
  /// `threadgroup` is part of an expression or of another type.
  private func statementStart(_ keyword: Int, in body: Range<Int>, _ list: TokenList) -> Int? {
    var position = keyword - 1
    while position >= body.lowerBound {
      switch list.text(position) {
      case ";", "{", "}", ":": return position + 1
      case ")" where Self.alignments.contains(list.text(list.partner[position] - 1)):
        position = list.partner[position] - 1
      case "typedef", "using", "return": return nil
      case "::": position -= 1
      default:
        guard list.isIdentifier(position) else { return nil }
        position -= 1
      }
    }
    return body.lowerBound
  }

  private func statementEnd(_ keyword: Int, in body: Range<Int>, _ list: TokenList) -> Int? {
    var position = keyword
    while position < body.upperBound {
      switch list.text(position) {
      case ";": return position
      case "(", "[", "{": position = list.after(position)
      case ")", "]", "}": return nil
      default: position += 1
      }
    }
    return nil
  }

  private static let alignments: Set<String> = ["alignas", "__attribute__"]

  /// The declared name; nil for a pointer, a reference or no declarator.
  private func declaratorName(_ declarator: Range<Int>, _ list: TokenList) -> Int? {
    var name: Int?
    var position = declarator.lowerBound
    while position < declarator.upperBound {
      switch list.text(position) {
      case "*", "&", "&&": return nil
      case "alignas" where list.text(position + 1) == "(", "__attribute__" where list.text(position + 1) == "(":
        position = list.after(position + 1)
        continue
      case "<":
        guard let close = list.closingAngle(position) else { return nil }
        position = close
      case "[", "=", "{": return name
      case "(": return nil
      default:
        if list.isIdentifier(position) { name = position }
      }
      position += 1
    }
    return name
  }

  /// The element type as text, for the declarators after the first.
  /// What a typedef cannot hold is rewritten.
  private func typeText(_ tokens: Range<Int>, _ context: inout LoweringContext) -> String {
    let list = context.list
    var text = ""
    var position = tokens.lowerBound
    while position < tokens.upperBound {
      switch list.text(position) {
      case "threadgroup": break
      case "static", "volatile", "const":
        context.blank(position..<position + 1)
      case "alignas" where list.text(position + 1) == "(":
        let close = list.after(position + 1) - 1
        context.edits.replace(list.tokens[position].range, with: "__attribute__((aligned")
        context.insert("))", after: close)
        text += "__attribute__((aligned" + list.joined(position + 1..<close + 1) + ")) "
        position = close
      default: text += list.source.string(list.tokens[position].range) + " "
      }
      position += 1
    }
    return text
  }
}
