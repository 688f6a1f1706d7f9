/// The outcome of edits: new text, with the way back to the offsets of the old.
struct EditedText {
  private struct Piece {
    let start: Int
    let sourceStart: Int
    /// Whether offsets inside the piece run in step with those of the source.
    let isCopy: Bool
  }

  private(set) var bytes: [UInt8] = []
  private var pieces: [Piece] = []

  mutating func copy(_ slice: ArraySlice<UInt8>) {
    guard !slice.isEmpty else { return }
    pieces.append(Piece(start: bytes.count, sourceStart: slice.startIndex, isCopy: true))
    bytes += slice
  }

  mutating func append(_ replacement: [UInt8], from range: Range<Int>) {
    guard !replacement.isEmpty else { return }
    // A replacement of equal length is a blank or a padded word: positions
    // inside it keep their meaning.
    let isCopy = replacement.count == range.count
    pieces.append(Piece(start: bytes.count, sourceStart: range.lowerBound, isCopy: isCopy))
    bytes += replacement
  }

  /// The offset in the source that the byte at `offset` stems from; for
  /// inserted text the place of the insertion.
  func sourceOffset(of offset: Int) -> Int {
    var low = 0
    var high = pieces.count
    while low + 1 < high {
      let middle = (low + high) / 2
      if pieces[middle].start <= offset { low = middle } else { high = middle }
    }
    guard low < pieces.count else { return 0 }
    let piece = pieces[low]
    return piece.isCopy ? piece.sourceStart + (offset - piece.start) : piece.sourceStart
  }
}
