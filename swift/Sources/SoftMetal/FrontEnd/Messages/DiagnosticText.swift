/// The form of diagnostics: position, kind and message, the user's line, a caret.
enum DiagnosticText {
  /// The last line of a log.
  static func count(_ errors: Int) -> String {
    "\(errors) error\(errors == 1 ? "" : "s") generated.\n"
  }

  static func format(_ position: SourceOrigin.Position, kind: String, message: String) -> String {
    let text = "\(position.file):\(position.line):\(position.column): \(kind): \(message)\n"
    guard !position.text.isEmpty else { return text }
    // Tabs stay, so that the caret stands below its column.
    let before = position.text.prefix(max(position.column - 1, 0)).filter { $0 & 0xC0 != 0x80 }
    let indent = before.map { $0 == 0x09 ? "\t" : " " }.joined()
    return text + String(decoding: position.text, as: UTF8.self) + "\n" + indent + "^\n"
  }
}
