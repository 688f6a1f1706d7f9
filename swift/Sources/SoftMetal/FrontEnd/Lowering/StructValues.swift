/// Copies structs where Metal reads their value and clang, for which the memory
/// is part of the type, sees two objects of different types.
///
/// The operands of `value = c ? shared[i] : Op::init;` become `SM_VALUE(shared[i])`
/// and `SM_VALUE(Op::init)`, and `constant T init = Limits<T>::min;` becomes
/// `constant T init = SM_VALUE(Limits<T>::min);`. What has no memory of its own
/// passes through that unchanged.
struct StructValues {
  private let list: TokenList
  private let declarations: [Declaration]

  static func lower(_ context: inout LoweringContext) {
    let list = context.list
    guard list.indices.contains(where: { ClassDefinition.keys.contains(list.text($0)) }) else { return }
    let values = StructValues(list: list, declarations: context.declarations)
    for token in list.indices {
      switch list.text(token) {
      case "?": values.lowerChoice(token, &context)
      case "constant": values.lowerConstant(token, &context)
      default: break
      }
    }
  }

  private func lowerChoice(_ token: Int, _ context: inout LoweringContext) {
    guard let colon = list.operandEnd(token + 1), list.text(colon) == ":", let end = list.operandEnd(colon + 1),
      [";", ","].contains(list.text(end)), isRead(token),
      // Constants of the program are numbers, which have steps of their own.
      !declarations.contains(where: { $0.kind == .variable && $0.tokens.contains(token) })
    else { return }
    for operand in [token + 1..<colon, colon + 1..<end] where mayBeStruct(operand) {
      context.wrap(operand, "SM_VALUE(", ")")
    }
  }

  /// Whether the value of the conditional expression with its `?` at `token` is assigned or returned; where a
  /// reference is, the operand keeps its memory.
  private func isRead(_ token: Int) -> Bool {
    var position = token - 1
    while position >= 0 {
      switch list.text(position) {
      case ")", "]", "}":
        guard list.partner[position] >= 0 else { return false }
        position = list.partner[position]
      case "=": return list.text(position - 2) != "&"
      case "return":
        let function = declarations.first { $0.kind == .function && ($0.body?.contains(position) ?? false) }
        guard let function else { return false }
        return !span(function.headStart, function.nameToken).contains { list.text($0) == "&" }
      case ";", "{", "(", "[", ",": return false
      default: break
      }
      position -= 1
    }
    return false
  }

  private func mayBeStruct(_ operand: Range<Int>) -> Bool {
    list.isIdentifier(operand.lowerBound) && list.text(operand.upperBound - 1) != ")"
      && !["true", "false", "nullptr"].contains(list.text(operand.lowerBound))
  }

  /// `constant T name = Scope::object;`
  private func lowerConstant(_ token: Int, _ context: inout LoweringContext) {
    var equals = token + 1
    while list.isIdentifier(equals) || list.text(equals) == "::" { equals += 1 }
    guard list.text(equals) == "=", equals > token + 2, let end = list.operandEnd(equals + 1), list.text(end) == ";",
      list.text(end - 2) == "::"
    else { return }
    context.wrap(equals + 1..<end, "SM_VALUE(", ")")
  }
}
