import Testing

@testable import SoftMetal

@Suite struct CompilerFlagsTests {
  /// The level of optimisation that counts: the last.
  func level(_ options: MTLCompileOptions) throws -> String? {
    let flags = CompilerFlags.code(.init(options), try Clang.find(.environment), .vectors(plugin: "pass.so"))
    return flags.last { $0.hasPrefix("-O") }
  }

  @Test func sizeIsALowerLevel() throws {
    let options = MTLCompileOptions()
    #expect(try level(options) == "-O3")
    options.optimizationLevel = .size
    #expect(try level(options) == "-O1")
  }
}
