/// The lines of a text with the directives that decide on what it includes. Those in comments are none.
struct DirectiveLines: IteratorProtocol {
  enum Directive {
    /// `#include "PATH"`, or `#import`, which includes a text once; and what follows in the line.
    case include(String, isOnce: Bool, rest: Substring)
    /// `#pragma once`
    case once
    /// `#line 12 "FILE"`: the number of the next line, and the file in its quotes.
    case line(Int, file: String?)
    /// `#if`, `#ifdef` or `#ifndef`; and `#endif`
    case condition
    case conditionEnd
  }

  struct Line {
    let text: Substring
    let directive: Directive?
  }

  private var rest: Substring.UTF8View?
  private var isInComment = false

  init(_ text: String) {
    rest = text[...].utf8
  }

  mutating func next() -> Line? {
    guard let text = rest else { return nil }
    let end = text.firstIndex(of: UInt8(ascii: "\n"))
    rest = end.map { text[text.index(after: $0)...] }
    let line = end.map { text[..<$0] } ?? text
    let directive = isInComment ? nil : Self.directive(line)
    isInComment = Self.endsInComment(line, isInComment: isInComment)
    return Line(text: Substring(line), directive: directive)
  }

  static func isOnce(_ text: String) -> Bool {
    var lines = DirectiveLines(text)
    while let line = lines.next() {
      if case .once = line.directive { return true }
    }
    return false
  }

  /// The macro of a text that begins with `#ifndef MACRO` and `#define MACRO`.
  static func guardMacro(of text: String) -> Substring? {
    var lines = DirectiveLines(text)
    var macro: Substring?
    while true {
      let wasInComment = lines.isInComment
      guard let line = lines.next() else { return nil }
      guard !wasInComment, line.text.utf8.first(where: { !isBlank($0) }) == UInt8(ascii: "#") else { continue }
      if let macro {
        let defined = after(["#", "define"], line.text.utf8)
        return defined.map { word(Substring($0)) } == macro ? macro : nil
      }
      guard let condition = after(["#", "ifndef"], line.text.utf8) else { return nil }
      macro = word(Substring(condition))
    }
  }

  private static func word(_ text: Substring) -> Substring {
    text.drop { $0 == " " || $0 == "\t" }.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
  }

  // MARK: Directives

  private static func directive(_ line: Substring.UTF8View) -> Directive? {
    guard line.first(where: { !isBlank($0) }) == UInt8(ascii: "#") else { return nil }
    for (keyword, isOnce) in [("include", false), ("import", true)] {
      guard let rest = after(["#", keyword, "\""], line), let end = rest.firstIndex(of: UInt8(ascii: "\"")) else {
        continue
      }
      return .include(String(Substring(rest[..<end])), isOnce: isOnce, rest: Substring(rest[rest.index(after: end)...]))
    }
    if let rest = after(["#", "pragma", "once"], line) {
      return rest.first.map { isBlank($0) || $0 == UInt8(ascii: "/") } ?? true ? .once : nil
    }
    if after(["#", "if"], line) != nil { return .condition }
    if after(["#", "endif"], line) != nil { return .conditionEnd }
    guard let rest = after(["#", "line"], line) else { return nil }
    let words = Substring(rest).split(separator: " ", maxSplits: 1)
    guard let number = words.first.flatMap({ UInt32($0) }) else { return nil }
    return .line(Int(number), file: words.count > 1 && words[1].hasPrefix("\"") ? String(words[1]) : nil)
  }

  /// What follows these words, with blanks before each of them.
  private static func after(_ words: [String], _ line: Substring.UTF8View) -> Substring.UTF8View? {
    var rest = line
    for word in words {
      rest = rest.drop(while: isBlank)
      guard rest.starts(with: word.utf8) else { return nil }
      rest = rest.dropFirst(word.utf8.count)
    }
    return rest
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
  }

  /// Whether a comment of several lines goes on behind a line.
  private static func endsInComment(_ line: Substring.UTF8View, isInComment: Bool) -> Bool {
    guard isInComment || line.contains(UInt8(ascii: "/")) else { return false }
    var isInComment = isInComment
    var quote: UInt8?
    var before: UInt8 = 0
    for byte in line {
      if isInComment {
        if before == UInt8(ascii: "*"), byte == UInt8(ascii: "/") {
          isInComment = false
          before = 0
          continue
        }
      } else if let open = quote {
        if before == UInt8(ascii: "\\") {
          before = 0
          continue
        }
        if byte == open { quote = nil }
      } else if before == UInt8(ascii: "/"), byte == UInt8(ascii: "/") {
        return false
      } else if before == UInt8(ascii: "/"), byte == UInt8(ascii: "*") {
        isInComment = true
        before = 0
        continue
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      }
      before = byte
    }
    return isInComment
  }
}
