/// The text of a macro's value, which stands in one line of its own: nothing of it may swallow the lines behind.
struct MacroValue {
  private let bytes: [UInt8]
  private var position = 0

  /// What of a value goes on behind its end, in words; nil where nothing does.
  static func unfinished(_ value: String) -> String? {
    var text = MacroValue(value)
    return text.unfinished()
  }

  private init(_ value: String) {
    bytes = Array(value.utf8)
  }

  private mutating func unfinished() -> String? {
    if bytes.contains(where: { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }) { return "a line break" }
    // The preprocessor looks past blanks for the end of the line.
    if bytes.last(where: { !Self.isBlank($0) }) == UInt8(ascii: "\\") { return "a backslash at the end" }
    while position < bytes.count {
      if starts("//") { return nil }
      if starts("/*") {
        guard skip(past: "*/", from: position + 2) else { return "a comment" }
      } else if Self.isWord(bytes[position]) {
        let prefix = word()
        if isRawString(after: prefix), !skipRawString() { return "a raw string" }
      } else if bytes[position] == UInt8(ascii: "\"") || bytes[position] == UInt8(ascii: "'") {
        skipQuoted()
      } else {
        position += 1
      }
    }
    return nil
  }

  /// A name, or a number, which may have quotes between its digits.
  private mutating func word() -> ArraySlice<UInt8> {
    let start = position
    let isNumber = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(bytes[start])
    while position < bytes.count {
      let isSeparator = isNumber && bytes[position] == UInt8(ascii: "'") && position + 1 < bytes.count
      guard Self.isWord(bytes[isSeparator ? position + 1 : position]) else { break }
      position += 1
    }
    return bytes[start..<position]
  }

  private func isRawString(after prefix: ArraySlice<UInt8>) -> Bool {
    position < bytes.count && bytes[position] == UInt8(ascii: "\"")
      && ["R", "LR", "uR", "UR", "u8R"].contains(String(decoding: prefix, as: UTF8.self))
  }

  /// `"name(text)name"`; false where it does not end.
  private mutating func skipRawString() -> Bool {
    guard let open = bytes[position...].firstIndex(of: UInt8(ascii: "(")) else { return false }
    let name = String(decoding: bytes[(position + 1)..<open], as: UTF8.self)
    return skip(past: ")\(name)\"", from: open + 1)
  }

  /// A string or a character; without its second quote it ends with the line.
  private mutating func skipQuoted() {
    let quote = bytes[position]
    position += 1
    while position < bytes.count, bytes[position] != quote { position += bytes[position] == UInt8(ascii: "\\") ? 2 : 1 }
    position += 1
  }

  private mutating func skip(past end: String, from start: Int) -> Bool {
    position = start
    while position < bytes.count {
      if starts(end) {
        position += end.utf8.count
        return true
      }
      position += 1
    }
    return false
  }

  private func starts(_ text: String) -> Bool {
    position <= bytes.count && bytes[position...].starts(with: text.utf8)
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || (UInt8(ascii: "\t")...UInt8(ascii: "\r")).contains(byte)
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: "_") || byte >= 0x80 || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
      || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }
}
