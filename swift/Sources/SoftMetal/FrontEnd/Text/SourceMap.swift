/// The way from positions that clang reports back to the user's text.
struct SourceMap {
  private let origin: SourceOrigin
  private let edited: EditedText
  private let editedLines: SourceText
  private let tailOrigins: [Int]

  init(origin: SourceOrigin, edited: EditedText, tailOrigins: [Int]) {
    self.origin = origin
    self.edited = edited
    editedLines = SourceText(edited.bytes)
    self.tailOrigins = tailOrigins
  }

  /// For text that clang sees as it is.
  init(unchanged source: SourceText, origin: SourceOrigin) {
    self.init(origin: origin, edited: EditList().apply(to: source), tailOrigins: [])
  }

  /// The user's position, or nil for a place outside of the user's text.
  func position(file: String, line: Int, column: Int) -> SourceOrigin.Position? {
    if file == Tail.fileName {
      guard line >= 1, line <= tailOrigins.count else { return nil }
      return origin.position(of: tailOrigins[line - 1])
    }
    guard let inputLine = origin.inputLine(file: file, line: line), inputLine <= editedLines.lineStarts.count else {
      return nil
    }
    let start = editedLines.lineStarts[inputLine - 1]
    // A text that a message of the source's own makes up may say any column.
    let offset = start + min(max(column, 1) - 1, editedLines.bytes(ofLine: inputLine).count)
    return origin.position(of: edited.sourceOffset(of: offset))
  }

  /// A mistake of SoftMetal's own, and no fault of the source.
  func error(_ overlap: EditList.Overlap) -> ShaderCompilerError {
    let message =
      "internal error: the steps \(overlap.steps.0) and \(overlap.steps.1) of SoftMetal both rewrite this text; "
      + "please report it with the source"
    let log = DiagnosticText.format(origin.position(of: overlap.offset), kind: "error", message: message)
    return ShaderCompilerError(kind: .compileFailure, message: log + DiagnosticText.count(1))
  }

  /// The front end's own errors as one compile failure.
  func error(_ diagnostics: [SourceDiagnostic]) -> ShaderCompilerError {
    let sorted = diagnostics.sorted { $0.offset < $1.offset }
    var notes = MetalNotes()
    let log = sorted.map { diagnostic in
      let position = origin.position(of: diagnostic.offset)
      let note = notes.next(for: diagnostic.message).map { DiagnosticText.format(position, kind: "note", message: $0) }
      return DiagnosticText.format(position, kind: "error", message: diagnostic.message) + (note ?? "")
    }.joined()
    return ShaderCompilerError(kind: .compileFailure, message: log + DiagnosticText.count(sorted.count))
  }
}
