import Testing

@testable import SoftMetal

@Suite struct StructTests {
  @Test(arguments: [
    ("struct A { int x; };", "struct A { SM_STRUCT(A) int x; };"),
    (
      "template <typename T> struct A<device T *> final\n{ T x; };",
      "template <typename T> struct A<device T *> final\n{ SM_STRUCT(A) T x; };"
    ),
    ("typedef struct A { int x; } A;", "typedef struct A { SM_STRUCT(A) int x; } A;"),
    (
      "struct alignas(16) A { struct B { int y; } b; };",
      "struct alignas(16) A { SM_STRUCT(A) struct B { SM_STRUCT(B) int y; } b; };"
    ),
    (
      "class A { public: float f() const { return A2(1); } };",
      "class A { public: SM_STRUCT(A) private: public: float f() const { return A2(1); } };"
    ),
    (
      "struct A { A(int x) : y(x) {} int y; };",
      "struct A { SM_CONSTRUCTED_STRUCT(A) A(int x) : y(x) {} int y; };"
    ),
    (
      "typedef struct { int x; } A;",
      "typedef struct sm_struct_A { SM_STRUCT(sm_struct_A) int x; } A;"
    ),
    (
      "void f() { struct A { int x; }; }",
      "void f() { struct A { SM_LOCAL_STRUCT(A) int x; }; }"
    ),
    (
      "struct A { const device float *p; static constant int k = 1; };",
      "struct A { SM_STRUCT(A) const device float *p; static constant int k = 1; };"
    ),
    ("union A { int x; };", "union A { SM_STRUCT(A) int x; };"),
    ("struct { int x; } a;", "struct sm_struct_0 { SM_STRUCT(sm_struct_0) int x; } a;"),
    (
      "struct A { int k; union { int x; float y; }; };",
      "struct A { SM_STRUCT(A) int k; union { int x; float y; }; };"
    ),
    ("struct A { const int n; };", "struct A { SM_CONSTANT_STRUCT(A) const int n; };"),
    // A copy constructor of its own, given temporaries.
    (
      "struct A { A(const thread A &x) : y(x.y) {} int y; };",
      "struct A { A(const        A &x) : y(x.y) { const A &sm_x = x; { const thread A &x = *(const thread A *)&sm_x;} } int y; };"
    ),
    // A braced list is for aggregates.
    (
      "struct A { union { int x; }; }; void f() { A a = {{1}}; }",
      "struct A { SM_STRUCT(A) union { int x; }; }; void f() { A a = {{1}}; }"
    ),
  ])
  func getCopies(source: String, expected: String) throws {
    #expect(try Lowered(source).body == expected)
  }

  @Test(arguments: [
    "union { struct { int x; } a; };", "enum class A { x };", "enum struct A { x };", "struct A;",
    "constant struct A a = { 1 };", "struct A { A(const thread A &); int y; };", "struct A { ~A() {} };",
    "struct A { thread int &r; };", "struct A f() { return {}; }",
    "template <class T, struct U> void f() {}",
  ])
  func stay(source: String) throws {
    #expect(try Lowered(source).body == source)
  }
}
