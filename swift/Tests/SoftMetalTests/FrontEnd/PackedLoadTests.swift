import Testing

@testable import SoftMetal

@Suite struct PackedLoadTests {
  func body(_ statement: String, returning type: String = "float3") throws -> String {
    let lowered = try Lowered("\(type) g(const device packed_float3 *p) { \(statement) }").body
    return String(lowered.split(separator: "{").last?.dropFirst().dropLast(2) ?? "")
  }

  @Test(arguments: [
    ("float3 v = p[1], w = *p;", "float3 v = SM_VALUE(p[1]), w = SM_VALUE(*p);"),
    ("return p->x;", "return SM_VALUE(p->x);"),
    ("const device packed_float3 &r = p[1];", "const device packed_float3 &r = p[1];"),
    ("float3 v = float3(1);", "float3 v = sm_make<float3>(1);"),
    ("float y = p[1].x * 2;", "float y = p[1].x * 2;"),
  ])
  func places(statement: String, expected: String) throws {
    #expect(try body(statement) == expected)
  }

  @Test func returnedReferencesStay() throws {
    #expect(try body("return p[1];", returning: "const device packed_float3 &") == "return p[1];")
  }
}
