/// The way from positions that clang reports back to the user's text.
struct SourceMap {
  let origin: SourceOrigin
  private let input: SourceText
  private let edited: EditedText
  private let editedLines: SourceText
  private let tailOrigins: [Int]

  init(origin: SourceOrigin, input: SourceText, edited: EditedText, tailOrigins: [Int]) {
    self.origin = origin
    self.input = input
    self.edited = edited
    editedLines = SourceText(edited.bytes)
    self.tailOrigins = tailOrigins
  }

  /// For text that clang sees as it is.
  init(unchanged source: SourceText, label: String) {
    self.init(
      origin: SourceOrigin(label: label, source: source), input: source, edited: EditList().apply(to: source),
      tailOrigins: [])
  }

  /// The user's line and column, or nil for a place outside of the user's text.
  func userPosition(file: String, line: Int, column: Int) -> (line: Int, column: Int)? {
    if file == Tail.fileName {
      guard line >= 1, line <= tailOrigins.count else { return nil }
      return origin.userPosition(of: tailOrigins[line - 1], in: input)
    }
    guard file == origin.label || file == origin.escapedLabel else { return nil }
    guard let inputLine = origin.inputLine(ofUserLine: line), inputLine <= editedLines.lineStarts.count else {
      return (line, max(column, 1))
    }
    let start = editedLines.lineStarts[inputLine - 1]
    let offset = edited.sourceOffset(of: min(start + max(column, 1) - 1, max(edited.bytes.count - 1, 0)))
    return origin.userPosition(of: offset, in: input)
  }

  /// The front end's own errors as one compile failure.
  func error(_ diagnostics: [SourceDiagnostic]) -> ShaderCompilerError {
    let sorted = diagnostics.sorted { $0.offset < $1.offset }
    var log = sorted.map { diagnostic in
      let position = origin.userPosition(of: diagnostic.offset, in: input)
      return DiagnosticText.format(
        origin, line: position.line, column: position.column, kind: "error", message: diagnostic.message)
    }.joined()
    log += DiagnosticText.count(sorted.count)
    return ShaderCompilerError(kind: .compileFailure, message: log)
  }
}
