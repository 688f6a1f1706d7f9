/// Splits C++ source into tokens.
///
/// `>` stays a token of its own, so that `>>` can close two template argument
/// lists. Unterminated literals and comments end at the line's or file's end:
/// the compiler reports them.
struct Tokenizer {
  private let bytes: UnsafeBufferPointer<UInt8>
  private let end: Int
  private var position: Int
  private var tokens: [Token] = []
  private var endsInComment = false

  /// The tokens of `source` in `range` (by default all of it). A range that
  /// starts inside a line has no preprocessor directive on that line.
  static func tokenize(_ source: [UInt8], in range: Range<Int>? = nil) -> [Token] {
    scan(source, in: range).tokens
  }

  /// The tokens, and whether a comment that has no end is behind them.
  static func scan(_ source: [UInt8], in range: Range<Int>? = nil) -> (tokens: [Token], endsInComment: Bool) {
    source.withUnsafeBufferPointer { bytes in
      let range = range ?? 0..<bytes.count
      let startsLine = range.lowerBound == 0 || bytes[range.lowerBound - 1] == newline
      var tokenizer = Tokenizer(bytes: bytes, range: range)
      tokenizer.run(startsLine: startsLine)
      return (tokenizer.tokens, tokenizer.endsInComment)
    }
  }

  private init(bytes: UnsafeBufferPointer<UInt8>, range: Range<Int>) {
    self.bytes = bytes
    end = range.upperBound
    position = range.lowerBound
    tokens.reserveCapacity(range.count / 4)
  }

  private func peek(_ distance: Int = 0) -> UInt8 {
    position + distance < end ? bytes[position + distance] : 0
  }

  private mutating func run(startsLine: Bool) {
    var lineStart = startsLine
    while position < end {
      let byte = bytes[position]
      if byte == Self.newline {
        lineStart = true
        position += 1
      } else if Self.isSpace(byte) || isLineContinuation {
        position += 1
      } else if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "/") {
        skipToLineEnd()
      } else if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
        skipBlockComment()
      } else if byte == UInt8(ascii: "#"), lineStart {
        directive()
      } else {
        lineStart = false
        token(byte)
      }
    }
  }

  private mutating func token(_ byte: UInt8) {
    let start = position
    if Self.isIdentifierStart(byte) {
      identifier()
    } else if Self.isDigit(byte) || (byte == UInt8(ascii: ".") && Self.isDigit(peek(1))) {
      number()
    } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
      quoted(from: start)
    } else {
      punctuation()
    }
  }

  private mutating func append(_ kind: Token.Kind, from start: Int) {
    let text: String
    switch kind {
    case .identifier, .number, .punctuation:
      text = String(decoding: UnsafeBufferPointer(rebasing: bytes[start..<position]), as: UTF8.self)
    case .string, .character, .directive:
      text = ""
    }
    tokens.append(Token(kind: kind, range: start..<position, text: text))
  }

  // MARK: White space and preprocessor lines

  /// Whether a backslash here joins this line to the next.
  private var isLineContinuation: Bool {
    guard bytes[position] == UInt8(ascii: "\\") else { return false }
    return peek(1) == Self.newline || (peek(1) == Self.carriageReturn && peek(2) == Self.newline)
  }

  private mutating func skipContinuation() {
    position += peek(1) == Self.newline ? 2 : 3
  }

  private mutating func skipToLineEnd() {
    while position < end, bytes[position] != Self.newline {
      if isLineContinuation { skipContinuation() } else { position += 1 }
    }
  }

  private mutating func skipBlockComment() {
    position += 2
    while position < end {
      if bytes[position] == UInt8(ascii: "*"), peek(1) == UInt8(ascii: "/") {
        position += 2
        return
      }
      position += 1
    }
    endsInComment = true
  }

  private mutating func directive() {
    let start = position
    while position < end, bytes[position] != Self.newline {
      let byte = bytes[position]
      if isLineContinuation {
        skipContinuation()
      } else if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "/") {
        skipToLineEnd()
      } else if byte == UInt8(ascii: "/"), peek(1) == UInt8(ascii: "*") {
        skipBlockComment()
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        skipQuoted()
      } else {
        position += 1
      }
    }
    append(.directive, from: start)
  }

  // MARK: Literals, names and punctuators

  private mutating func identifier() {
    let start = position
    while position < end, Self.isIdentifierPart(bytes[position]) { position += 1 }
    let quote = peek()
    guard quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"), position - start <= 3 else {
      append(.identifier, from: start)
      return
    }
    switch String(decoding: UnsafeBufferPointer(rebasing: bytes[start..<position]), as: UTF8.self) {
    case "R", "LR", "uR", "UR", "u8R":
      if quote == UInt8(ascii: "\"") {
        skipRawString()
        append(.string, from: start)
      } else {
        append(.identifier, from: start)
      }
    case "L", "u", "U", "u8":
      quoted(from: start)
    default:
      append(.identifier, from: start)
    }
  }

  private mutating func number() {
    let start = position
    while position < end {
      let byte = bytes[position]
      if byte == UInt8(ascii: "e") || byte == UInt8(ascii: "E") || byte == UInt8(ascii: "p")
        || byte == UInt8(ascii: "P"),
        peek(1) == UInt8(ascii: "+") || peek(1) == UInt8(ascii: "-")
      {
        position += 2
      } else if Self.isIdentifierPart(byte) || byte == UInt8(ascii: ".") {
        position += 1
      } else if byte == UInt8(ascii: "'"), Self.isIdentifierPart(peek(1)) {
        position += 2
      } else {
        break
      }
    }
    append(.number, from: start)
  }

  private mutating func quoted(from start: Int) {
    let kind: Token.Kind = bytes[position] == UInt8(ascii: "\"") ? .string : .character
    skipQuoted()
    append(kind, from: start)
  }

  private mutating func skipQuoted() {
    let quote = bytes[position]
    position += 1
    while position < end, bytes[position] != Self.newline {
      let byte = bytes[position]
      if isLineContinuation {
        skipContinuation()
      } else if byte == UInt8(ascii: "\\") {
        position = min(position + 2, end)
      } else {
        position += 1
        if byte == quote { return }
      }
    }
  }

  /// Skips `"delimiter(...)delimiter"`, the part of a raw string after its R.
  private mutating func skipRawString() {
    let delimiterStart = position + 1
    var open = delimiterStart
    while open < end, bytes[open] != UInt8(ascii: "("), bytes[open] != Self.newline { open += 1 }
    guard open < end, bytes[open] == UInt8(ascii: "(") else {
      skipQuoted()
      return
    }
    let delimiter = bytes[delimiterStart..<open]
    position = open + 1
    while position < end {
      if bytes[position] == UInt8(ascii: ")") {
        let quote = position + 1 + delimiter.count
        if quote < end, bytes[quote] == UInt8(ascii: "\""), bytes[position + 1..<quote].elementsEqual(delimiter) {
          position = quote + 1
          return
        }
      }
      position += 1
    }
  }

  private mutating func punctuation() {
    let start = position
    position += Self.punctuatorLength(bytes[start], peek(1), peek(2))
    append(.punctuation, from: start)
  }

  private static func punctuatorLength(_ first: UInt8, _ second: UInt8, _ third: UInt8) -> Int {
    switch (first, second) {
    case (UInt8(ascii: "."), UInt8(ascii: ".")) where third == UInt8(ascii: "."): return 3
    case (UInt8(ascii: "<"), UInt8(ascii: "<")): return third == UInt8(ascii: "=") ? 3 : 2
    case (UInt8(ascii: ":"), UInt8(ascii: ":")), (UInt8(ascii: "-"), UInt8(ascii: ">")),
      (UInt8(ascii: "&"), UInt8(ascii: "&")), (UInt8(ascii: "|"), UInt8(ascii: "|")),
      (UInt8(ascii: "+"), UInt8(ascii: "+")), (UInt8(ascii: "-"), UInt8(ascii: "-")),
      (UInt8(ascii: "#"), UInt8(ascii: "#")):
      return 2
    case (_, UInt8(ascii: "=")): return assignable.contains(first) ? 2 : 1
    default: return 1
    }
  }

  /// Characters that form one punctuator with a following `=`.
  private static let assignable = Set("=!<>+-*/%&|^".utf8)

  private static let newline = UInt8(ascii: "\n")
  private static let carriageReturn = UInt8(ascii: "\r")

  static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (byte >= 0x09 && byte <= 0x0D)
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9")
  }

  private static func isIdentifierStart(_ byte: UInt8) -> Bool {
    let letter = byte | 0x20
    return (letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "z")) || byte == UInt8(ascii: "_")
      || byte == UInt8(ascii: "$") || byte >= 0x80
  }

  private static func isIdentifierPart(_ byte: UInt8) -> Bool {
    isIdentifierStart(byte) || isDigit(byte)
  }
}
