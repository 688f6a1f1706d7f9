/// Sets member functions of `device`, `constant` and `threadgroup` objects apart.
///
/// clang has no objects with an address space in C++. `T f() const device` gets
/// a parameter that no call gives, `T f(::softmetal::DeviceObject) const`; a
/// conversion, which cannot have one, becomes a function of another name. The
/// functions of thread objects stay.
///
/// Where the versions of a constant function are the same but for the memory,
/// one of them serves thread objects, and `p[i].f()` calls it on a copy,
/// `SM_VALUE(p[i]).f()`.
enum MemberQualifiers {
  private static let spaces = ["device": "Device", "constant": "Constant", "threadgroup": "Threadgroup"]

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    // Those of `array<T, N>` in the headers.
    var copied: Set<String> = list.indices.contains { list.text($0) == "array" } ? ["size", "empty"] : []
    for token in list.indices {
      guard let space = spaces[list.text(token)], let close = parameterEnd(before: token, list) else { continue }
      let open = list.partner[close]
      guard open > 0, followsMember(token, list) else { continue }
      context.blank(token..<token + 1)
      if let keyword = conversion(open, list) {
        context.edits.blank(list.tokens[keyword].range, in: list.source)
        context.insert(" sm_conversion_\(token)", before: open)
      } else if let versions = sameVersions(token, open, list) {
        copied.insert(list.text(open - 1))
        guard versions.first == open else {
          context.insert("::softmetal::\(space)Object" + (close == open + 1 ? "" : ", "), after: open)
          continue
        }
      } else if list.isIdentifier(open - 1) || list.text(open - 2) == "operator" || list.text(open - 1) == ")" {
        context.insert("::softmetal::\(space)Object" + (close == open + 1 ? "" : ", "), after: open)
      }
    }
    lowerCalls(of: copied, &context)
  }

  /// The parentheses of all versions of the constant function with parameters at `open`, that for thread objects
  /// first; nil when they differ in more than the memory.
  private static func sameVersions(_ token: Int, _ open: Int, _ list: TokenList) -> [Int]? {
    guard list.text(token - 1) == "const", list.isIdentifier(open - 1), list.text(open - 2) != "operator",
      let type = list.enclosingBrace(token)
    else { return nil }
    var versions: [Int] = []
    var texts: Set<String> = []
    for name in span(type, list.partner[type]) where list.text(name) == list.text(open - 1) {
      guard list.text(name + 1) == "(", list.enclosingBrace(name) == type else { continue }
      let parameters = name + 1..<list.after(name + 1)
      guard list.joined(parameters) == list.joined(open..<list.after(open)) else { continue }
      var body = parameters.upperBound
      var isThread = true
      while list.isIdentifier(body) {
        if spaces.keys.contains(list.text(body)) { isThread = false }
        body += 1
      }
      texts.insert(list.text(body) == "{" ? list.joined(body..<list.after(body)) : "")
      versions.insert(name + 1, at: isThread ? 0 : versions.count)
    }
    return texts.count == 1 ? versions : nil
  }

  private static func lowerCalls(of names: Set<String>, _ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices where list.text(token + 1) == "(" && names.contains(list.text(token)) {
      guard [".", "->"].contains(list.text(token - 1)), let start = list.operandStart(token - 1) else { continue }
      let isPointer = list.text(token - 1) == "->"
      context.wrap(start..<token - 1, isPointer ? "SM_VALUE(*" : "SM_VALUE(", ")")
      if isPointer { context.edits.replace(list.tokens[token - 1].range, with: ".") }
    }
  }

  /// The `)` of the parameters whose qualifiers `token` belongs to, or nil.
  private static func parameterEnd(before token: Int, _ list: TokenList) -> Int? {
    var position = token - 1
    while ["const", "volatile"].contains(list.text(position)) { position -= 1 }
    return list.text(position) == ")" && list.partner[position] >= 0 ? position : nil
  }

  /// Whether the end of a member function's head, or its body, comes next.
  private static func followsMember(_ token: Int, _ list: TokenList) -> Bool {
    ["{", ";", ":"].contains(list.text(token + 1)) || (list.text(token + 1) == "->" && list.isIdentifier(token + 2))
  }

  /// The `operator` of a conversion function with parameters at `open`, or nil.
  private static func conversion(_ open: Int, _ list: TokenList) -> Int? {
    var position = open - 1
    while position > 0, list.isIdentifier(position) || ["::", "<", ">", ","].contains(list.text(position)) {
      if list.text(position) == "operator" { return position < open - 1 ? position : nil }
      position -= 1
    }
    return nil
  }
}
