/// The value of an expression of integer literals, as macros leave it: `(100 + 2)`.
struct IntegerExpression {
  private let list: TokenList
  private var position: Int
  private let end: Int
  /// Parentheses and signs around.
  private var depth: Int

  /// Nil for an expression that names something, for one that has no value, and for one too deep.
  static func value(of tokens: Range<Int>, _ list: TokenList) -> Int? { value(of: tokens, list, depth: 0) }

  private static func value(of tokens: Range<Int>, _ list: TokenList, depth: Int) -> Int? {
    var expression = IntegerExpression(
      list: list, position: tokens.lowerBound, end: tokens.upperBound, depth: depth)
    guard let value = expression.binary(0), expression.position == tokens.upperBound else { return nil }
    return value
  }

  /// By precedence, the loosest first.
  private static let operators: [[String: (Int, Int) -> Int?]] = [
    ["|": { $0 | $1 }], ["^": { $0 ^ $1 }], ["&": { $0 & $1 }],
    ["<<": { (0..<32).contains($1) ? checked($0.multipliedReportingOverflow(by: 1 << $1)) : nil }],
    ["+": { checked($0.addingReportingOverflow($1)) }, "-": { checked($0.subtractingReportingOverflow($1)) }],
    [
      "*": { checked($0.multipliedReportingOverflow(by: $1)) },
      "/": { checked($0.dividedReportingOverflow(by: $1)) },
      "%": { checked($0.remainderReportingOverflow(dividingBy: $1)) },
    ],
  ]

  private static func checked(_ result: (partialValue: Int, overflow: Bool)) -> Int? {
    result.overflow ? nil : result.partialValue
  }

  private mutating func binary(_ level: Int) -> Int? {
    guard level < Self.operators.count else { return unary() }
    guard var value = binary(level + 1) else { return nil }
    while position < end, let operation = Self.operators[level][list.text(position)] {
      position += 1
      guard let right = binary(level + 1), let result = operation(value, right) else { return nil }
      value = result
    }
    return value
  }

  private mutating func unary() -> Int? {
    guard position < end, depth < TokenList.maximumDepth else { return nil }
    depth += 1
    defer { depth -= 1 }
    let token = position
    switch list.text(token) {
    case "(":
      let close = list.after(token) - 1
      guard close < end, let value = Self.value(of: span(token + 1, close), list, depth: depth) else { return nil }
      position = close + 1
      return value
    case "+":
      position += 1
      return unary()
    case "-":
      position += 1
      return unary().flatMap { Self.checked((0).subtractingReportingOverflow($0)) }
    default:
      guard list.tokens[token].kind == .number else { return nil }
      position += 1
      return Self.literal(list.text(token))
    }
  }

  private static func literal(_ text: String) -> Int? {
    var digits = text.filter { $0 != "'" }.lowercased()
    while let last = digits.last, last == "u" || last == "l" { digits.removeLast() }
    if digits.hasPrefix("0x") { return Int(digits.dropFirst(2), radix: 16) }
    if digits.hasPrefix("0b") { return Int(digits.dropFirst(2), radix: 2) }
    if digits.count > 1, digits.hasPrefix("0") { return Int(digits.dropFirst(), radix: 8) }
    return Int(digits)
  }
}
