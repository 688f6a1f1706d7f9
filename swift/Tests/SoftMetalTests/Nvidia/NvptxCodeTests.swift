import Testing

@testable import SoftMetal

@Suite struct NvptxCodeTests {
  private func placed(_ code: String) -> String {
    String(decoding: NvptxCode.placed(Array(code.utf8)), as: UTF8.self)
  }

  @Test func constantMemoryIsAnyMemory() {
    #expect(placed("  %1 = load i32, ptr addrspace(4) %0") == "  %1 = load i32, ptr addrspace(1) %0")
    #expect(
      placed("declare void @llvm.memcpy.p0.p4.i64(ptr, ptr addrspace(4), i64, i1)")
        == "declare void @llvm.memcpy.p0.p1.i64(ptr, ptr addrspace(1), i64, i1)")
  }

  @Test func functionsThatAreInlinedAreElsewhereToo() {
    let attributes = "\nattributes #0 = { alwaysinline nounwind }\nattributes #1 = { nounwind }"
    func start(_ line: String) -> String { String(placed(line + attributes).dropLast(attributes.count)) }
    #expect(start("define dso_local i32 @_Z1fi(i32 %0) #0 {") == "define available_externally i32 @_Z1fi(i32 %0) #0 {")
    #expect(
      start("define linkonce_odr dso_local void @_Z1gv() #0 comdat align 2 {")
        == "define available_externally void @_Z1gv() #0 align 2 {")
    for kept in ["define dso_local void @sm_entry_1(ptr %0) #1 {", "declare dso_local void @_Z1hv() #0"] {
      #expect(start(kept) == kept)
    }
  }

  @Test func threadgroupVariablesAreShared() {
    let code = """
      @a = linkonce_odr dso_local addrspace(1) constant [32 x float] zeroinitializer, section "sm_shared", comdat, align 4
      @ab = internal addrspace(1) global i32 0, align 4
      @sm_threadgroup_arguments = external dso_local addrspace(1) global [0 x i8], align 1
        %1 = add i64 ptrtoint (ptr addrspace(1) @sm_threadgroup_arguments to i64), ptrtoint (ptr addrspace(1) @a to i64)
        store i32 1, ptr addrspace(1) @ab, align 4
      """
    #expect(
      placed(code) == """
        @a = internal addrspace(3) global [32 x float] undef, align 16
        @ab = internal addrspace(1) global i32 0, align 4
        @sm_threadgroup_arguments = external addrspace(3) global [0 x i8], align 16
          %1 = add i64 ptrtoint (ptr addrspace(3) @sm_threadgroup_arguments to i64), ptrtoint (ptr addrspace(3) @a to i64)
          store i32 1, ptr addrspace(1) @ab, align 4
        """)
  }

  @Test func undefinedFunctionsAreErrors() throws {
    #expect {
      try NvptxCode.check(Array(".visible .func sm_entry_1_partial(\n".utf8), label: "k.metal")
    } throws: { "\($0)".contains("k.metal: internal error: no entry: .visible .func sm_entry_1_partial(") }
    #expect {
      try NvptxCode.check(Array(".extern .func (.param .b32 func_retval0) asinf\n(\n".utf8), label: "k.metal")
    } throws: { "\($0)".contains("k.metal: error: undefined symbol 'asinf'") }
  }

  /// A GPU's registers cannot be indexed: what a loop over an array demands keeps the array out of local memory.
  @Test(arguments: [("#pragma clang loop unroll(full)", false), ("_Pragma(\"clang loop unroll(disable)\")", true)])
  func demandsToUnrollAreMet(demand: String, isInMemory: Bool) throws {
    let folder = try ShaderFolder()
    let source = """
      #include <metal_stdlib>
      kernel void k(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
        float own[48];
        \(demand)
        for (uint j = 0; j < 48; ++j) own[j] = x[i * 48 + (j * 5) % 48];
        \(demand)
        for (uint j = 0; j < 48; ++j) x[i * 48 + j] = own[47 - j] * float(j);
      }
      """
    let compiled = try ShaderCompiler.compile(
      source: source, label: "k.metal", kernel: "k", for: .nvptx, settings: folder.settings, precompiled: nil)
    let shader = try LoadedShader(compiled, constants: [:])
    try withExtendedLifetime(shader) {
      let ptx = String(cString: try #require(shader.ptx))
      #expect(ptx.contains(".local") == isInMemory)
    }
  }

  /// What the code generator of LLVM 19 has no code for as it comes.
  @Test(arguments: [
    (
      "a function with a vector of bool", "bool2 both(bool2 a) { return a.yx; }",
      "o[i] = both(bool2(o[i] > 1, i > 2)).x;"
    ),
    ("a fence", "", "o[i] = 1; atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);"),
    (
      "a table of texts", "constant char *constant names[] = {\"ab\", \"cd\"};",
      "o[i] = names[i & 1][0];"
    ),
    (
      "a half beside a bfloat", "struct Pair { bfloat a; half b; };",
      """
      threadgroup Pair pairs[8]; pairs[i] = {bfloat(i), half(i)}; threadgroup_barrier(mem_flags::mem_threadgroup);
      const Pair p = pairs[7 - i]; o[i] = int(p.a) + int(p.b);
      """
    ),
    (
      "a constructor in threadgroup memory", "struct Number { int value; Number() : value(0) {} };",
      "threadgroup Number numbers[4]; numbers[i & 3].value = i; o[i] = numbers[0].value;"
    ),
  ])
  func codeIsMadeOf(what: String, declaration: String, body: String) throws {
    let folder = try ShaderFolder()
    let source = """
      #include <metal_stdlib>
      using namespace metal;
      \(declaration)
      kernel void k(device int *o [[buffer(0)]], uint i [[thread_position_in_grid]]) { \(body) }
      """
    _ = try ShaderCompiler.compile(
      source: source, label: "k.metal", kernel: "k", for: .nvptx, settings: folder.settings, precompiled: nil)
  }

  /// A header of Metal's needs no other before it.
  @Test(arguments: [
    ("metal_simdgroup", "simd_sum(i) + simd_max(short(i)) + simd_any(i == 3) + simd_all(i == 3)"),
    ("metal_quadgroup", "quad_sum(i) + quad_any(i == 3)"),
    ("metal_simdgroup_matrix", "uint(make_filled_simdgroup_matrix<float, 8, 8>(1.0f).thread_elements()[0])"),
  ])
  func headersStandAlone(header: String, value: String) throws {
    let folder = try ShaderFolder()
    let source = """
      #include <\(header)>
      using namespace metal;
      kernel void k(device uint *o [[buffer(0)]], uint i [[thread_position_in_grid]]) { o[i] = \(value); }
      """
    _ = try ShaderCompiler.compile(
      source: source, label: "k.metal", kernel: "k", for: .nvptx, settings: folder.settings, precompiled: nil)
  }

  /// A recursion that only the code generator finds has its place in the source.
  @Test func recursionHasItsPlace() throws {
    let folder = try ShaderFolder()
    let source = """
      struct S { float f(float x) { return x < 1 ? x : f(x - 1) + 1; } };
      kernel void k(device float *o [[buffer(0)]]) { S s; o[0] = s.f(o[1]); }
      """
    #expect {
      try ShaderCompiler.compile(
        source: source, label: "k.metal", kernel: "k", for: .nvptx, settings: folder.settings, precompiled: nil)
    } throws: { "\($0)".contains("k.metal:1:") && "\($0)".contains("recursion is not supported in Metal") }
  }

  /// A tensor core gets both elements of a lane, and what is loaded transposed as it lies in memory.
  @Test func productsOfSixteenBitsAreATensorCores() throws {
    let folder = try ShaderFolder()
    func ptx(_ left: String, _ right: String, transposed: Bool) throws -> String {
      let source = """
        #include <metal_stdlib>
        using namespace metal;
        kernel void k(device \(left) *a [[buffer(0)]], device \(right) *b [[buffer(1)]], device float *c [[buffer(2)]]) {
          simdgroup_matrix<\(left), 8, 8> x;
          simdgroup_matrix<\(right), 8, 8> y;
          simdgroup_float8x8 sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
          simdgroup_load(x, a, 8);
          simdgroup_load(y, b, 8, ulong2(0, 0), \(transposed));
          simdgroup_multiply_accumulate(sum, x, y, sum);
          simdgroup_store(sum, c, 8);
        }
        """
      let compiled = try ShaderCompiler.compile(
        source: source, label: "k.metal", kernel: "k", for: .nvptx, settings: folder.settings, precompiled: nil)
      let shader = try LoadedShader(compiled, constants: [:])
      return try withExtendedLifetime(shader) { String(cString: try #require(shader.ptx)) }
    }
    let split = try ptx("float", "half", transposed: false)
    let product = try #require(
      split.firstMatch(
        of: #/tf32\.f32 \{[^}]*\}, \{(%r\d+), %r\d+, (%r\d+), %r\d+\}, \{(%r\d+), (%r\d+)\}/#))
    #expect(product.1 != product.2 && product.3 != product.4)
    #expect(split.contains("movmatrix"))
    let native = try ptx("bfloat", "bfloat", transposed: false)
    #expect(native.contains("mma.sync.aligned.m16n8k8.row.col.f32.bf16") && native.contains("movmatrix"))
    #expect(try ptx("half", "half", transposed: true).contains("mma.sync.aligned.m16n8k8.row.col.f32.f16"))
    // In the order of the other executors.
    #expect(try !ptx("float", "float", transposed: false).contains("mma.sync"))
  }

  /// Every function that the C library gives a processor, and each kind of primitive.
  @Test func theLanguageNeedsNoLibrary() throws {
    let folder = try ShaderFolder()
    let unary = "asin acos atan asinh acosh atanh sin cos tan exp log2 tanh round".split(separator: " ")
    let source = """
      #include <metal_stdlib>
      using namespace metal;
      constant bool flag [[function_constant(3)]];
      constant float2 pair [[function_constant(4)]];
      constant float third = flag ? 3.0f : 1.0f;
      constant float4 both = float4(pair, pair * 2.0f);
      struct Params { float scale; uint n; };
      kernel void k(device float *x [[buffer(0)]], constant Params &p [[buffer(1)]],
                    device atomic_int *counts [[buffer(2)]],
                    device const half *optional [[buffer(3), function_constant(flag)]],
                    uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
        threadgroup bfloat tile[64];
        float v = x[i] * p.scale + third + both.w;
        \(unary.map { "v += \($0)(v);" }.joined(separator: " "))
        v += pow(v, 2.5f) + atan2(v, p.scale) + fmod(v, 3.0f) + ldexp(v, 3) + ilogb(v) + rsqrt(v);
        int e;
        v += frexp(v, e) + e + float(half(v)) + float(fma(half(v), half(2), half(1)));
        tile[lane] = bfloat(simd_prefix_inclusive_sum(v) + simd_min(v) + quad_sum(v));
        threadgroup_barrier(mem_flags::mem_threadgroup);
        atomic_fetch_add_explicit(counts, int(simd_ballot(v > 0).any()), memory_order_relaxed);
        atomic_fetch_max_explicit(counts + 1, popcount(i), memory_order_relaxed);
        if (flag) v += float(optional[i]);
        simdgroup_matrix<bfloat, 8, 8> a(bfloat(1));
        simdgroup_matrix<float, 8, 8> c(0.0f);
        simdgroup_load(a, tile, 8, 0, true);
        simdgroup_multiply_accumulate(c, a, a, c);
        x[i] = v + c.thread_elements()[0] + float(tile[63 - lane]) + float(mulhi(i, p.n));
      }
      """
    let compiled = try ShaderCompiler.compile(
      source: source, label: "k.metal", kernel: "k", for: .nvptx, settings: folder.settings, precompiled: nil)
    let pair = ConstantValue("float2", SIMD2<Float>(5, 7))
    let shader = try LoadedShader(compiled, constants: [3: ConstantValue("bool", true), 4: pair])
    let ptx = String(cString: try #require(shader.ptx))
    #expect(ptx.contains(".visible .entry sm_entry_1("))
    #expect(!ptx.contains(".extern .func"))
    let values = Dictionary(uniqueKeysWithValues: shader.values.map { ($0.symbol, Array($0.bytes)) })
    #expect(values["sm_constant_0"] == [1] && values["sm_defined_0"] == [1])
    #expect(values["sm_derived_0"] == withUnsafeBytes(of: Float(3)) { Array($0) })
    #expect(values["sm_derived_1"] == withUnsafeBytes(of: SIMD4<Float>(5, 7, 10, 14)) { Array($0) })
    for symbol in values.keys { #expect(ptx.contains(symbol)) }
    // The names of what the source has are its own, and the table describes the kernel as any other's does.
    #expect(compiled.functionNames == ["k"])
    #expect(shader.kernel(named: "k").map { $0.pointee.argumentCount } == 4)
  }

  @Test func mistakesAreTheUsers() throws {
    let folder = try ShaderFolder()
    let error = compilerError {
      try ShaderCompiler.compile(
        source: "kernel void k(device float *x [[buffer(0)]]) { x[0] = y; }", label: "k.metal", kernel: "k",
        for: .nvptx, settings: folder.settings, precompiled: nil)
    }
    #expect(error?.kind == .compileFailure)
    #expect(error?.message.has("k.metal:1:55: error: use of undeclared identifier 'y'") ?? false)
  }
}
