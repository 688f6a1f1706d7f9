import Testing

@testable import SoftMetal

@Suite struct MemberQualifierTests {
  @Test(arguments: [
    ("int f() const device { return x; }", "int f(::softmetal::DeviceObject) const        { return x; }"),
    ("int f(int y) constant;", "int f(::softmetal::ConstantObject, int y)         ;"),
    ("int f() const thread { return x; }", "int f() const thread { return x; }"),
    ("int f() const { device int *p; return x; }", "int f() const { device int *p; return x; }"),
  ])
  func members(member: String, expected: String) throws {
    #expect(try Lowered("union A { int x; \(member) };").body == "union A { int x; \(expected) };")
  }

  @Test func constructorsAndConversions() throws {
    let lowered = try Lowered("union A { int x; A() threadgroup : x(0) {} operator int() const device { return x; } };")
    #expect(lowered.body.contains("A(::softmetal::ThreadgroupObject)             : x(0) {}"))
    #expect(lowered.body.contains(" int sm_conversion_"))
  }
}
