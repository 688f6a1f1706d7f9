/// The headers that a shader may include besides Metal's own.
enum ShaderInclude {
  /// Their texts by name, without `#pragma once`, which has no meaning inside a
  /// file: the registry guards them instead.
  private static let headers: [String: String] = Dictionary(
    uniqueKeysWithValues: EmbeddedTexts.files.filter { $0.name.hasSuffix(".h") }.map { name, text in
      let lines = "\(text)".split(separator: "\n", omittingEmptySubsequences: false)
      return (name, lines.map { $0.hasPrefix("#pragma once") ? "" : String($0) }.joined(separator: "\n"))
    })

  /// The source with each `#include "HEADER"` of these headers replaced by the
  /// header's text, since a shader that is compiled from memory has no include
  /// path. Each header is included at most once. `#line` keeps the
  /// compiler's messages at the file and line of each; an unknown header is
  /// left for the compiler to report.
  static func expand(_ source: String, name: String) -> String {
    var label = quote(name)
    var number = 0
    var result = "#line 1 \(label)\n"
    for line in source.split(separator: "\n", omittingEmptySubsequences: false) {
      number += 1
      if let next = lineDirective(line) {
        number = next.number - 1
        label = next.label ?? label
      }
      if let (header, rest) = include(in: line), let text = headers[header] {
        let guardName = "MA_INCLUDED_" + header.map { $0 == "." || $0 == "/" ? "_" : $0 }
        // A separate label, so that a line number of `name` refers to one place.
        result += "#line 1 \"guard of \(header)\"\n#ifndef \(guardName)\n#define \(guardName)\n"
        result += expand(text, name: header)
        result += "#endif\n#line \(number) \(label)\n\(rest)\n"
      } else {
        result += line
        result += "\n"
      }
    }
    return result
  }

  /// The header between the quotes of an include directive, and what follows it in the line.
  private static func include(in line: Substring) -> (header: String, rest: Substring)? {
    guard let rest = rest(of: line, behind: ["#", "include", "\""]), let end = rest.firstIndex(of: "\"") else {
      return nil
    }
    return (String(rest[..<end]), rest[rest.index(after: end)...])
  }

  /// What a line directive says of the next line; the label in its quotes.
  private static func lineDirective(_ line: Substring) -> (number: Int, label: String?)? {
    guard let rest = rest(of: line, behind: ["#", "line"]) else { return nil }
    let words = rest.split(separator: " ", maxSplits: 1)
    guard let number = words.first.flatMap({ UInt32($0) }) else { return nil }
    return (Int(number), words.count > 1 && words[1].hasPrefix("\"") ? String(words[1]) : nil)
  }

  /// What follows these words, with blanks before each of them.
  private static func rest(of line: Substring, behind words: [String]) -> Substring? {
    var rest = line
    for word in words {
      rest = rest.drop { $0 == " " || $0 == "\t" }
      guard rest.hasPrefix(word) else { return nil }
      rest = rest.dropFirst(word.count)
    }
    return rest
  }

  private static func quote(_ name: String) -> String {
    let escaped = name.flatMap { character -> [Character] in
      switch character {
      case "\"", "\\": ["\\", character]
      case "\n", "\r": [" "]
      default: [character]
      }
    }
    return "\"\(String(escaped))\""
  }
}
