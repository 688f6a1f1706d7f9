/// Casts to half and bfloat, between which clang has no conversion: `bfloat(x)`, `(bfloat)x` and
/// `static_cast<bfloat>(x)` become `sm_make<bfloat>(x)`, which goes through float. In a source that names both types,
/// so do casts to types that may be one of them: parameters of templates and aliases. In one whose templates may have
/// references for arguments, so do casts to parameters: `sm_make` refuses to change their address space.
///
/// bfloat is clang's `__bf16` and no class: a class would convert to and from every number, so that `b + 1`,
/// `c ? b : 0` and `switch` were ambiguous, and its arithmetic would be ours to define. What `__bf16` lacks is this
/// conversion alone.
struct ScalarCasts {
  private static let types: Set<String> = ["half", "bfloat"]

  private let list: TokenList
  private let aliases: Set<String>
  private let hasBoth: Bool
  /// Whether a parameter of a template may be a reference, casts to which must not change the address space.
  private let hasReferences: Bool
  private var scopes = TemplateScopes()

  static func lower(_ context: inout LoweringContext) {
    var casts = ScalarCasts(context.list)
    for token in context.list.indices where context.list.isIdentifier(token) { casts.lower(token, &context) }
  }

  private init(_ list: TokenList) {
    self.list = list
    hasBoth = Self.types.allSatisfy { type in list.tokens.contains { $0.text.hasPrefix(type) } }
    hasReferences = ReferenceCasts.areArguments(list)
    aliases = hasBoth ? VectorTypes(list).aliases : []
  }

  private mutating func lower(_ token: Int, _ context: inout LoweringContext) {
    let text = list.text(token)
    if hasBoth || hasReferences { scopes.advance(to: token, list) }
    if text == "static_cast" {
      guard list.text(token + 1) == "<", let close = list.closingAngle(token + 1), mayBeScalar(token + 2..<close) else {
        return
      }
      context.edits.replace(list.tokens[token].range, with: "sm_make")
    } else if isScalar(text) {
      lowerType(token, &context)
    }
  }

  private func isScalar(_ name: String) -> Bool {
    Self.types.contains(name) || aliases.contains(name) || scopes.contains(name)
  }

  private func mayBeScalar(_ type: Range<Int>) -> Bool {
    if type.count == 1 { return isScalar(list.text(type.lowerBound)) }
    return hasBoth && list.text(type.lowerBound) == "typename"
      && type.allSatisfy { !["*", "&", "&&", "["].contains(list.text($0)) }
  }

  private func lowerType(_ token: Int, _ context: inout LoweringContext) {
    if list.text(token - 1) == "(", list.text(token + 1) == ")" {
      let startsStatement = [";", "{", "}"].contains(list.text(token - 2))
      guard let end = list.operandEnd(token + 2), startsStatement || isExpression(before: token - 1) else { return }
      context.edits.replace(list.byteRange(token - 1..<token + 2), with: "sm_make<\(list.text(token))>(")
      context.insert(")", after: end - 1)
    } else if list.text(token + 1) == "(", isExpression(before: token) || isChanged(token), !isFunctionType(token) {
      context.edits.replace(list.tokens[token].range, with: "sm_make<\(list.text(token))>")
    }
  }

  /// Whether `R(x) += 1`, which is no declaration, is at `token`.
  private func isChanged(_ token: Int) -> Bool {
    let sign = list.text(list.after(token + 1))
    return [";", "{", "}"].contains(list.text(token - 1)) && sign != "="
      && (TokenList.assignments.contains(sign) || ["++", "--"].contains(sign))
  }

  /// Whether `half(half)` or `half (*name)(half)` is at `token`.
  private func isFunctionType(_ token: Int) -> Bool {
    let inside = list.text(token + 2), close = list.after(token + 1) - 1
    if ["*", "&"].contains(inside), list.text(close + 1) == "(" { return true }
    return isScalar(inside) && [",", ")"].contains(list.text(token + 3))
      || VectorTypes.components.contains(inside) && [",", ")", "*", "&"].contains(list.text(token + 3))
      || AddressSpace.all.contains(inside)
  }

  private func isExpression(before token: Int) -> Bool {
    let before = list.text(token - 1)
    if list.isIdentifier(token - 1) { return ["return", "else", "case", "do"].contains(before) }
    return ![".", "->", ">", "::", ";", "{", "}"].contains(before) || before == "{" && list.text(token - 2) != ")"
  }
}
