/// Changes to a source text, which leave everything between them untouched.
///
/// Edits keep the number of lines. An edit that lies inside a blanked range is
/// dropped; edits that overlap otherwise are a mistake of the steps that made them.
struct EditList {
  /// The step that makes the edits from now on.
  var step = ""

  private struct Edit {
    let range: Range<Int>
    let step: String
    let replacement: [UInt8]
    let kind: Kind
    /// Bytes between an opening or closing edit and its partner.
    var reach = 0

    var isWrap: Bool { kind == .opening || kind == .closing }
    /// Of an opening or closing edit.
    var wrapped: Range<Int> {
      kind == .opening
        ? range.lowerBound..<range.lowerBound + reach : range.lowerBound - reach..<range.lowerBound
    }
  }

  /// Whether one of the ranges, which are sorted, holds all of `range`.
  private static func contains(_ range: Range<Int>, in ranges: [Range<Int>]) -> Bool {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if ranges[middle].lowerBound <= range.lowerBound { low = middle + 1 } else { high = middle }
    }
    return low > 0 && ranges[low - 1].upperBound >= range.upperBound
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
    edits.append(Edit(range: offset..<offset, step: step, replacement: Array(text.utf8), kind: .insertion))
  }

  mutating func replace(_ range: Range<Int>, with text: String) {
    edits.append(Edit(range: range, step: step, replacement: Array(text.utf8), kind: .replacement))
  }

  /// Sets text around a range. Wraps nest as their ranges do, whichever is made first.
  mutating func wrap(_ range: Range<Int>, _ before: String, _ after: String) {
    let (low, high) = (range.lowerBound, range.upperBound)
    edits.append(Edit(range: low..<low, step: step, replacement: Array(before.utf8), kind: .opening, reach: high - low))
    edits.append(
      Edit(range: high..<high, step: step, replacement: Array(after.utf8), kind: .closing, reach: high - low))
  }

  /// Overwrites a range with spaces; line breaks stay.
  mutating func blank(_ range: Range<Int>, in source: SourceText) {
    let spaces = source.bytes[range].map { $0 == UInt8(ascii: "\n") ? $0 : UInt8(ascii: " ") }
    edits.append(Edit(range: range, step: step, replacement: spaces, kind: .blank))
  }

  /// Two edits of which the second would change text that the first has replaced already.
  struct Overlap {
    /// Where the second begins.
    let offset: Int
    /// The steps that made the two.
    let steps: (String, String)
  }

  /// The first overlap; nil where there is none.
  func overlap() -> Overlap? {
    var last: Edit?
    for edit in sortedEdits() {
      if let last, edit.range.lowerBound < last.range.upperBound {
        let isDropped = last.kind == .blank && edit.range.upperBound <= last.range.upperBound
        if !isDropped { return Overlap(offset: edit.range.lowerBound, steps: (last.step, edit.step)) }
      } else {
        last = edit
      }
    }
    return nil
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
    var blanks: [Range<Int>] = []
    for range in edits.lazy.filter({ $0.kind == .blank }).map(\.range).sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let last = blanks.last, range.lowerBound < last.upperBound {
        blanks[blanks.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
      } else {
        blanks.append(range)
      }
    }
    let edits = self.edits.filter { !$0.isWrap || !Self.contains($0.wrapped, in: blanks) }
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
