import Testing

@testable import SoftMetal

@Suite struct PreprocessingTests {
  @Test(arguments: [
    ("#define N 4\nkernel void f() {}", false),
    ("#define F4(x) float4(x)\nkernel void f() {}", false),
    ("#ifdef A\nstruct S { int x; };\n#else\nint y;\n#endif\nkernel void f() {}", false),
    ("kernel void f() {\n#if A\n  int x;\n#endif\n}", false),
    ("#define K kernel void\nK f() {}", true),
    ("#define BUFFER(n) [[buffer(n)]]\nkernel void f(device int *a BUFFER(0)) {}", true),
    ("#define OPEN {\nkernel void f() OPEN }", true),
    ("#define INST(n, t) template [[host_name(n)]] kernel void f<t>();\nINST(\"x\", int)", true),
    ("#define SHARED threadgroup float\nkernel void f() { SHARED x[4]; }", true),
    ("#if A\nkernel void f() {}\n#endif", true),
    ("#if A\nconstant int x [[function_constant(0)]];\n#endif", true),
    ("kernel void f(\n#if A\n device int *a [[buffer(0)]]\n#endif\n) {}", true),
    ("int f()\n#if A\n{\n#else\n{ g();\n#endif\n}", true),
    ("#define NAME \"x\"\ntemplate [[host_name(NAME)]] kernel void f<int>();", true),
    ("// #define K kernel\n/*\n#define K kernel\n*/\nkernel void f() {}", false),
  ])
  func decision(source: String, isNeeded: Bool) {
    #expect(Preprocessing.isNeeded(SourceText(Array(source.utf8))) == isNeeded)
  }

  @Test func macroInstantiationsCompile() throws {
    let folder = try ShaderFolder()
    let compiled = try folder.compile(
      """
      #include <metal_stdlib>
      #include <metal_simdgroup>
      using namespace metal;
      #define instantiate_kernel(name, func, ...) \\
        template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
      #define instantiate(type, n) instantiate_kernel("put_" #type "_" #n, put, type, n)
      template <typename T, int N>
      [[kernel]] void put(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
        out[i] = T(N) + T(MAXFLOAT > 1 ? 1 : 0);
      }
      instantiate(int, 2)
      instantiate(float, 3)
      #if __METAL_VERSION__ >= 310
      instantiate(int, 31)
      #else
      instantiate(int, 0)
      #endif
      """)
    #expect(compiled.functionNames == ["put_int_2", "put_float_3", "put_int_31"])
    #expect(try LoadedShader(compiled, constants: [:]).run("put_int_31", count: 2) == [32, 32])
  }

  @Test func errorsPointIntoTheSource() throws {
    let log = try ShaderFolder().log(
      """
      #include <metal_stdlib>
      #define K kernel void
      K good(device int *out) { out[0] = 1; }

      K bad(device int *out) {   out[0] =   qqqq; }
      """)
    #expect(log.has("test.metal:5:39: error: use of undeclared identifier 'qqqq'\nK bad(device"), "\(log)")
  }

  @Test func failuresOfThePreprocessor() throws {
    let log = try ShaderFolder().log("#define K kernel void\n#error \"not here\"\nK f() {}")
    #expect(log.has("test.metal:2:2: error: \"not here\"\n#error \"not here\"\n ^\n"), "\(log)")
    #expect(
      try ShaderFolder().log("#include \"missing.h\"\n").has("test.metal:1:10: error: 'missing.h' file not found"))
  }
}
