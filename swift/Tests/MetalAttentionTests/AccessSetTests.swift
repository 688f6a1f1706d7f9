import Testing

@testable import MetalAttention

/// What `AccessSet` promises.
private protocol ByteRangeSet {
  func overlaps(_ access: Access) -> Bool
  mutating func insert(_ access: Access)
  mutating func removeAll()
}

extension AccessSet: ByteRangeSet {}

/// A union of ranges as a list of disjoint ones, with room for a mistake.
private struct RangeList: ByteRangeSet {
  fileprivate var ranges: [Access] = []
  /// The end of what two ranges become that touch.
  var mergedEnd: (_ old: UInt64, _ new: UInt64) -> UInt64 = { max($0, $1) }
  /// Bytes that two ranges must share to overlap.
  var leastOverlap: UInt64 = 1

  func overlaps(_ access: Access) -> Bool {
    ranges.contains { range in
      let (start, end) = (max(range.start, access.start), min(range.end, access.end))
      return range.buffer == access.buffer && start < end && end - start >= leastOverlap
    }
  }

  mutating func insert(_ access: Access) {
    var (start, end) = (access.start, access.end)
    ranges.removeAll { range in
      guard range.buffer == access.buffer, range.start <= access.end, access.start <= range.end else { return false }
      (start, end) = (min(start, range.start), mergedEnd(range.end, end))
      return true
    }
    ranges.append(Access(buffer: access.buffer, isWrite: access.isWrite, start: start, end: end))
  }

  mutating func removeAll() {
    ranges = []
  }
}

@Suite struct AccessSetTests {
  /// Byte `position` of a buffer.
  private struct Byte: Hashable {
    let buffer: UInt32
    let position: UInt64
  }

  private func bytes(of access: Access) -> [Byte] {
    (access.start..<access.end).map { Byte(buffer: access.buffer, position: $0) }
  }

  /// Random ranges of few buffers, inserted into `set` and into a plain set of
  /// bytes: how many of the questions that follow each get another answer.
  private func disagreements(of set: some ByteRangeSet, seed: UInt64) -> Int {
    var random = SeededGenerator(seed: seed)
    var set = set
    var plain: Set<Byte> = []
    var count = 0
    func access(atMost length: UInt64) -> Access {
      let start = UInt64.random(in: 0..<96, using: &random)
      let buffer: UInt32 = [1, 2, 0x4000_0001].randomElement(using: &random) ?? 1
      let end = start + UInt64.random(in: 1...length, using: &random)
      return Access(buffer: buffer, isWrite: Bool.random(using: &random), start: start, end: end)
    }
    for _ in 0..<20_000 {
      if Int.random(in: 0..<24, using: &random) == 0 {
        set.removeAll()
        plain = []
      }
      let inserted = access(atMost: 12)
      set.insert(inserted)
      plain.formUnion(bytes(of: inserted))
      for _ in 0..<4 {
        let asked = access(atMost: 4)
        if set.overlaps(asked) != bytes(of: asked).contains(where: plain.contains) { count += 1 }
      }
    }
    return count
  }

  @Test(arguments: 1...4) func agreesWithAPlainSetOfBytes(seed: UInt64) {
    #expect(disagreements(of: AccessSet(), seed: seed) == 0)
    #expect(disagreements(of: RangeList(), seed: seed) == 0)
  }

  @Test(arguments: 1...4) func aMissedOverlapOfOneByteIsSeen(seed: UInt64) {
    #expect(disagreements(of: RangeList(leastOverlap: 2), seed: seed) > 100)
  }

  @Test(arguments: 1...4) func aMergedRangeThatShrinksIsSeen(seed: UInt64) {
    #expect(disagreements(of: RangeList(mergedEnd: { _, new in new }), seed: seed) > 100)
  }
}
