import Testing

@testable import SoftMetal

@Suite struct HeaderTests {
  @Test func everyHeaderOfTheSourceTreeIsEmbedded() {
    let package = #filePath.split(separator: "/").dropLast(4).map { "/" + $0 }.joined()
    let names = Files.names(in: package + "/Sources/CSoftMetal/msl") + ["softmetal.h", "softmetal_worker.h"]
    #expect(names.count > 10)
    #expect(Set(names) == Set(HeaderFolder.headers.map(\.name)))
  }

  @Test func eachHeaderCompilesAlone() throws {
    let folder = try ShaderFolder()
    for header in HeaderFolder.headers where header.name.hasPrefix("metal_") {
      #expect(
        try folder.log("#include <\(header.name)>\nkernel void f(device int *a) { a[0] = 1; }") == "", "\(header.name)")
    }
  }

  /// Half of what clang would read of the language.
  @Test func whatIsARareSwizzleAgreesWithTheHeaders() throws {
    var counts = [0, 0]
    for width in 2...4 {
      let name = "softmetal_swizzles_\(width)"
      let header = try #require(HeaderFolder.headers.first { $0.name == name })
      let text = String(decoding: header.bytes, as: UTF8.self)
      let parts = text.split(separator: "#ifdef \(RareSwizzles.macro)\n", omittingEmptySubsequences: false)
      try #require(parts.count == 2)
      for (part, isRare) in zip(parts, [false, true]) {
        for entry in part.split(separator: "(").dropFirst() {
          for spelling in entry.split(separator: ", ").prefix(2) {
            #expect(RareSwizzles.isRare(String(spelling)) == isRare, "\(name): \(spelling)")
            counts[isRare ? 1 : 0] += 1
          }
        }
      }
    }
    #expect(counts[0] + counts[1] == 2 * (28 + 117 + 336))
    #expect(counts[0] > 0 && counts[1] > counts[0])
  }

  @Test(arguments: [
    ("v.xyx", true), ("p->wzx", true), ("v.rrg", true), ("v.gbr.bgr.xxy", true), ("v.xy.xxyy", true),
    ("v.xyz", false), ("v.zyx + v.bgr", false), ("v.wwww", false), ("bar + arg", false), ("v.xyxyx", false),
    ("v.xgb", false), ("v.wz.xx", false),
  ])
  func aSourceThatUsesRareSwizzles(source: String, uses: Bool) {
    #expect(RareSwizzles.areUsed(in: TokenList(SourceText(Array(source.utf8)))) == uses)
  }
}
