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
    ("void f() { S s = c ? *p : S{}; }", "S s = c ? sm_value((*p)) : sm_value((S{}));"),
    ("void f() { int s = c ? 1 : -2; }", "int s = c ? 1 : -2;"),
    ("void f() { g(c ? a : d ? b : e); }", "g(c ? sm_value((a)) : sm_value((d ? sm_value((b)) : sm_value((e)))));"),
    ("void f() { thread float &r = c ? a : b; }", "thread float &r = c ? a : b;"),
    ("void f() { (c ? a : b) = 3; }", "(c ? a : b) = 3;"),
    ("void f() { auto p = &(c ? a : b); }", "auto p = &(c ? a : b);"),
    // Constructors by memory.
    ("struct S { int x; S() thread : x(1) {} };", "S() : x(1) {}"),
    // Casts that may be between half and bfloat.
    ("template <typename T> T f(half x, bfloat y) { return T(x); }", "return sm_make<T>(x);"),
    ("template <typename T> T f(half x, bfloat y) { return static_cast<T>(x); }", "return sm_make<T>(x);"),
    ("template <typename T> T f(half x) { return T(x); }", "return T(x);"),
    ("template <half (*g)(half)> bfloat f(bfloat x);", "template <half (&g)(half)> bfloat f(bfloat x);"),
    // Casts to what may be a reference.
    (
      "template <typename R> float f(device float &x) { return (R)x; } void g() { f<device float &>(y); }",
      "return sm_make<R>(x);"
    ),
    ("template <typename R> float f(device float &x) { return (R)x; }", "return (R)x;"),
    (
      "struct S { typedef device float &R; }; void f(device float &x) { g((S::R)x); }",
      "g((*(__remove_reference_t(S::R) *)&(x)));"
    ),
    // Structs in methods.
    (
      "template <typename T> struct A { T f() const { typedef struct { T a; } B; return B().a; } };",
      "typedef struct sm_struct_B { SM_LOCAL_STRUCT(sm_struct_B)"
    ),
    // Functions of thread objects.
    ("struct S { int x; thread int &at(int i) { return x; } };", "thread int &at(int i) thread { return x; }"),
    ("struct S { int x; void set(int i) { x = i; } };", "void set(int i) thread { x = i; }"),
    ("struct S { int x; int at(int i) const { return x; } };", "int at(int i) const { return x; }"),
    ("struct S { int x; int at(int i) const thread { return x; } };", "int at(int i) const { return x; }"),
    // Constant references to thread memory.
    (
      "int f(const thread int &x) { return x; }",
      "int f(const int &x) { const int &sm_x = x; { const thread int &x = *(const thread int *)&sm_x; return x; } }"
    ),
    (
      "S operator+(thread const A<int> &a, S b) { return b; }",
      "{ const A < int > &sm_a = a; { const thread A < int > &a = *(const thread A < int > *)&sm_a; return b; } }"
    ),
    ("constexpr int f(const thread int &x) { return x; }", "constexpr int f(const int &x) { return x; }"),
    ("constexpr int f(const thread int &x) { return g(x); }", "constexpr int f(const thread int &x) { return g(x); }"),
    ("int f(const thread int &x); int f(const thread int &y) { return y; }", "f(const thread int &y) { return y; }"),
    ("template <class T> S operator*(S s, const thread T &t) { return s; }", "operator*(S s, const T t) { return s; }"),
    (
      "template <typename T> S operator*(thread S &s, const thread T &x) { return s; }",
      "S operator*(thread S &s, const thread T &x) { return s; }"
    ),
    // The object of a constructor.
    (
      "struct S { int x; S(int i) : x(i) { set(this->x); } void set(int i) { x = i; } };",
      "S(int i) : x(i) { ((thread S *)this)->set(((thread S *)this)->x); }"
    ),
    // Demands to unroll, for each executor to take or leave.
    (
      "void f() {\n#pragma clang loop unroll(full)\nfor (;;) {} }",
      "SM_UNROLL(\"clang loop unroll ( full )\")\nfor (;;) {} }"
    ),
    (
      "void f() {\n#pragma clang loop unroll_count(2)\nfor (;;) {} }",
      "void f() {\nSM_UNROLL(\"clang loop unroll_count ( 2 )\")\nfor (;;) {} }"
    ),
    ("void f() {\n#pragma unroll 4\nfor (;;) {} }", "SM_UNROLL(\"unroll 4\")\nfor (;;) {} }"),
    ("void f() { _Pragma(\"unroll\") for (;;) {} }", "void f() { SM_UNROLL(\"unroll\") for (;;) {} }"),
    ("void f() {\n#pragma unroll(MACRO)\nfor (;;) {} }", "void f() {\n\nfor (;;) {} }"),
    ("void f() {\n#pragma unroll \\\n 4\nfor (;;) {} }", "void f() {\nSM_UNROLL(\"unroll 4\")\n\nfor (;;) {} }"),
    // What else clang has not.
    ("void f() { decltype(x) y; decltype(auto) z = y; }", "SM_DECLTYPE(x) y; decltype(auto) z = y;"),
  ])
  func steps(source: String, expected: String) throws {
    let body = try Lowered(source).body
    #expect(body.squeezed.has(expected), "\(body)")
  }

  @Test(arguments: [
    ("struct S { int x; S() threadgroup : x(1) {} S() device = default; int y; };", "x(1)"),
    ("template <int N> constant float S<N>::table[2];", "table"),
    ("metal::half f(::metal::float x);", "metal"),
    ("extern \"C\" { float f(float x); }", "{"),
    ("extern \"C\" float f(float x);", "extern"),
    ("[[clang::optnone]] float f(float x);", "optnone"),
  ])
  func removed(source: String, part: String) throws {
    #expect(try !Lowered(source).body.has(part))
  }
}
