/// Gives literals the types that Metal gives them. A literal without a suffix is a float, and gets one; an underscore
/// goes before the suffixes that C++ keeps for itself: `1.5H` and `1.5bf` become `1.5_H` and `1.5_bf`, which the headers
/// define.
enum Literals {
  private static let reservedSuffixes: [Substring] = ["bf", "BF", "H"]

  static func lower(_ context: inout LoweringContext) {
    for (index, token) in context.list.tokens.enumerated() where token.kind == .number {
      let digits = Digits(token.text)
      if reservedSuffixes.contains(digits.suffix) {
        context.edits.replace(token.range, with: "\(token.text.dropLast(digits.suffix.count))_\(digits.suffix)")
      } else if digits.isFloating, digits.suffix.isEmpty {
        context.edits.replace(token.range, with: token.text + "f")
      } else if digits.isFloating, digits.suffix == "L" || digits.suffix == "l" {
        context.report(
          "'long double' is not supported in Metal; '\(token.text)' without its suffix is a float", at: index)
      }
    }
  }

  /// A numeric literal, taken apart.
  private struct Digits {
    /// Whether it has a fraction or an exponent.
    private(set) var isFloating = false
    private(set) var suffix: Substring

    init(_ text: String) {
      let isHexadecimal = text.lowercased().hasPrefix("0x")
      let exponents = isHexadecimal ? "pP" : "eE"
      suffix = text.dropFirst(isHexadecimal ? 2 : 0)
      // The digits of an exponent are decimal.
      var isDecimal = !isHexadecimal
      while let character = suffix.first {
        if exponents.contains(character) {
          isFloating = true
          isDecimal = true
          suffix = suffix.dropFirst()
          if let sign = suffix.first, "+-".contains(sign) { suffix = suffix.dropFirst() }
          continue
        }
        if character == "." { isFloating = true }
        guard character == "." || character == "'" || (isDecimal ? character.isNumber : character.isHexDigit) else {
          return
        }
        suffix = suffix.dropFirst()
      }
    }
  }
}
