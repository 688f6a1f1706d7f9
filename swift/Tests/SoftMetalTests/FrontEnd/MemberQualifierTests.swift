import Testing

@testable import SoftMetal

@Suite struct MemberQualifierTests {
  @Test(arguments: [
    (
      "int f() const device { return x; }",
      "int f(::softmetal::DeviceObject) const        { "
        + "auto &sm_self = ::softmetal::in_device(*this); auto &x = sm_self.x; { return x; } }"
    ),
    (
      "void f(int x) threadgroup { this->x = x; }",
      "void f(::softmetal::ThreadgroupObject, int x)             { "
        + "auto &sm_self = ::softmetal::in_threadgroup(*this); { SM_PLACE((&sm_self)->x) = x; } }"
    ),
    ("int f(int y) constant;", "int f(::softmetal::ConstantObject, int y) const         ;"),
    ("int f() const thread { return x; }", "int f() const thread { return x; }"),
    ("int f() const { device int *p; return x; }", "int f() const { device int *p; return x; }"),
    (
      "int f() const device; int f() const; int g() { return f(); }",
      "int f(::softmetal::DeviceObject) const       ; int f(::softmetal::ThreadObject) const; "
        + "int g() { return f(::softmetal::ThreadObject{}); }"
    ),
    (
      "void operator+=(int y) device;",
      "friend void operator+=(device A &sm_self, int y)       ;"
    ),
    ("bool operator!() const constant;", "friend bool operator!(constant A &sm_self)               ;"),
  ])
  func members(member: String, expected: String) throws {
    let lowered = try Lowered("struct A { ~A(); int x; \(member) };").body
    #expect(lowered.squeezed == "struct A { ~A(); int x; \(expected) };".squeezed)
  }

  @Test func callsTellTheMemoryOfTheirObject() throws {
    let source = """
      struct A { int x; int f(int y) const device { return g() + y; } int g() const device; int h() const { return x; } };
      int A::g() const device { return x; }
      int k(device A *p, thread A &a) { return p[1].f(p->g()) + a.h() + f(2) + A().g(); }
      """
    let lowered = try Lowered(source).body
    #expect(
      lowered.has(
        "return SM_CALL((p[1]), SM_NAME(f), SM_CALL((*p), SM_NAME(g))) + a.h() + f(2) + SM_CALL((A()), SM_NAME(g));"))
    #expect(lowered.has("{ return g(::softmetal::DeviceObject{}) + y; }"))
    #expect(lowered.squeezed.has("int A::g(::softmetal::DeviceObject) const { auto &sm_self"))
  }

  @Test func elementsAndCallsOfObjects() throws {
    let source = """
      struct A { int x[4]; device int &operator[](int k) device { return x[k]; } int operator()(int k) const device; };
      void g(device A *p, thread A &a) { p[1][2] = (*p)(3) + a[0] + x[1]; }
      """
    let lowered = try Lowered(source).body
    #expect(
      lowered.has(
        "SM_PLACE(SM_CALL((p[1]), sm_at, 2)) = SM_CALL(((*p)), sm_call, 3) + SM_CALL((a), sm_at, 0) + x[1];"))
  }

  @Test func functionsWithoutQualifierAreRefused() {
    let log = Lowered.log("struct A { int x; int f() { return x; } int g() device { return f(); } };")
    #expect(log.contains("member function 'f' is not qualified for an object in device memory"))
  }

  @Test func constructorsAndConversions() throws {
    let lowered = try Lowered("union A { int x; A() threadgroup : x(0) {} operator int() const device { return x; } };")
    #expect(lowered.body.contains("A(::softmetal::ThreadgroupObject)             : x(0) {}"))
    #expect(lowered.body.contains(" int sm_conversion_"))
  }

  @Test func membersOfAClass() throws {
    let source = """
      class A : public B<int> { public: float x, *p[2] = {}; uint low : 4; static int s; struct { int y; }; enum { kOne };
        A(int v) : x(v), p{0} { } int f(int a = 1) const { return a; } static int g(); template <typename T> T h(T t); int z{3};
        struct Inner { int hidden; } inner; A operator+(A o); union { int u; float w; }; using T = int; friend int k(A a); };
      """
    let list = TokenList(SourceText(Array(source.utf8)))
    let definition = try #require(ClassDefinition.all(list).first)
    #expect(definition.dataMembers == ["x", "p", "y", "z", "inner", "u", "w"])
    #expect(definition.functions == ["f", "h"])
    #expect(definition.staticFunctions == ["g"])
    #expect(definition.bases.contains("B"))
  }
}
