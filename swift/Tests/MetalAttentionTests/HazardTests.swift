import Testing

@testable import MetalAttention

@Suite struct HazardTests {
  private func read(_ range: Range<UInt64>, of buffer: UInt32 = 1) -> Access {
    Access(buffer: buffer, isWrite: false, start: range.lowerBound, end: range.upperBound)
  }

  private func write(_ range: Range<UInt64>, of buffer: UInt32 = 1) -> Access {
    Access(buffer: buffer, isWrite: true, start: range.lowerBound, end: range.upperBound)
  }

  /// Whether each of a row of dispatches gets a barrier before it.
  private func barriers(_ dispatches: [Access]...) -> [Bool] {
    var tracker = HazardTracker()
    return dispatches.map { tracker.admit(ContiguousArray($0), from: 0) }
  }

  @Test func readAfterWrite() {
    #expect(barriers([write(0..<8)], [read(4..<12)]) == [false, true])
    #expect(barriers([write(0..<8)], [read(8..<12)]) == [false, false])
    #expect(barriers([write(8..<16)], [read(0..<8)]) == [false, false])
    #expect(barriers([write(0..<8)], [read(0..<8, of: 2)]) == [false, false])
  }

  @Test func writeAfterRead() {
    #expect(barriers([read(0..<8)], [write(7..<12)]) == [false, true])
    #expect(barriers([read(0..<8)], [write(8..<12)]) == [false, false])
  }

  @Test func writeAfterWrite() {
    #expect(barriers([write(0..<8)], [write(0..<1)]) == [false, true])
    #expect(barriers([write(0..<8)], [write(8..<9)]) == [false, false])
  }

  @Test func readsNeverConflict() {
    #expect(barriers([read(0..<8)], [read(0..<8)], [read(2..<3)]) == [false, false, false])
  }

  @Test func aDispatchDoesNotConflictWithItself() {
    #expect(barriers([read(0..<8), write(0..<8)]) == [false])
  }

  @Test func aBarrierClearsWhatCameBefore() {
    #expect(
      barriers([write(0..<8)], [read(0..<8), write(8..<16)], [read(0..<8)], [write(0..<8)], [read(8..<16)])
        == [false, true, false, true, false])
  }

  /// Against a plain list of every access since the last barrier.
  @Test func manyRandomAccessesAgreeWithAPlainList() {
    var random = SystemRandomNumberGenerator()
    var tracker = HazardTracker()
    var since: [Access] = []
    var count = 0
    for _ in 0..<20_000 {
      let dispatch = (0..<Int.random(in: 1...3, using: &random)).map { _ in
        let start = UInt64.random(in: 0..<4096, using: &random)
        let end = start + UInt64.random(in: 1...8, using: &random)
        let buffer = UInt32.random(in: 1...3, using: &random)
        return Access(buffer: buffer, isWrite: Int.random(in: 0..<8, using: &random) == 0, start: start, end: end)
      }
      let expected = dispatch.contains { new in
        since.contains { old in (new.isWrite || old.isWrite) && new.overlaps(old) }
      }
      #expect(tracker.admit(ContiguousArray(dispatch), from: 0) == expected)
      since = expected ? dispatch : since + dispatch
      count += expected ? 1 : 0
    }
    #expect(count > 100 && count < 19_900)
  }
}
