/// Sets member functions of `device`, `constant` and `threadgroup` objects apart.
///
/// clang has no objects with an address space in C++. `T f() const device` gets
/// a parameter that no call gives, `T f(::softmetal::DeviceObject) const`; a
/// conversion, which cannot have one, becomes a function of another name. The
/// functions of thread objects stay.
enum MemberQualifiers {
  private static let spaces = ["device": "Device", "constant": "Constant", "threadgroup": "Threadgroup"]

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    for token in list.indices {
      guard let space = spaces[list.text(token)], let close = parameterEnd(before: token, list) else { continue }
      let open = list.partner[close]
      guard open > 0, followsMember(token, list) else { continue }
      context.blank(token..<token + 1)
      if let keyword = conversion(open, list) {
        context.edits.blank(list.tokens[keyword].range, in: list.source)
        context.insert(" sm_conversion_\(token)", before: open)
      } else if list.isIdentifier(open - 1) || list.text(open - 2) == "operator" || list.text(open - 1) == ")" {
        context.insert("::softmetal::\(space)Object" + (close == open + 1 ? "" : ", "), after: open)
      }
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
