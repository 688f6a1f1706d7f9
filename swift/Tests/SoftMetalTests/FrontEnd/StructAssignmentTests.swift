import Testing

@testable import SoftMetal

@Suite struct StructAssignmentTests {
  func body(_ statement: String) throws -> String {
    let parameters = "device P *p, const device P *c, device float *x, device P &r"
    let lowered = try Lowered("struct P { int a; };\nvoid g(\(parameters)) { \(statement) }").body
    return String(lowered.split(separator: "{").last?.dropFirst().dropLast(2) ?? "")
  }

  @Test(arguments: [
    ("p[1] = y;", "::softmetal::assign(p[1]) = y;"),
    ("p[f(1)[2]] = p[0];", "::softmetal::assign(p[f(1)[2]]) = p[0];"),
    ("*p = y;", "::softmetal::assign(*p) = y;"),
    ("*(p + 1) = y;", "::softmetal::assign(*(p + 1)) = y;"),
    ("r = y;", "::softmetal::assign(r) = y;"),
    (
      "if (a == b) p[1] = y; else r = y;", "if (a == b) ::softmetal::assign(p[1]) = y; else ::softmetal::assign(r) = y;"
    ),
    ("device P *q = p; q[0] = y;", "device P *q = p; ::softmetal::assign(q[0]) = y;"),
    ("p = c;", "::softmetal::assign(p) = c;"),
  ])
  func places(statement: String, expected: String) throws {
    #expect(try body(statement) == expected)
  }

  @Test(arguments: [
    "p[1].a = 2;", "x[1] = 2;", "P l = p[0]; l = p[1];", "int y = p[0].a;", "p->a = 1;", "p[0].a += 1;",
    "z[p[0].a] = 1;",
  ])
  func otherAssignmentsStay(statement: String) throws {
    #expect(try body(statement) == statement)
  }

  @Test func structsReachAllMemories() throws {
    let compiled = try ShaderFolder().compile(
      """
      #include <metal_stdlib>
      using namespace metal;
      struct Pair { int value; int index; };
      constant Pair kFirst = {5, 6};
      kernel void f(device int *out [[buffer(0)]], uint i [[thread_position_in_threadgroup]]) {
        threadgroup Pair shared[2], best;
        Pair mine = {int(i) + 1, int(i)};
        shared[i] = mine;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (i == 0) best = shared[1];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        device Pair *pairs = (device Pair *)out;
        pairs[i] = best;
        if (i == 1) pairs[1] = kFirst;
        device Pair &second = pairs[2];
        if (i == 1) second = {7, 8};
      }
      """)
    #expect(try LoadedShader(compiled, constants: [:]).run("f", count: 2, numbers: 6) == [2, 1, 5, 6, 7, 8])
  }
}
