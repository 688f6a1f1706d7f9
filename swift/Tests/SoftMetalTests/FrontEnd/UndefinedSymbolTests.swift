import Testing

@testable import SoftMetal

/// What compiles also loads, in whatever process.
@Suite struct UndefinedSymbolTests {
  @Test func aFunctionThatIsNeverDefined() throws {
    let log = try ShaderFolder().log("float g(float x);\nkernel void f(device float *a) { a[0] = g(a[1]); }")
    #expect(log.has("test.metal:2:41: error: call to 'g(float)', which is never defined"), "\(log)")
  }

  @Test func mathematicsIsFound() throws {
    let compiled = try ShaderFolder().compile(
      "#include <metal_stdlib>\nusing namespace metal;\nkernel void f(device float *a) { a[0] = tan(a[1]) + fmod(a[2], a[3]); }"
    )
    #expect(UndefinedSymbols.names(in: compiled.object).contains("tanf"))
  }

  @Test(arguments: [0, 1, 63, 64, 200])
  func brokenFiles(length: Int) {
    var bytes = [UInt8](repeating: 0xFF, count: length)
    #expect(UndefinedSymbols.names(in: bytes).isEmpty)
    bytes = [UInt8](repeating: 0, count: length)
    #expect(UndefinedSymbols.names(in: bytes).isEmpty)
  }
}
