/// Puts the text of other sources in the place of `#include "NAME"`, since a shader that is compiled from memory has no
/// include path: of sources that the caller has registered, and of the library's own headers. No file is read.
///
/// `#line` keeps the compiler's messages at the file and line of each. `#pragma once` has no meaning inside a file, so
/// a guard does its work; behind a copy that no condition is around, further ones are left out. A name that is not known
/// is left for the compiler: it may be one of the language's headers.
package struct ShaderInclude {
  /// Names of sources that a text includes, directly or not.
  struct Names {
    fileprivate(set) var found: Set<String> = []
    /// With those that were looked for and not found.
    fileprivate(set) var sought: Set<String> = []
  }

  private(set) var names = Names()
  private let texts: [String: String]
  /// The sources that are being expanded, outermost first.
  private var open: [String] = []
  /// Numbers of the guards, by name.
  private var guards: [String: Int] = [:]
  /// Conditions around the line that is expanded, but for the guards.
  private var conditions = 0
  /// Texts to be included once that stand under no condition.
  private var placed: Set<String> = []
  private var size = 0
  private var isTooLarge = false

  /// Bytes that a text may have with all that it includes.
  private static let sizeLimit = 64 << 20
  private static let depthLimit = 200

  /// The library's headers.
  private static let headers: [String: String] = Dictionary(
    uniqueKeysWithValues: EmbeddedTexts.files.filter { $0.name.hasSuffix(".h") }.map { ($0.name, "\($0.text)") })

  /// - Parameter texts: registered sources by name.
  init(_ texts: [String: String]) {
    self.texts = texts
  }

  /// The source called `name` with all that it includes.
  mutating func expand(_ source: String, name: String) -> String {
    open.append(name)
    defer { open.removeLast() }
    size += source.utf8.count
    var lines = DirectiveLines(source)
    var label = Self.quote(name)
    var number = 0
    var result = "#line 1 \(label)\n"
    result.reserveCapacity(source.utf8.count + 64)
    while let line = lines.next() {
      number += 1
      switch line.directive {
      case .line(let next, let file):
        number = next - 1
        label = file ?? label
        result += line.text
      case .include(let path, let isOnce, let rest):
        if let text = include(path, isOnce: isOnce, from: name) {
          result += text
          result += "#line \(number) \(label)\n\(rest)"
        } else {
          result += line.text
        }
      case .once: break
      case .condition:
        conditions += 1
        result += line.text
      case .conditionEnd:
        conditions -= 1
        result += line.text
      case nil: result += line.text
      }
      result += "\n"
    }
    if isTooLarge {
      return "#line 1 \(label)\n"
        + Self.error("with all that is included the source has more than \(Self.sizeLimit >> 20) MiB")
    }
    return result
  }

  /// Finds the names that the source called `name` includes: each text is read once, where `expand` puts it in as often as
  /// it is included.
  mutating func findNames(_ source: String, name: String) {
    var pending = [(name: name, text: source)]
    while let (name, text) = pending.popLast() {
      var lines = DirectiveLines(text)
      while let line = lines.next() {
        guard case .include(let path, _, _) = line.directive, let header = find(path, from: name) else { continue }
        if names.found.insert(header.name).inserted { pending.append(header) }
      }
    }
  }

  /// What stands in the place of an include directive; nil where no source has the name.
  private mutating func include(_ path: String, isOnce: Bool, from name: String) -> String? {
    guard let (header, text) = find(path, from: name) else { return nil }
    names.found.insert(header)
    let isOnce = isOnce || DirectiveLines.isOnce(text)
    if open.contains(header) {
      if isOnce { return "" }
      let chain = (open.drop { $0 != header } + [header]).joined(separator: "' includes '")
      let error = Self.error("'\(chain)', in a circle")
      // A guard of the text's own keeps the compiler from coming by.
      return DirectiveLines.guardMacro(of: text).map { "#ifndef \($0)\n\(error)#endif\n" } ?? error
    }
    if isOnce, placed.contains(header) { return "" }
    if open.count >= Self.depthLimit { return Self.error("'\(header)' is included \(open.count) deep") }
    if size + text.utf8.count > Self.sizeLimit { isTooLarge = true }
    if isTooLarge { return "" }
    guard isOnce else { return expand(text, name: header) }
    let isUnconditional = conditions == 0
    defer { if isUnconditional { placed.insert(header) } }
    let number = guards[header] ?? guards.count
    guards[header] = number
    // A label of its own, so that a line number of `header` refers to one place.
    return "#line 1 \(Self.quote("guard of " + header))\n#ifndef MA_INCLUDED_\(number)\n#define MA_INCLUDED_\(number)\n"
      + expand(text, name: header) + "#endif\n"
  }

  /// A source by its path from the folder of the one that includes it, or else by its name.
  private mutating func find(_ path: String, from name: String) -> (name: String, text: String)? {
    for candidate in [Self.normalized(Self.folder(of: name) + path), path] {
      names.sought.insert(candidate)
      if let text = texts[candidate] { return (candidate, text) }
    }
    return Self.headers[path].map { (path, $0) }
  }

  /// The names under which a source called `name` looks for what it includes from its own folder.
  package static func paths(in source: String, name: String) -> [String] {
    var lines = DirectiveLines(source)
    var paths: [String] = []
    while let line = lines.next() {
      if case .include(let path, _, _) = line.directive { paths.append(normalized(folder(of: name) + path)) }
    }
    return paths
  }

  private static func folder(of name: String) -> Substring {
    name.lastIndex(of: "/").map { name[...$0] } ?? ""
  }

  /// A path without `.`, and without `..` where a folder stands before it.
  private static func normalized(_ path: String) -> String {
    var parts: [Substring] = []
    for part in path.split(separator: "/", omittingEmptySubsequences: false) {
      if part == "." { continue }
      if part == "..", let last = parts.last, last != "..", last != "" {
        parts.removeLast()
      } else {
        parts.append(part)
      }
    }
    return parts.joined(separator: "/")
  }

  private static func error(_ message: String) -> String {
    let text = message.map { $0 == "\n" || $0 == "\r" || $0 == "\\" ? " " : String($0) }.joined()
    return "#error \(text)\n"
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
