import Testing

@testable import SoftMetal

@Suite struct CompilerFlagsTests {
  /// The level of optimisation that counts: the last.
  func level(_ options: ShaderCompiler.Options) throws -> String? {
    let clang = try Clang.find(.environment)
    let flags = CompilerFlags.code(options, clang, Executor.chosen(.usual, for: clang))
    return flags.last { $0.hasPrefix("-O") }
  }

  @Test func sizeIsALowerLevel() throws {
    let options = MTLCompileOptions()
    #expect(try level(.init(options)) == "-O3")
    options.optimizationLevel = .size
    #expect(try level(.init(options)) == "-O1")
  }
}
