import Testing

@testable import SoftMetal

@Suite struct EditListTests {
  private let source = SourceText(Array("int x = 1;\nint y = 2;\n".utf8))

  /// Edits by two steps, the second over the text of the first.
  private func edits(first: Range<Int>, second: Range<Int>) -> EditList {
    var edits = EditList()
    edits.step = "First"
    edits.replace(first, with: "a")
    edits.step = "Second"
    edits.replace(second, with: "b")
    return edits
  }

  @Test(arguments: [(15..<20, 15..<20), (11..<16, 15..<20), (11..<20, 13..<15)])
  func overlapNamesBothStepsAndThePlace(first: Range<Int>, second: Range<Int>) throws {
    let overlap = try #require(edits(first: first, second: second).overlap())
    #expect(overlap.steps == ("First", "Second"))
    let map = SourceMap(unchanged: source, origin: SourceOrigin(label: "a.metal", source: source))
    let message = map.error(overlap).message
    #expect(message.contains("internal error: the steps First and Second of SoftMetal both rewrite this text"))
    #expect(message.hasPrefix("a.metal:2:\(second.lowerBound - 10): error:"), "\(message)")
  }

  @Test func neighboursDoNotOverlap() {
    #expect(edits(first: 0..<3, second: 3..<5).overlap() == nil)
    #expect(edits(first: 8..<9, second: 0..<3).overlap() == nil)
  }

  /// What a step removes, others need not leave alone.
  @Test func editsInsideOfBlanksAreDropped() {
    var edits = EditList()
    edits.blank(0..<10, in: source)
    edits.replace(4..<5, with: "z")
    #expect(edits.overlap() == nil)
    #expect(String(decoding: edits.apply(to: source).bytes, as: UTF8.self) == "          \nint y = 2;\n")
  }
}
