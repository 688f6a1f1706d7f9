import Testing

@testable import SoftMetal

/// What C++ for OpenCL lacks of Metal.
@Suite struct StepTests {
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
    let body = try Lowered(source).body
    #expect(body.squeezed.has(expected), "\(body)")
  }

  @Test(arguments: [
    ("struct S { int x; S() threadgroup : x(1) {} S() device = default; int y; };", "x(1)"),
    ("template <int N> constant float S<N>::table[2];", "table"),
  ])
  func removed(source: String, part: String) throws {
    #expect(try !Lowered(source).body.has(part))
  }
}
