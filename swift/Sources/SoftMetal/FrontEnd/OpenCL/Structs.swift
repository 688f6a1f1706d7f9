/// Lets user-defined structs and unions be copied from every address space.
///
/// Left alone: enumerations, anonymous structs and unions, and those that
/// declare a copy constructor, an assignment or a destructor of their own, since
/// the added defaults could contradict those; structs with a reference.
enum Structs {
  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    let classes = Set(list.indices.compactMap { braces(ofClassAt: $0, list) })
    for token in list.indices where ClassDefinition.keys.contains(list.text(token)) {
      guard list.text(token - 1) != "enum" else { continue }
      if let name = nameOfUnnamed(token, list) {
        context.insert(" \(name)", after: token)
        insertCopies(name, open: token + 1, key: token, classes, &context)
      } else if let (name, open) = ClassDefinition.head(token, list) {
        insertCopies(list.text(name), open: open, key: token, classes, &context)
      }
    }
  }

  private static func insertCopies(
    _ name: String, open: Int, key: Int, _ classes: Set<Int>, _ context: inout LoweringContext
  ) {
    let list = context.list
    guard let kind = kind(name, span(open + 1, min(list.partner[open], list.count)), list) else { return }
    let isLocal = isLocal(open, classes, list)
    guard !isLocal || kind != .constructed else { return }
    let copies = "\(isLocal && kind == .plain ? "SM_LOCAL_STRUCT" : kind.rawValue)(\(name))"
    context.insert(list.text(key) == "class" ? " public: \(copies) private:" : " " + copies, after: open)
  }

  /// The opening brace of the class whose key is at `token`, or nil.
  private static func braces(ofClassAt token: Int, _ list: TokenList) -> Int? {
    guard ClassDefinition.keys.contains(list.text(token)) else { return nil }
    return list.text(token + 1) == "{" ? token + 1 : ClassDefinition.head(token, list)?.open
  }

  /// Whether the class whose brace is at `open` is in a function, be it a method of another class.
  private static func isLocal(_ open: Int, _ classes: Set<Int>, _ list: TokenList) -> Bool {
    var brace = open
    while let outer = list.enclosingBrace(brace) {
      if !classes.contains(outer) { return !isNamespace(outer, list) }
      brace = outer
    }
    return false
  }

  /// Whether the brace at `open` is that of a namespace or of `extern "C"`.
  private static func isNamespace(_ open: Int, _ list: TokenList) -> Bool {
    var token = open - 1
    while list.text(token) == "]" || list.isIdentifier(token) || list.text(token) == "::" {
      if ["namespace", "extern"].contains(list.text(token)) { return true }
      token = list.text(token) == "]" ? list.partner[token] - 1 : token - 1
    }
    return token > 0 && list.tokens[token].kind == .string
  }

  /// A name for the struct of `typedef struct { ... } Name;` and `struct { ... } name;`, which copies need.
  private static func nameOfUnnamed(_ token: Int, _ list: TokenList) -> String? {
    guard list.text(token + 1) == "{", list.isIdentifier(list.after(token + 1)), !isOverlaid(token, list) else {
      return nil
    }
    return "sm_struct_" + (list.text(token - 1) == "typedef" ? list.text(list.after(token + 1)) : "\(token)")
  }

  /// Whether `token` is inside an anonymous struct or union, which cannot have types.
  private static func isOverlaid(_ token: Int, _ list: TokenList) -> Bool {
    list.enclosingBrace(token).map { isAnonymous($0, list) } ?? false
  }

  /// Whether the brace at `open` begins an anonymous struct or union.
  private static func isAnonymous(_ open: Int, _ list: TokenList) -> Bool {
    ["struct", "union"].contains(list.text(open - 1)) && list.text(list.after(open)) == ";"
  }

  /// The macro that a struct gets.
  private enum Kind: String {
    case plain = "SM_STRUCT"
    case constructed = "SM_CONSTRUCTED_STRUCT"
    /// With a constant member, so that it cannot be assigned.
    case constant = "SM_CONSTANT_STRUCT"
  }

  /// Nil for a struct that is left alone.
  private static func kind(_ name: String, _ members: Range<Int>, _ list: TokenList) -> Kind? {
    var kind = Kind.plain
    var position = members.lowerBound
    var statement = position
    while position < members.upperBound {
      switch list.text(position) {
      case "(":
        let function = functionName(before: position, list)
        if list.text(function) == name, list.text(function - 1) != "operator", !isDefaultElsewhere(position, list) {
          if list.text(function - 1) == "~" || isCopy(name, position, list) { return nil }
          kind = .constructed
        }
        if list.text(function) == "=", list.text(function - 1) == "operator" { return nil }
        position = list.after(position)
        continue
      case "[":
        position = list.after(position)
        continue
      case "{":
        position = list.after(position)
        statement = position
        continue
      case ";":
        switch assignability(span(statement, position), list) {
        case .reference: return nil
        case .constant:
          if kind == .constructed { return nil }
          kind = .constant
        case .assignable: break
        }
        statement = position + 1
      default: break
      }
      position += 1
    }
    return kind
  }

  /// The name before the parameters at `open`; a constructor's may have the template's parameters.
  private static func functionName(before open: Int, _ list: TokenList) -> Int {
    guard list.text(open - 1) == ">", let angle = list.openingAngle(open - 1) else { return open - 1 }
    return angle - 1
  }

  /// Whether the constructor with parameters at `open` is the default one of objects in a memory that has no
  /// constructors here.
  private static func isDefaultElsewhere(_ open: Int, _ list: TokenList) -> Bool {
    let end = list.after(open)
    return AddressSpace.qualified.contains(list.text(end)) && list.text(end + 2) == "default"
  }

  /// Whether the parameters at `open` are those of a copy constructor.
  private static func isCopy(_ name: String, _ open: Int, _ list: TokenList) -> Bool {
    span(open + 1, list.after(open)).contains { list.text($0) == name && list.text($0 + 1) == "&" }
  }

  private enum Assignability { case assignable, constant, reference }

  /// Whether a member declaration is a reference or a constant of the object.
  private static func assignability(_ tokens: Range<Int>, _ list: TokenList) -> Assignability {
    let texts = tokens.map { list.text($0) }
    if !Set(texts).isDisjoint(with: ["static", "using", "typedef", "("]) { return .assignable }
    if texts.contains("&") { return .reference }
    return !texts.contains("*") && !Set(texts).isDisjoint(with: ["const", "constexpr"]) ? .constant : .assignable
  }
}
