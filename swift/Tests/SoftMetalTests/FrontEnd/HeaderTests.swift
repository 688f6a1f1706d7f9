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
}
