import Testing

@testable import SoftMetal

/// What vectors have beyond clang's: comparisons of type bool, initialisers in parentheses, swizzles of classes.
@Suite struct VectorSyntaxTests {
  func body(_ statement: String) throws -> String {
    let lowered = try Lowered("void h(bool3, int); void g(float3 a, float3 b, int n) { \(statement) }").body
    return String(lowered.split(separator: "{").last?.dropFirst().dropLast(2) ?? "")
  }

  @Test(arguments: [
    ("float3 c = float3(a < b);", "float3 c = sm_make<float3>(sm_truth(a < b));"),
    ("f(float4(a >= b, n << 2));", "f(sm_make<float4>(sm_truth(a >= b), n << 2));"),
    ("f(float2(n > 1, n < 3));", "f(sm_make<float2>(sm_truth(n > 1), sm_truth(n < 3)));"),
    ("f((a < b).xy, (!a)[1]);", "f((sm_truth(a < b)).xy, (sm_truth(!a))[1]);"),
    ("auto m = a == b;", "auto m = sm_truth(a == b);"),
    ("f((int3)(a != b));", "f(sm_make<int3>(sm_truth((a != b))));"),
    ("f(int3((a < b) & (b < a)));", "f(sm_make<int3>(sm_truth((a < b) & (b < a))));"),
    ("auto m = n ? a < b : a > b;", "auto m = sm_truth(n ? a < b : a > b);"),
    ("decltype(a < b) m; h(a < b, n); f(a < b);", "decltype(sm_truth(a < b)) m; h(sm_truth(a < b), n); f(a < b);"),
    ("int3 m = a < b;", "int3 m = sm_truth(a < b);"),
  ])
  func comparisons(statement: String, expected: String) throws {
    #expect(try body(statement) == expected)
  }

  @Test(arguments: [
    ("f(float3(n >> 1), float3(a - b));", "f(sm_make<float3>(n >> 1), sm_make<float3>(a - b));"),
    ("f(float3(n < 1 ? a : b));", "f(sm_make<float3>(n < 1 ? a : b));"),
    ("auto m = make<float, 8>(n);", "auto m = make<float, 8>(n);"),
    ("f(float3(h<float>(n)), (a - b).x);", "f(sm_make<float3>(h<float>(n)), (a - b).x);"),
    ("if (n < 1) f(a);", "if (n < 1) f(a);"),
  ])
  func otherExpressionsStay(statement: String, expected: String) throws {
    #expect(try body(statement) == expected)
  }

  @Test(arguments: [
    ("float4 c(a, 1);", "float4 c(sm_make<float4>(a, 1));"),
    ("const float2 c(a.xy), d(n, 2);", "const float2 c(sm_make<float2>(a.xy)), d(sm_make<float2>(n, 2));"),
    ("metal::vec<half, 4> c(n);", "metal::vec<half, 4> c(sm_make<metal :: vec < half , 4 >>(n));"),
    ("typename T::V c(a, 1);", "typename T::V c(a, 1);"),
    ("float3 c(float3 x); float3 d(float3);", "float3 c(float3 x); float3 d(float3);"),
    ("thread float3 &c(a); float3 d();", "thread float3 &c(a); float3 d();"),
  ])
  func initialisers(statement: String, expected: String) throws {
    #expect(try body(statement) == expected)
  }

  @Test func membersInHeadsOfConstructors() throws {
    let lowered = try Lowered("struct S { float4 v; int n; S(float3 a, int k) : n(k), v(a, 1) {} };").body
    #expect(lowered.has(": n(k), v(sm_make<sm_bare<decltype(v)>>(a, 1)) {}"))
  }

  @Test func swizzlesThatTheSourceUses() throws {
    let source = "void g(float4 v, int y) { v.xy = v.bgr.xy; f(v.x, v.xr, v.wz); }"
    let definitions = Swizzles.definitions(LoweringContext(SourceText(Array(source.utf8))))
    #expect(
      definitions == """
        #define SM_SWIZZLES_2(S) S(xy, 0, 1)
        #define SM_SWIZZLES_3(S) S(bgr, 2, 1, 0) S(xy, 0, 1)
        #define SM_SWIZZLES_4(S) S(bgr, 2, 1, 0) S(wz, 3, 2) S(xy, 0, 1)

        """)
  }

  /// Wraps nest as their ranges do, whichever is made first.
  @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 0, 2]])
  func nestedEdits(order: [Int]) {
    let source = SourceText(Array("abc".utf8))
    var edits = EditList()
    for wrap in order { edits.wrap(0..<wrap + 1, "\(wrap)(", ")\(wrap)") }
    edits.insert("!", at: 1)
    #expect(String(decoding: edits.apply(to: source).bytes, as: UTF8.self) == "2(1(0(a)0!b)1c)2")
  }

  /// Edits inside a blanked range are dropped; others that overlap name the two steps.
  @Test func overlappingEdits() {
    var edits = EditList()
    edits.step = "First"
    edits.blank(0..<3, in: SourceText(Array("abcdef".utf8)))
    edits.replace(3..<5, with: "x")
    edits.step = "Second"
    edits.replace(1..<2, with: "y")
    edits.insert("!", at: 5)
    #expect(edits.overlap() == nil)
    edits.step = "Wrap"
    edits.wrap(1..<3, "(", ")")
    #expect(String(decoding: edits.apply(to: SourceText(Array("abcdef".utf8))).bytes, as: UTF8.self) == "   x!f")
    var others = edits
    others.replace(2..<4, with: "z")
    #expect(others.overlap()?.offset == 2)
    #expect(others.overlap().map { [$0.steps.0, $0.steps.1] } == ["First", "Wrap"])
    edits.insert("z", at: 4)
    #expect(edits.overlap()?.offset == 4)
  }

  @Test(arguments: [
    ("template <typename T> T f(vec<T, 4> v); void g() { f(x); }", true),
    ("template <typename T> T f(vec<T, 4> v); void g() { f<int>(x); }", false),
    ("template <typename T> struct S<vec<T, 2>> {};", true),
    ("template <typename T> struct S { vec<T, 2> v; T f(vec<T, 2> w); };", false),
    ("template <typename T> using V = vec<T, 4>; template <typename T> T f(V<T> v); void g() { f(x); }", true),
    ("template <typename T> vec<T, 2> f(T a); void g() { f(x); }", false),
  ])
  func deducedVectors(source: String, isDeduced: Bool) throws {
    #expect(try Lowered(source).body.has("sm_vector<") == isDeduced)
  }
}
