import Testing

@testable import SoftMetal

@Suite struct RefusalTests {
  @Test(arguments: [
    (
      "kernel void f(device int *a [[buffer(1)]], device int *b [[buffer(1)]]) {}",
      "1:60: error: buffer index 1 is already used"
    ),
    (
      "kernel void f(device int *a [[buffer(31)]]) {}",
      "1:31: error: buffer index 31 is out of bounds: it must be between 0 and 30"
    ),
    ("kernel int f(device int *a) { return 1; }", "1:12: error: kernel 'f' must return void"),
    ("kernel void f(int a) {}", "1:15: error: a kernel argument is a pointer or a reference"),
    ("kernel void f(float *a) {}", "1:15: error: a pointer or reference argument of a kernel needs an address space"),
    ("kernel void f(device int *a [[threadgroup(0)]]) {}", "'threadgroup' does not go with the address space 'device'"),
    ("kernel void f(threadgroup int *a [[buffer(0)]]) {}", "'buffer' does not go with the address space 'threadgroup'"),
    ("kernel void f(texture2d<float> t [[texture(0)]]) {}", "attribute 'texture' is not supported"),
    ("kernel void f() {} kernel void f(device int *a) {}", "two kernels have the name 'f'"),
    ("void f() { double x; }", "1:12: error: 'double' is not supported in Metal; use 'float'"),
    ("void f() { std::max(1, 2); }", "the C++ standard library is not available"),
    ("struct A { virtual void f(); };", "virtual functions are not supported"),
    ("void f() { try { } catch (...) { } }", "exceptions are not supported"),
    ("void f() { goto end; end: ; }", "'goto' is not supported"),
    ("void f() { auto g = [](int x) { return x; }; }", "lambda expressions are not supported"),
    ("void f() { auto g = [&] { return 1; }; }", "lambda expressions are not supported"),
    (
      "int f(int n) { return n ? f(n - 1) : 0; } kernel void k(device int *a) { a[0] = f(3); }",
      "1:5: error: function 'f' calls itself"
    ),
    (
      "int g(int); int f(int n) { return g(n); } int g(int n) { return f(n); } kernel void k(device int *a) { a[0] = f(3); }",
      "calls itself"
    ),
    ("template [[host_name(\"x\")]] kernel void nowhere<float>();", "names a function template of this file"),
  ])
  func refused(source: String, message: String) {
    let log = Lowered.log(source)
    #expect(log.has(message), "\(log)")
    #expect(log.has("test.metal:1:"))
    #expect(log.has(source + "\n"))
    #expect(log.has("^\n"))
  }

  @Test(arguments: [
    "void f() { int a[2]; a[0] = 1; int x = a[a[0]]; }",
    "struct A { A(const thread A &) = delete; };",
    "namespace my { constant int std = 1; } int f() { return my::std; }",
    "int f(int x) { return x; } float f(float x) { return float(f(int(x))); } kernel void k(device int *a) { f(1); }",
    "template <int N> int f() { if constexpr (N == 0) return 0; else return f<N - 1>(); } kernel void k(device int *a) { a[0] = f<3>(); }",
    "void f(device int *a [[maybe_unused]]) {}",
  ])
  func accepted(source: String) {
    #expect(Lowered.log(source) == "")
  }

  @Test func severalErrorsInOneLog() {
    let log = Lowered.log("void f() {\n  double x;\n  goto a;\n}\n")
    #expect(log.has("test.metal:2:3: error"))
    #expect(log.has("test.metal:3:3: error"))
    #expect(log.has("2 errors generated."))
  }
}
