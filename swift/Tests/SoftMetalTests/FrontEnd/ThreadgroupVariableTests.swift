import Testing

@testable import SoftMetal

@Suite struct ThreadgroupVariableTests {
  func body(_ statement: String, head: String = "kernel void f()") throws -> String {
    try Lowered("\(head) {\n\(statement)\n}").body.squeezed
  }

  func reference(_ name: String, _ number: Int, of owner: String = "f") -> String {
    let type = "sm_type_\(number)_\(name)"
    return "threadgroup \(type) &\(name) = ::softmetal::threadgroup_variable<\(type), \(number), (\(owner))>();"
  }

  @Test func array() throws {
    let text = try body("threadgroup float x[4][N > 2 ? 3 : 1];")
    #expect(text.has("typedef float sm_type_0_x[4][N > 2 ? 3 : 1]; " + reference("x", 0)))
  }

  @Test func severalDeclarators() throws {
    let text = try body("threadgroup ns::P<float, (2 > 1)> a, b[3],\n c[(1 << 2)];")
    #expect(text.has("typedef ns::P<float, (2 > 1)> sm_type_0_a; " + reference("a", 0)))
    #expect(text.has("typedef ns :: P < float , ( 2 > 1 ) > sm_type_1_b[3]; " + reference("b", 1)))
    #expect(text.has("sm_type_2_c[(1 << 2)]; " + reference("c", 2)))
    #expect(text.has("\n}"))
  }

  @Test func qualifiersAndAlignment() throws {
    #expect(
      try body("static threadgroup alignas(16) half x[2];").has("__attribute__((aligned(16))) half sm_type_0_x[2];"))
    #expect(
      try body("alignas(32) threadgroup half x[2];").has("__attribute__((aligned(32))) typedef half sm_type_0_x[2];"))
    #expect(try body("float threadgroup x[2];").has("float typedef sm_type_0_x[2];"))
  }

  @Test func namesTheSpecialization() throws {
    let text = try body("threadgroup T x[N];", head: "template <typename T, int N, typename... R> kernel void f()")
    #expect(text.has(reference("x", 0, of: "f<T, N, R...>")))
  }

  @Test(arguments: [
    "threadgroup float *p = q;", "threadgroup float &p = q;",
    "const threadgroup half4 *p = (const threadgroup half4 *)q;",
    "auto p = reinterpret_cast<threadgroup float *>(q);", "for (threadgroup float *p = q; p; ++p) {}",
    "using P = threadgroup float *;", "typedef threadgroup float *P;", "g((threadgroup float *)q, 1);",
    "x = *(threadgroup float *)q;", "// threadgroup float x[2];", "foo<threadgroup float>(1);",
    "threadgroup float (*p)[4] = q;",
  ])
  func otherUsesStay(statement: String) throws {
    let source = "kernel void f() {\n\(statement)\n}"
    #expect(try Lowered(source).body == "static " + source)
  }

  @Test func refusals() {
    #expect(
      Lowered.log("kernel void f() {\n  threadgroup float x = 1;\n}").has(
        "test.metal:2:23: error: variable 'x' in the threadgroup address space cannot have an initializer\n"
          + "  threadgroup float x = 1;\n                      ^\n"))
    #expect(
      Lowered.log("void g() { threadgroup float x[2]; }").has("'x' in the threadgroup address space is not inside"))
    #expect(Lowered.log("threadgroup float x[2];").has("'x' in the threadgroup address space is not inside"))
  }
}
