import Testing

@testable import SoftMetal

@Suite struct StructAssignmentTests {
  func body(_ statement: String) throws -> String {
    let parameters = "device P *p, const device P *c, device float *x, device P &r"
    let lowered = try Lowered("struct P { int a; };\nvoid g(\(parameters)) { \(statement) }").body
    return String(lowered.split(separator: "{").last?.dropFirst().dropLast(2) ?? "")
  }

  @Test(arguments: [
    ("p[1] = y;", "SM_PLACE(p[1]) = y;"),
    ("p[f(1)[2]] = p[0];", "SM_PLACE(p[f(1)[2]]) = p[0];"),
    ("*p = y;", "SM_PLACE(*p) = y;"),
    ("*(p + 1) = y;", "SM_PLACE(*(p + 1)) = y;"),
    ("r = y;", "SM_PLACE(r) = y;"),
    (
      "if (a == b) p[1] = y; else r = y;", "if (a == b) SM_PLACE(p[1]) = y; else SM_PLACE(r) = y;"
    ),
    ("device P *q = p; q[0] = y;", "device P *q = p; SM_PLACE(q[0]) = y;"),
    ("p = c;", "SM_PLACE(p) = c;"),
    ("p[1].a = 2;", "SM_PLACE(p[1].a) = 2;"),
    ("(*p).a = 2;", "SM_PLACE((*p).a) = 2;"),
    ("P l = p[0]; l = p[1];", "P l = p[0]; SM_PLACE(l) = p[1];"),
  ])
  func places(statement: String, expected: String) throws {
    #expect(try body(statement) == expected)
  }

  @Test(arguments: [
    "P l = p[0];", "int y = p[0].a;", "p[0].a += 1;", "auto [m, n] = z;", "const device P &q = p[1];",
    "thread P *q = &l;",
    "for (int k = 0; k < 2; ++k);", "bool same = x[0] == 1;", "using Q = P;",
  ])
  func declarationsStay(statement: String) throws {
    #expect(try body(statement) == statement)
  }

  @Test func enumeratorsStay() throws {
    let source = "struct P { int a; };\nvoid g() { enum { kOne = 1, kTwo = 2 }; }"
    #expect(try !Lowered(source).body.contains("SM_PLACE"))
  }

  @Test func sourcesWithoutStructsStay() throws {
    #expect(try Lowered("void g(device float *x) { x[0] = 1; }").body == "void g(device float *x) { x[0] = 1; }")
  }

  @Test func structsReachAllMemories() throws {
    let compiled = try ShaderFolder().compile(
      """
      #include <metal_stdlib>
      using namespace metal;
      struct Pair { int value; int index; };
      constant Pair kFirst = {5, 6};
      template <typename T> void put(device T *to, T value) { to[0] = value; }
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
        put(pairs + 3, best);
      }
      """)
    #expect(try LoadedShader(compiled, constants: [:]).run("f", count: 2, numbers: 8) == [2, 1, 5, 6, 7, 8, 2, 1])
  }
}
