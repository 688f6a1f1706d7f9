import Testing

@testable import SoftMetal

/// Files whose kernels are compiled one by one, each on first use.
@Suite struct SeparateCompilationTests {
  let folder: ShaderFolder

  init() throws {
    folder = try ShaderFolder()
  }

  /// Kernels `fill0`, `fill1`, ...: the k-th writes k. Each has as many statements again that change nothing.
  func source(kernels: Int, statements: Int, last: String = "") -> String {
    let body = String(repeating: "x = x * 1 + 0;\n", count: statements)
    return (0..<kernels).map { kernel in
      """
      kernel void fill\(kernel)(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
      int x = \(kernel);
      \(body)\(kernel == kernels - 1 ? last : "")
      out[i] = x; }

      """
    }.joined()
  }

  @Test func largeKernelsAreCompiledOneByOne() throws {
    let text = source(kernels: 3, statements: 100)
    let library = try folder.compile(text)
    #expect(library.object.isEmpty)
    #expect(library.functionNames == ["fill0", "fill1", "fill2"])
    for kernel in 0..<3 {
      let one = try folder.compile(text, kernel: "fill\(kernel)")
      #expect(!one.wasCached)
      #expect(one.functionNames == library.functionNames)
      let shader = try LoadedShader(one, constants: [:])
      #expect(shader.object.pointee.kernelCount == 1)
      #expect(try shader.run("fill\(kernel)", count: 2) == [Int32(kernel), Int32(kernel)])
      #expect(try folder.compile(text, kernel: "fill\(kernel)").wasCached)
    }
    #expect(try folder.compile(text).wasCached)
    #expect(folder.objects.count == 4)
  }

  @Test(arguments: [(kernels: 1, statements: 100), (kernels: 1, statements: 1), (kernels: 30, statements: 1)])
  func theRestIsCompiledAtOnce(kernels: Int, statements: Int) throws {
    let library = try folder.compile(source(kernels: kernels, statements: statements))
    let shader = try LoadedShader(library, constants: [:])
    #expect(shader.object.pointee.kernelCount == UInt32(kernels))
    #expect(try shader.run("fill\(kernels - 1)", count: 1) == [Int32(kernels - 1)])
  }

  @Test func mistakesInAnyKernelShowInTheLibrary() throws {
    let log = try folder.log(source(kernels: 3, statements: 100, last: "x = unknown;"))
    #expect(log.has("test.metal:311:5: error: use of undeclared identifier 'unknown'"))
  }

  @Test func aFunctionIsFoundByItsNameAlone() throws {
    let library = try SoftLibrary(source: source(kernels: 3, statements: 100), options: .init())
    #expect(library.functionNames.count == 3)
    #expect(library.makeFunction(name: "fill2")?.name == "fill2")
    #expect(library.makeFunction(name: "fill3") == nil)
  }
}
