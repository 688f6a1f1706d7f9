/// Turns what clang printed into a log in terms of the user's source.
enum ClangLog {
  /// - Parameter headerFolder: our headers, shown as `<metal_stdlib>`.
  /// - Returns: the log, and how many errors in source text it has.
  static func translate(_ output: String, _ map: SourceMap, headerFolder: String) -> (text: String, errors: Int) {
    var log = ""
    var errors = 0
    // The left side of an assignment stands in the lowered text more than once.
    var seen: Set<Substring> = []
    for line in output.split(separator: "\n", omittingEmptySubsequences: true) {
      if line.hasPrefix("In file included from ") || line.hasSuffix(" generated.") { continue }
      guard seen.insert(line).inserted else { continue }
      guard let diagnostic = parse(line) else {
        log += prettify(String(line), headerFolder) + "\n"
        continue
      }
      let message = prettify(String(diagnostic.message), headerFolder)
      let kind = diagnostic.kind == "fatal error" ? "error" : diagnostic.kind
      if kind == "error" { errors += 1 }
      if let position = map.position(file: diagnostic.file, line: diagnostic.line, column: diagnostic.column) {
        log += DiagnosticText.format(position, kind: kind, message: message)
      } else {
        let file = displayName(diagnostic.file)
        log += "\(file):\(diagnostic.line):\(diagnostic.column): \(kind): \(message)\n"
      }
    }
    if errors > 0 { log += DiagnosticText.count(errors) }
    return (log, errors)
  }

  private struct Diagnostic {
    let file: String
    let line: Int
    let column: Int
    let kind: String
    let message: Substring
  }

  private static let kinds = ["fatal error", "error", "warning", "note"]

  /// Reads `file:line:column: kind: message`.
  private static func parse(_ line: Substring) -> Diagnostic? {
    let parts = line.split(separator: ":", omittingEmptySubsequences: false)
    for index in parts.indices where index >= 3 && index < parts.count - 1 {
      let kind = String(parts[index].drop { $0 == " " })
      guard kinds.contains(kind), let column = Int(parts[index - 1]), let lineNumber = Int(parts[index - 2]) else {
        continue
      }
      let file = parts[..<(index - 2)].joined(separator: ":")
      let message = line[parts[index].endIndex...].dropFirst().drop { $0 == " " }
      return Diagnostic(file: file, line: lineNumber, column: column, kind: kind, message: message)
    }
    return nil
  }

  private static func displayName(_ file: String) -> String {
    guard let slash = file.lastIndex(of: "/") else { return file }
    return "<\(file[file.index(after: slash)...])>"
  }

  /// Shows types as the user writes them.
  private static func prettify(_ message: String, _ headerFolder: String) -> String {
    var text = message
    for (from, to) in [
      (headerFolder + "/", ""), ("const __attribute__((address_space(2)))", "constant"),
      ("__attribute__((address_space(1)))", "device"), ("__attribute__((address_space(2)))", "constant"),
      ("__attribute__((address_space(3)))", "threadgroup"), ("_Float16", "half"), ("__bf16", "bfloat"),
      ("sm_bool<2>", "bool2"), ("sm_bool<3>", "bool3"), ("sm_bool<4>", "bool4"),
    ] {
      text = replace(text, from, to)
    }
    return text
  }

  private static func replace(_ text: String, _ from: String, _ to: String) -> String {
    let bytes = Array(text.utf8)
    let pattern = Array(from.utf8)
    guard !pattern.isEmpty, bytes.count >= pattern.count else { return text }
    var result: [UInt8] = []
    var position = 0
    while position < bytes.count {
      if position + pattern.count <= bytes.count, bytes[position..<position + pattern.count].elementsEqual(pattern) {
        result += Array(to.utf8)
        position += pattern.count
      } else {
        result.append(bytes[position])
        position += 1
      }
    }
    return String(decoding: result, as: UTF8.self)
  }
}
