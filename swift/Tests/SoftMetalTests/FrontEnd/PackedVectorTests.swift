import Testing

@testable import SoftMetal

@Suite struct PackedVectorTests {
  func body(_ statement: String, returning type: String = "float3") throws -> String {
    let before = "struct V { packed_float3 at; packed_half3 box[2]; };\nvoid ref(device packed_float3 &r);\n"
    let lowered = try Lowered("\(before)\(type) g(const device packed_float3 *p, constant V &v) { \(statement) }").body
    return String(lowered.split(separator: "{").last?.dropFirst().dropLast(2) ?? "")
  }

  @Test(arguments: [
    ("float3 a = p[1], b = *p;", "float3 a = SM_UNPACK(p[1]), b = SM_UNPACK(*p);"),
    ("return p->x;", "return SM_VALUE(p->x);"),
    ("const device packed_float3 &r = p[1];", "const device packed_float3 &r = p[1];"),
    ("float y = p[1].x * 2;", "float y = p[1].x * 2;"),
    ("f(p[1], v.at, *(p + 2));", "f(SM_UNPACK(p[1]), SM_UNPACK(v.at), SM_UNPACK(*(p + 2)));"),
    ("f(v.box[1] * 2, p[0].zyx);", "f(SM_UNPACK(v.box[1]) * 2, SM_UNPACK(p[0]).zyx);"),
    ("f(p[1][2], v.at[0]);", "f(SM_PARTS(p[1])[2], SM_PARTS(v.at)[0]);"),
    ("p[1] = v.at;", "SM_PLACE(p[1]) = SM_UNPACK(v.at);"),
    ("p[1][0] = 1; p[1].zx = y;", "SM_PLACE(SM_PARTS(p[1])[0]) = 1; SM_PLACE(p[1].zx) = y;"),
    ("p[1] += v.at; p[1].xy *= 2;", "p[1] += SM_UNPACK(v.at); p[1].xy *= 2;"),
    ("ref(p[1]); f(&p[1], sizeof(p[1]));", "ref(p[1]); f(&p[1], sizeof(p[1]));"),
    (
      "f(((device packed_float3 *)q)[1], *(device packed_float3 *)q);",
      "f(SM_UNPACK(((device packed_float3 *)q)[1]), SM_UNPACK(*(device packed_float3 *)q));"
    ),
    ("p += 2; f(p, p + 1, 2 * p[0]);", "p += 2; f(p, p + 1, 2 * SM_UNPACK(p[0]));"),
  ])
  func uses(statement: String, expected: String) throws {
    #expect(try body(statement) == expected)
  }

  @Test func returnedReferencesStay() throws {
    #expect(try body("return p[1];", returning: "const device packed_float3 &") == "return p[1];")
  }

  @Test func aliasesArePacked() throws {
    #expect(
      try Lowered("using vec3 = packed_float3;\nvoid g(device vec3 *p) { f(p[0]); }").body.has("f(SM_UNPACK(p[0]))"))
  }

  @Test func namesOfOtherFunctionsAreNot() throws {
    let source = "void g(device packed_float3 *p) {}\nvoid h(device float *p) { f(p[0]); }"
    #expect(try Lowered(source).body == source)
  }

  @Test func swizzlesOfBools() throws {
    let lowered = try Lowered("void g(bool4 b) { bool2 c = b.xy; b.zw = c; f(b.x); }").body
    #expect(lowered.has("bool2 c = SM_VALUE(b.xy); SM_PLACE(b.zw) = c; f(b.x);"))
  }
}
