import Testing

@testable import SoftMetal

/// The front end that turns Metal into C++ for OpenCL.
@Suite struct OpenCLTests {
  @Test(arguments: [
    // Casts between half and bfloat.
    ("void f() { auto x = bfloat(h); }", "auto x = sm_make<bfloat>(h);"),
    ("void f() { auto x = (half)b * 2; }", "auto x = sm_make<half>(b) * 2;"),
    ("void f() { auto x = static_cast<bfloat>(h); }", "auto x = sm_make<bfloat>(h);"),
    ("struct S { half x; operator half() const; };", "operator half() const;"),
    ("half f(half x);", "half f(half x);"),
    // Functions as parameters of templates.
    ("template <float (*F)(float)> float g(float x);", "template <float (&F)(float)> float g(float x);"),
    ("typedef void (*Step)(thread float2 *);", "typedef void (&Step)(thread float2 *);"),
    // Arms of conditional expressions.
    ("void f() { S s = c ? *p : S{}; }", "S s = c ? sm_value(*p) : sm_value(S{});"),
    ("void f() { int s = c ? 1 : -2; }", "int s = c ? 1 : -2;"),
    ("void f() { g(c ? a : d ? b : e, 1); }", "g(c ? sm_value(a) : sm_value(d ? sm_value(b) : sm_value(e)), 1);"),
    ("void f() { thread float &r = c ? a : b; }", "thread float &r = c ? a : b;"),
    ("void f() { (c ? a : b) = 3; }", "(c ? a : b) = 3;"),
    ("void f() { auto p = &(c ? a : b); }", "auto p = &(c ? a : b);"),
    // Constructors by memory.
    ("struct S { int x; S() thread : x(1) {} };", "S() : x(1) {}"),
    // Functions of thread objects.
    ("struct S { int x; thread int &at(int i) { return x; } };", "thread int &at(int i) thread { return x; }"),
    ("struct S { int x; int at(int i) const { return x; } };", "int at(int i) const { return x; }"),
  ])
  func steps(source: String, expected: String) throws {
    let body = try Lowered(source, dialect: .openCL).body
    #expect(body.squeezed.has(expected), "\(body)")
  }

  @Test(arguments: [
    ("struct S { int x; S() threadgroup : x(1) {} S() device = default; int y; };", "x(1)"),
    ("template <int N> constant float S<N>::table[2];", "table"),
  ])
  func removed(source: String, part: String) throws {
    #expect(try !Lowered(source, dialect: .openCL).body.has(part))
  }

  /// Compiled with the switch, by the key of its own, and with the results of the other front end.
  @Test func bothFrontEndsGiveTheSame() throws {
    let source = """
      #include <metal_stdlib>
      using namespace metal;
      struct Sum { int x; int2 y; int total() const { return x + y.x + y.y; } };
      constant Sum kSum = {1, int2(2, 3)};
      kernel void f(device int *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
        threadgroup int shared[8];
        int4 v = int4(i, 2, 3, 4);
        v.xy = v.yx * 2;
        const bool3 less = v.xyz < int3(3);
        shared[i] = v.x + v.y + int(less.x) + simd_sum(int(i)) + kSum.x + Sum{7, int2(i)}.total();
        threadgroup_barrier(mem_flags::mem_threadgroup);
        out[i] = shared[7 - i];
      }
      """
    let results = try [Dialect.cxx, .openCL].map { dialect in
      let folder = try ShaderFolder()
      folder.settings.dialect = dialect
      return try LoadedShader(folder.compile(source), constants: [:]).run("f", count: 8)
    }
    #expect(results[0] == results[1])
    #expect(Set(results[0]).count > 1)
  }

  @Test func theSwitchIsPartOfTheCachesKey() throws {
    let folder = try ShaderFolder()
    #expect(try !folder.compile(smallSource(5)).wasCached)
    folder.settings.dialect = .openCL
    #expect(try !folder.compile(smallSource(5)).wasCached)
    #expect(try folder.compile(smallSource(5)).wasCached)
    folder.settings.dialect = .cxx
    #expect(try folder.compile(smallSource(5)).wasCached)
  }
}
