import Testing

@testable import SoftMetal

@Suite struct MemberQualifierTests {
  @Test(arguments: [
    ("int f() const device { return x; }", "int f() const        { return x; }"),
    ("int f(int y) constant;", "int f(::softmetal::ConstantObject, int y)         ;"),
    ("int f() const thread { return x; }", "int f() const thread { return x; }"),
    ("int f() const { device int *p; return x; }", "int f() const { device int *p; return x; }"),
    (
      "int f() const device { return x; } int f() const constant { return x; }",
      "int f() const        { return x; } int f(::softmetal::ConstantObject) const          { return x; }"
    ),
    (
      "int f() const device { return x; } int f() const { return x; }",
      "int f(::softmetal::DeviceObject) const        { return x; } int f() const { return x; }"
    ),
    (
      "int f() const device { return x; } int f() const thread { return 2; }",
      "int f(::softmetal::DeviceObject) const        { return x; } int f() const thread { return 2; }"
    ),
  ])
  func members(member: String, expected: String) throws {
    #expect(try Lowered("struct A { ~A(); int x; \(member) };").body == "struct A { ~A(); int x; \(expected) };")
  }

  @Test func callsOnOtherMemoryAreOfCopies() throws {
    let source = """
      struct A { int x; int f() const device { return x; } int h() const { return x; } };
      int g(device A *p, thread A &a) { return p[1].f() + p->f() + a.h(); }
      """
    #expect(try Lowered(source).body.has("return SM_VALUE(p[1]).f() + SM_VALUE(*p).f() + a.h();"))
  }

  @Test func constructorsAndConversions() throws {
    let lowered = try Lowered("union A { int x; A() threadgroup : x(0) {} operator int() const device { return x; } };")
    #expect(lowered.body.contains("A(::softmetal::ThreadgroupObject)             : x(0) {}"))
    #expect(lowered.body.contains(" int sm_conversion_"))
  }
}
