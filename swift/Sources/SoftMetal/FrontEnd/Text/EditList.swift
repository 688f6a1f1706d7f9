/// Changes to a source text, which leave everything between them untouched.
///
/// Edits keep the number of lines. An edit that lies inside a blanked range is
/// dropped.
struct EditList {
  private struct Edit {
    let range: Range<Int>
    let replacement: [UInt8]
    let kind: Kind
    /// Bytes between an opening or closing edit and its partner.
    var reach = 0
  }

  /// In the order of edits at one offset.
  private enum Kind: Int {
    case closing
    case opening
    case insertion
    case blank
    case replacement
  }

  private var edits: [Edit] = []

  mutating func insert(_ text: String, at offset: Int) {
    edits.append(Edit(range: offset..<offset, replacement: Array(text.utf8), kind: .insertion))
  }

  mutating func replace(_ range: Range<Int>, with text: String) {
    edits.append(Edit(range: range, replacement: Array(text.utf8), kind: .replacement))
  }

  /// Sets text around a range. Wraps nest as their ranges do, whichever is made first.
  mutating func wrap(_ range: Range<Int>, _ before: String, _ after: String) {
    let (low, high) = (range.lowerBound, range.upperBound)
    edits.append(Edit(range: low..<low, replacement: Array(before.utf8), kind: .opening, reach: high - low))
    edits.append(Edit(range: high..<high, replacement: Array(after.utf8), kind: .closing, reach: high - low))
  }

  /// Overwrites a range with spaces; line breaks stay.
  mutating func blank(_ range: Range<Int>, in source: SourceText) {
    let spaces = source.bytes[range].map { $0 == UInt8(ascii: "\n") ? $0 : UInt8(ascii: " ") }
    edits.append(Edit(range: range, replacement: spaces, kind: .blank))
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

  /// By offset, then by kind: the shorter of two closings first, the longer of
  /// two openings; all else in the order of its making.
  private func sortedEdits() -> [Edit] {
    func order(_ edit: Edit) -> (Int, Int, Int) {
      let reach = edit.kind == .opening ? -edit.reach : edit.reach
      return (edit.range.lowerBound, edit.kind.rawValue, reach)
    }
    return edits.enumerated().sorted { left, right in
      let (a, b) = (order(left.element), order(right.element))
      return a == b ? left.offset < right.offset : a < b
    }.map(\.element)
  }
}
