import Testing

@testable import SoftMetal

@Suite struct LoadedShaderTests {
  static let source = """
    #include <metal_stdlib>
    using namespace metal;
    constant int stride [[function_constant(4)]];
    constant bool add [[function_constant(5)]];
    constant int base = add ? 100 : 0;
    kernel void count(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = base + stride * int(i); }
    kernel void free(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = 7; }
    template <typename T, int N> kernel void typed(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
      threadgroup T shared[N];
      shared[i] = T(N - int(i));
      threadgroup_barrier(mem_flags::mem_threadgroup);
      out[i] = shared[N - 1 - i];
    }
    template [[host_name("typed_int")]] kernel void typed<int, 4>(device int *, uint);
    """

  @Test func namesKernelsAndConstants() throws {
    let folder = try ShaderFolder()
    let compiled = try folder.compile(Self.source)
    #expect(compiled.functionNames == ["count", "free", "typed_int"])
    let shader = try LoadedShader(compiled, constants: [:])
    #expect(shader.functionNames == compiled.functionNames)
    let count = try #require(shader.kernel(named: "count"))
    #expect(Set(shader.missingConstants(of: count)) == ["stride", "add"])
    let free = try #require(shader.kernel(named: "free"))
    #expect(shader.missingConstants(of: free) == [])
    #expect(shader.kernel(named: "typed") == nil)
    #expect(try shader.run("free", count: 2) == [7, 7])
    #expect(try shader.run("typed_int", count: 4) == [1, 2, 3, 4])
  }

  @Test func eachCombinationIsItsOwnCopy() throws {
    let folder = try ShaderFolder()
    let compiled = try folder.compile(Self.source)
    let shaders = try (1...4).map { step in
      try LoadedShader(compiled, constants: [4: ConstantValue("int", Int32(step)), 5: ConstantValue("bool", step > 2)])
    }
    for (index, shader) in shaders.enumerated() {
      let base: Int32 = index > 1 ? 100 : 0
      #expect(try shader.run("count", count: 3) == [base, base + Int32(index + 1), base + 2 * Int32(index + 1)])
    }
  }

  @Test func namedValuesWin() throws {
    let folder = try ShaderFolder()
    let shader = try LoadedShader(
      try folder.compile(Self.source), constants: [4: ConstantValue("int", Int32(1)), 5: ConstantValue("bool", false)],
      namedConstants: ["stride": ConstantValue("int", Int32(5))])
    #expect(try shader.run("count", count: 2) == [0, 5])
  }

  @Test func valuesOfAnotherTypeAreRefused() throws {
    let compiled = try ShaderFolder().compile(Self.source)
    for (value, part) in [
      (ConstantValue("float", Float(1)), "'stride' (index 4) has type int, the value has type float"),
      (ConstantValue("", UInt8(1)), "'stride' (index 4) takes 4 bytes, the value has 1"),
    ] {
      let error = compilerError { try LoadedShader(compiled, constants: [4: value]) }
      #expect(error?.kind == .constantMismatch)
      #expect(error?.message.has(part) == true)
    }
  }

  @Test func objectsThatAreNoneAreRefused() {
    for bytes in [[], [1, 2, 3], [UInt8](repeating: 0x7F, count: 5000)] {
      let shader = CompiledShader(
        label: "x", object: bytes, functionNames: [], log: "", wasCached: false)
      let error = compilerError { try LoadedShader(shader, constants: [:]) }
      #expect(error?.kind == .hostFailure)
    }
  }

  @Test func typeNames() {
    #expect(ConstantValue.shortName(ofType: "unsigned int") == "uint")
    #expect(ConstantValue.shortName(ofType: "metal :: vec < uint16_t , 3 >") == "ushort3")
    #expect(ConstantValue.shortName(ofType: "half2") == "half2")
    #expect(ConstantValue.shortName(ofType: "Mode") == nil)
  }
}
