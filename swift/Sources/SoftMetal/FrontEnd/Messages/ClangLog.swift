/// Turns what clang printed into a log in terms of the user's source.
enum ClangLog {
  /// What the attribute `error` of the user's functions says of a call that is left after inlining.
  static let recursion = "which is never defined or calls itself; recursion is not supported in Metal"

  /// - Parameter headerFolder: our headers, shown as `<metal_stdlib>`.
  /// - Returns: the log, and how many errors in source text it has.
  static func translate(_ output: String, _ map: SourceMap, headerFolder: String) -> (text: String, errors: Int) {
    let reports = reports(output)
    // What follows from an error that names something of ours only repeats it.
    let own = reports.filter { !isInternal($0.head.map { withoutRequirement($0) }) }
    let isExplained = own.contains { $0.head?.isError ?? false }
    var log = ""
    var errors = 0
    var notes = MetalNotes()
    for report in isExplained ? own : reports {
      if report.head?.isError ?? false { errors += 1 }
      log += text(of: report, map, headerFolder, &notes)
    }
    if errors > 0 { log += DiagnosticText.count(errors) }
    return (log, errors)
  }

  /// An error or a warning with the notes that explain it.
  private struct Report {
    /// Nil for lines that belong to no diagnostic.
    var head: Diagnostic?
    var notes: [Diagnostic] = []
    var lines: [Substring] = []
  }

  private static func reports(_ output: String) -> [Report] {
    var reports = [Report()]
    // The left side of an assignment stands in the lowered text more than once.
    var seen: Set<Substring> = []
    var isInNote = false
    for line in output.split(separator: "\n", omittingEmptySubsequences: true) {
      if line.hasPrefix("In file included from ") || line.hasSuffix(" generated.") { continue }
      guard seen.insert(line).inserted else { continue }
      let diagnostic = parse(line)
      if let diagnostic, diagnostic.kind != "note" {
        reports.append(Report(head: diagnostic))
      } else if let diagnostic {
        reports[reports.count - 1].notes.append(diagnostic)
      } else if !isInNote {
        reports[reports.count - 1].lines.append(line)
      }
      isInNote = diagnostic.map { $0.kind == "note" } ?? isInNote
    }
    return reports
  }

  private static func text(
    of report: Report, _ map: SourceMap, _ headerFolder: String, _ notes: inout MetalNotes
  ) -> String {
    var log = ""
    if var head = report.head {
      // An error in a header is one of the line that led there.
      if position(of: head, map) == nil, let cause = report.notes.first(where: { position(of: $0, map) != nil }) {
        head.file = cause.file
        head.line = cause.line
        head.column = cause.column
      }
      log += text(of: head, map, headerFolder)
      let message = MetalSpelling.of(String(withoutRequirement(head)), headerFolder)
      if head.isError, let note = notes.next(for: message), let position = position(of: head, map) {
        log += DiagnosticText.format(position, kind: "note", message: note)
      }
    }
    for line in report.lines { log += MetalSpelling.of(String(line), headerFolder) + "\n" }
    // One of the language's own operators stands for the hundred that clang lists.
    let ofLanguage = report.notes.first { $0.message.hasPrefix(builtIn) && !isInternal($0.message) }?.message
    for note in report.notes where !isInternal(note.message) && !(report.head?.isOurs ?? false) && !note.isOurs {
      if note.message.hasPrefix(builtIn), note.message != ofLanguage { continue }
      log += text(of: note, map, headerFolder)
    }
    return log
  }

  private static let builtIn = "built-in candidate "

  private static func text(of diagnostic: Diagnostic, _ map: SourceMap, _ headerFolder: String) -> String {
    let message = MetalSpelling.of(String(withoutRequirement(diagnostic)), headerFolder)
    let kind = diagnostic.kind == "fatal error" ? "error" : diagnostic.kind
    if let position = position(of: diagnostic, map) {
      return DiagnosticText.format(position, kind: kind, message: message)
    }
    let file = displayName(diagnostic.file)
    return "\(file):\(diagnostic.line):\(diagnostic.column): \(kind): \(message)\n"
  }

  /// The message alone of an assertion of ours, which follows its condition.
  private static func withoutRequirement(_ diagnostic: Diagnostic) -> Substring {
    guard diagnostic.isOurs, diagnostic.message.hasPrefix("static assertion failed") else { return diagnostic.message }
    let text = Array(diagnostic.message.utf8)
    for separator in ["': ", "failed: "] {
      if let match = MetalSpelling.find(Array(separator.utf8), in: text, from: 0) {
        return Substring(decoding: text[(match + separator.utf8.count)...], as: UTF8.self)
      }
    }
    return diagnostic.message
  }

  private static func position(of diagnostic: Diagnostic, _ map: SourceMap) -> SourceOrigin.Position? {
    map.position(file: diagnostic.file, line: diagnostic.line, column: diagnostic.column)
  }

  /// Whether a message is about names of the lowered text, which the user's has not.
  private static func isInternal(_ message: Substring?) -> Bool {
    guard let message else { return false }
    // `sm_bool<2>` is shown as `bool2`.
    let bytes = Array(MetalSpelling.replace(String(message), "sm_bool<", "").utf8)
    // Metal has no such numbers.
    if message.hasPrefix(builtIn), ["double", "__float128", "__int128"].contains(where: { message.contains($0) }) {
      return true
    }
    let names = ["softmetal::", "'SM_", "'sm_", " sm_", "SmOther", "require_constant_initialization", "'diagnose_if'"]
    return names.contains { MetalSpelling.find(Array($0.utf8), in: bytes, from: 0) != nil }
  }

  private struct Diagnostic {
    var file: String
    var line: Int
    var column: Int
    let kind: String
    let message: Substring

    /// Whether it is about a condition of SoftMetal's own.
    let isOurs: Bool

    var isError: Bool { kind.hasSuffix("error") }
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
      return Diagnostic(
        file: file, line: lineNumber, column: column, kind: kind, message: message,
        isOurs: file == Tail.fileName || file.contains("softmetal_") || file.hasSuffix("/metal_types"))
    }
    return nil
  }

  private static func displayName(_ file: String) -> String {
    guard let slash = file.lastIndex(of: "/") else { return file }
    return "<\(file[file.index(after: slash)...])>"
  }
}
