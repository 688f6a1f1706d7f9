import Testing

@testable import SoftMetal

@Suite struct KernelTests {
  @Test(arguments: [
    "kernel void f(device float *a [[buffer(0)]]) { a[0] = 1; }",
    "[[kernel]] void f(device float *a [[buffer(0)]]) { a[0] = 1; }",
    "kernel\nvoid\nf(device float *a\n[[ buffer ( 0 ) ]]\n)\n{ a[0] = 1; }",
    "static kernel void f(device float *a) { a[0] = 1; }",
    "[[kernel]] [[host_name(\"f\")]] void f(device float *a) { a[0] = 1; }",
    "kernel void f [[host_name(\"f\")]] (device float *a) { a[0] = 1; }",
    "kernel void f(device float *a) [[max_total_threads_per_threadgroup(1024)]] { a[0] = 1; }",
    "/* kernel void g() {} */ kernel void f(const device float *a /* buffer(3) */) { a[0]; }",
    "#define K 0\nkernel void f(device float *a [[buffer(K)]]) { a[0] = 1; }",
  ])
  func plainForms(source: String) throws {
    let lowered = try Lowered(source)
    #expect(lowered.names == ["f"])
    #expect(!lowered.body.has("[["))
    #expect(lowered.body.has("static"))
    #expect(lowered.tail.has("(::f), ::softmetal::Buffer<"))
    #expect(lowered.tail.has("sm_names_0[] = {\"a\", nullptr}"))
    #expect(lowered.tail.has("sm_kernel_0::describe(\"f\", sm_names_0, 0, nullptr)"))
  }

  @Test func linesAndColumnsStay() throws {
    let source = """
      kernel void add(device const float *a [[buffer(0)]],
                      uint i [[thread_position_in_grid]]) {
        const float x = a[i]; // kernel void no()
      }
      """
    let lowered = try Lowered(source)
    #expect(
      lowered.body == """
        static kernel void add(device const float *a              ,
                        uint i                            ) {
          const float x = a[i]; // kernel void no()
        }
        """)
  }

  @Test func argumentsInOrder() throws {
    let lowered = try Lowered(
      """
      constant bool has_mask [[function_constant(3)]];
      kernel void f(device float *a, constant P &p [[buffer(1), function_constant(has_mask)]],
                    const device vec<float, 4> *b, threadgroup half *t [[threadgroup(2)]], threadgroup half *u,
                    device const float (&m)[4] [[buffer(0x5)]] [[function_constant(has_mask)]],
                    ushort3 g [[threadgroup_position_in_grid]], uint w [[thread_execution_width]]) { a[0] = p.x + b[0].x + m[0]; }
      """)
    #expect(
      lowered.tail.has(
        "(::f), ::softmetal::Buffer<0>, ::softmetal::BufferIf<1, sm_condition_0>, ::softmetal::Buffer<2>, "
          + "::softmetal::ThreadgroupMemory<2>, ::softmetal::ThreadgroupMemory<0>, "
          + "::softmetal::BufferIf<(0x5), sm_condition_0>, ::softmetal::ThreadgroupPositionInGrid, "
          + "::softmetal::ThreadsPerSimdgroup>;"))
    #expect(lowered.tail.has("int sm_condition_0() { return static_cast<bool>(has_mask); }"))
    #expect(lowered.tail.has("const uint32_t sm_constants_0[] = {0};"))
  }

  @Test func buffersThatTheKernelDoesNotName() throws {
    let lowered = try Lowered("kernel void f(device float *a, device float *b, device float *) { b[0] = 1; }")
    #expect(
      lowered.tail.has("::softmetal::UnusedBuffer<0>, ::softmetal::Buffer<1>, ::softmetal::UnusedBuffer<2>>;"))
  }

  @Test func everyPositionAttribute() throws {
    for (attribute, type) in KernelSignature.positions {
      let lowered = try Lowered("kernel void f(uint x [[\(attribute)]]) {}")
      #expect(lowered.tail.has("(::f), ::softmetal::\(type)>"))
    }
  }

  static let template = """
    template <typename T, int N = 4, typename... Rest>
    [[kernel, max_total_threads_per_threadgroup(N * 32)]] void f(
        device T *a [[buffer(0)]], uint i [[thread_position_in_grid]]) { a[i] = N; }

    """

  @Test(arguments: [
    "template [[host_name(\"x\")]] [[kernel]] void f<float, 2>(device float *a [[buffer(0)]], uint i [[thread_position_in_grid]]);",
    "template [[host_name(\"x\")]] kernel void f<float, 2>(device float *, uint);",
    "template [[host_name(\"x\")]] kernel decltype(f<float, 2>) f<float, 2>;",
    "template [[host_name(\"x\"), kernel]] decltype(f<float, 2>) f<float, 2>;",
    "typedef decltype(f<float, 2>) t;\ntemplate [[host_name(\"x\")]] kernel t f<float, 2>;",
    "template [[host_name(\"\" \"x\")]] [[kernel]] t f< float , 2 >;",
  ])
  func instantiations(instantiation: String) throws {
    let lowered = try Lowered(Self.template + instantiation)
    #expect(lowered.names == ["x"])
    #expect(lowered.tail.has("SM_EXECUTION_LOOP, 1, ( 2 * 32 ), 0, (::f<float, 2>)"))
    #expect(!lowered.body.has("template [["))
    #expect(!lowered.body.has("host_name"))
  }

  @Test func nestedTemplateArgumentsAndDefaults() throws {
    let lowered = try Lowered(
      Self.template + "template [[host_name(\"x\")]] [[kernel]] void f<vec<vec<half, 4>::type, (3 > 2)>>();")
    #expect(lowered.tail.has("( 4 * 32 ), 0, (::f<vec < vec < half , 4 > :: type , ( 3 > 2 ) >>)"))
  }

  @Test func uninstantiatedTemplatesAreNoKernels() throws {
    #expect(try Lowered(Self.template).names == [])
    #expect(
      try Lowered(Self.template).tail.has(
        "SM_OBJECT_VERSION, 0, nullptr, 0, 0, nullptr, nullptr, SM_ADDRESS(sm_initialize), sm_ptx}"))
  }

  @Test func namespaces() throws {
    let lowered = try Lowered(
      "namespace a { inline namespace b { kernel void f(device int *x) {} } }\nnamespace c::d { [[kernel]] void g() {} }"
    )
    #expect(lowered.names == ["f", "g"])
    #expect(lowered.tail.has("(::a::b::f)"))
    #expect(lowered.tail.has("(::c::d::g)"))
  }

  @Test func forwardDeclarationsAreNoEntries() throws {
    let lowered = try Lowered(
      "kernel void f(device int *x [[buffer(0)]]);\nkernel void f(device int *x [[buffer(0)]]) {}")
    #expect(lowered.names == ["f"])
    #expect(lowered.body.has("static kernel void f(device int *x              );"))
  }

  @Test func wordsInStringsAndNamesAreNoKernels() throws {
    let lowered = try Lowered(
      """
      constant char text[] = "kernel void f() {}";
      struct S { int kernel_size; };
      int not_a_kernel(int kernels) { return kernels; }
      kernel void real(device int *x) { x[0] = not_a_kernel(1); }
      """)
    #expect(lowered.names == ["real"])
  }

  @Test func standardAttributesStay() throws {
    let lowered = try Lowered("[[maybe_unused]] static int f() { [[clang::musttail]] return 1; }")
    #expect(lowered.body.has("[[maybe_unused]]"))
    #expect(lowered.body.has("[[clang::musttail]]"))
  }
}
