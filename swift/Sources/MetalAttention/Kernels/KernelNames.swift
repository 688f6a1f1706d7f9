/// Reads the names of entry points from shader text without compiling it.
///
/// Names that a macro makes are not seen; they are known once the source is
/// compiled.
enum KernelNames {
  /// The names in the order of the text: `kernel` functions that are not
  /// templates, and instantiations by their `host_name`.
  static func scan(_ text: String) -> [String] {
    var names: [String] = []
    var declaration = Declaration()
    let tokens = tokens(of: text)
    for (position, token) in tokens.enumerated() {
      switch token {
      case .word("host_name"):
        if position + 2 < tokens.count, case .string(let name) = tokens[position + 2] {
          names.append(name)
          declaration.isNamed = true
        }
      case .word("template"):
        declaration.isTemplate = true
      case .word("kernel"):
        declaration.isKernel = true
      case .symbol("("):
        // The word before the first parenthesis is the function's name, unless
        // the parenthesis belongs to an attribute.
        if declaration.isKernel, !declaration.isTemplate, !declaration.isNamed, declaration.attributeDepth == 0,
          position > 0, case .word(let name) = tokens[position - 1]
        {
          names.append(name)
          declaration.isNamed = true
        }
      case .symbol("["):
        declaration.attributeDepth += 1
      case .symbol("]"):
        declaration.attributeDepth -= 1
      case .symbol(";"), .symbol("{"), .symbol("}"):
        declaration = Declaration()
      default:
        break
      }
    }
    return names
  }

  /// What has been seen since the last `;`, `{` or `}`.
  private struct Declaration {
    var isKernel = false
    var isTemplate = false
    var isNamed = false
    var attributeDepth = 0
  }

  private enum Token: Equatable {
    case word(String)
    case string(String)
    case symbol(Character)
  }

  private static func tokens(of text: String) -> [Token] {
    let bytes = Array(text.utf8)
    var tokens: [Token] = []
    var position = 0

    func byte(_ offset: Int = 0) -> UInt8 {
      position + offset < bytes.count ? bytes[position + offset] : 0
    }
    func take(while isIncluded: () -> Bool) -> String {
      let start = position
      while position < bytes.count, isIncluded() { position += 1 }
      return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    while position < bytes.count {
      switch byte() {
      case UInt8(ascii: "/") where byte(1) == UInt8(ascii: "/"), UInt8(ascii: "#"):
        // A comment, or a preprocessor line with those it is continued by.
        _ = take { byte() != UInt8(ascii: "\n") || bytes[position - 1] == UInt8(ascii: "\\") }
      case UInt8(ascii: "/") where byte(1) == UInt8(ascii: "*"):
        position += 2
        _ = take { !(byte() == UInt8(ascii: "*") && byte(1) == UInt8(ascii: "/")) }
        position += 2
      case UInt8(ascii: "\""):
        position += 1
        tokens.append(.string(take { byte() != UInt8(ascii: "\"") && byte() != UInt8(ascii: "\n") }))
        position += 1
      case let first where isWord(first):
        tokens.append(.word(take { isWord(byte()) }))
      case let other:
        if other > UInt8(ascii: " ") { tokens.append(.symbol(Character(UnicodeScalar(other)))) }
        position += 1
      }
    }
    return tokens
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
      true
    default:
      byte >= 128
    }
  }
}
