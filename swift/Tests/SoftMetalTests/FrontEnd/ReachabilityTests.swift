import Testing

@testable import SoftMetal

@Suite struct ReachabilityTests {
  func execution(_ source: String) throws -> String {
    let tail = try Lowered(source).tail
    if tail.has("SM_EXECUTION_VECTORS_OR_LOOP") { return "vectors or loop" }
    return tail.has("SM_EXECUTION_THREADS") ? (tail.has(", 1, (::f") ? "matrices" : "threads") : "loop"
  }

  @Test(arguments: [
    ("kernel void f(device int *a, uint i [[thread_position_in_grid]]) { a[i] = 1; }", "loop"),
    (
      "kernel void f(uint simd_lane [[thread_index_in_simdgroup]], uint simdgroup_id [[simdgroup_index_in_threadgroup]]) { int x = simd_lane + simdgroup_id; }",
      "loop"
    ),
    ("kernel void f() { /* simd_sum(1) */ }", "loop"),
    ("kernel void f(device int *a) { for (int i = 0; i < 4; i++) { a[i] = 1; } }", "vectors or loop"),
    ("int g(int x) { while (x < 9) { x *= 3; } return x; } kernel void f() { g(1); }", "vectors or loop"),
    ("kernel void f(device int *a) { float x[4]; for (int i = 0; i < 4; i++) { x[i] = a[i]; } }", "loop"),
    (
      "int g(const thread int *a) { return a[0]; } kernel void f() { do { g(nullptr); } while (false); }",
      "vectors or loop"
    ),
    ("int g() { return simd_sum(1); } kernel void f() { }", "loop"),
    ("kernel void f() { simd_sum(1); }", "threads"),
    ("kernel void f() { metal::simd_shuffle_xor<int>(1, 2); }", "threads"),
    ("kernel void f(threadgroup int *p [[threadgroup(0)]]) { }", "threads"),
    ("kernel void f() { threadgroup int x[4]; }", "threads"),
    (
      "struct S { int x; S() threadgroup; }; bool operator<(S a, S b) { return a.x < b.x; } int g(threadgroup S *s) { return s->x; } kernel void f(device int *a) { if (a[0] < 1) a[1] = 2; }",
      "loop"
    ),
    ("kernel void f() { threadgroup_barrier(mem_flags::mem_none); }", "threads"),
    ("kernel void f() { simdgroup_barrier(mem_flags::mem_none); }", "threads"),
    ("kernel void f() { quad_sum(1); }", "threads"),
    ("int h() { return simd_sum(1); } int g() { return h(); } kernel void f() { g(); }", "threads"),
    ("struct S { static int g() { return simd_max(1); } }; kernel void f() { S::g(); }", "threads"),
    ("using A = struct B; struct B { int g() { return simd_max(1); } }; kernel void f() { A a; }", "threads"),
    (
      "struct S { int x; }; S operator+(S a, S b) { return S{simd_sum(a.x)}; } kernel void f() { S a, b; a + b; }",
      "threads"
    ),
    ("kernel void f() { simdgroup_float8x8 m; }", "matrices"),
    ("kernel void f() { simdgroup_matrix<half, 8, 8> m; }", "matrices"),
    (
      "struct M { static void run() { simdgroup_load(a, b); } }; template <typename T> kernel void f() { T::run(); }\ntemplate [[host_name(\"x\")]] kernel void f<M>();",
      "matrices"
    ),
  ])
  func executions(source: String, expected: String) throws {
    #expect(try execution(source) == expected)
  }

  @Test func constantsThroughFunctionsAndConditions() throws {
    let tail = try Lowered(
      """
      constant int a [[function_constant(0)]];
      constant int b [[function_constant(1)]], c [[function_constant(2)]];
      constant int d [[function_constant(3)]];
      constant int e = d + 1;
      int g() { return a; }
      kernel void f(device int *x, device int *y [[buffer(1), function_constant(c)]]) { x[0] = g(); }
      kernel void h(device int *x) { x[0] = e; }
      """
    ).tail
    #expect(tail.has("sm_constants_0[] = {0, 2};"))
    #expect(tail.has("sm_constants_1[] = {3};"))
  }
}
