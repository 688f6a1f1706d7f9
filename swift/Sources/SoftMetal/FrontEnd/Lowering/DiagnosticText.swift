/// The form of diagnostics: position, kind and message, the user's line, a caret.
enum DiagnosticText {
  /// The last line of a log.
  static func count(_ errors: Int) -> String {
    "\(errors) error\(errors == 1 ? "" : "s") generated.\n"
  }

  static func format(_ origin: SourceOrigin, line: Int, column: Int, kind: String, message: String) -> String {
    var text = "\(origin.label):\(line):\(column): \(kind): \(message)\n"
    let bytes = origin.source.bytes(ofLine: line)
    guard !bytes.isEmpty else { return text }
    text += String(decoding: bytes, as: UTF8.self) + "\n"
    // Tabs stay, so that the caret stands below its column.
    let indent = bytes.prefix(max(column - 1, 0)).filter { $0 & 0xC0 != 0x80 }.map { $0 == 0x09 ? "\t" : " " }
    return text + indent.joined() + "^\n"
  }
}
