/// Changes to a source text, which leave everything between them untouched.
///
/// Edits keep the number of lines. An edit that lies inside a blanked range is
/// dropped.
struct EditList {
  private struct Edit {
    let range: Range<Int>
    let replacement: [UInt8]
    let isBlank: Bool
  }

  private var edits: [Edit] = []

  mutating func insert(_ text: String, at offset: Int) {
    edits.append(Edit(range: offset..<offset, replacement: Array(text.utf8), isBlank: false))
  }

  mutating func replace(_ range: Range<Int>, with text: String) {
    edits.append(Edit(range: range, replacement: Array(text.utf8), isBlank: false))
  }

  /// Overwrites a range with spaces; line breaks stay.
  mutating func blank(_ range: Range<Int>, in source: SourceText) {
    let spaces = source.bytes[range].map { $0 == UInt8(ascii: "\n") ? $0 : UInt8(ascii: " ") }
    edits.append(Edit(range: range, replacement: spaces, isBlank: true))
  }

  /// The edited text of `range`, and where each piece of it comes from.
  func apply(to source: SourceText, in range: Range<Int>? = nil) -> EditedText {
    let range = range ?? 0..<source.bytes.count
    var result = EditedText()
    var position = range.lowerBound
    for edit in sortedEdits()
    where edit.range.lowerBound >= range.lowerBound && edit.range.upperBound <= range.upperBound {
      if edit.range.lowerBound < position { continue }
      result.copy(source.bytes[position..<edit.range.lowerBound])
      result.append(edit.replacement, from: edit.range)
      position = edit.range.upperBound
    }
    result.copy(source.bytes[position..<range.upperBound])
    return result
  }

  /// By offset; at one offset insertions first, then blanks, then the rest, each
  /// in the order of their making.
  private func sortedEdits() -> [Edit] {
    func rank(_ edit: Edit) -> Int { edit.range.isEmpty ? 0 : edit.isBlank ? 1 : 2 }
    return edits.enumerated().sorted { left, right in
      let (a, b) = (left.element, right.element)
      if a.range.lowerBound != b.range.lowerBound { return a.range.lowerBound < b.range.lowerBound }
      if rank(a) != rank(b) { return rank(a) < rank(b) }
      return left.offset < right.offset
    }.map(\.element)
  }
}
