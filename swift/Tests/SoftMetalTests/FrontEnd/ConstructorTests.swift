import Testing

@testable import SoftMetal

@Suite struct ConstructorTests {
  @Test(arguments: [
    ("x = float4(1, 2, 3, 4);", "x = sm_make<float4>(1, 2, 3, 4);"),
    ("return packed_half3(a);", "return sm_make<packed_half3>(a);"),
    ("f(uint3(1), vec<T, 2>(b));", "f(sm_make<uint3>(1), sm_make<vec<T, 2>>(b));"),
    ("x = metal::float4(1);", "x = sm_make<metal::float4>(1);"),
    ("x = ::metal::vec<float, 4>(float2(1), 2, 3);", "x = sm_make<::metal::vec<float, 4>>(sm_make<float2>(1), 2, 3);"),
    ("x = static_cast<float4>(y);", "x = sm_make<float4>(y);"),
    ("x = static_cast<vec<float, 4>>(y);", "x = sm_make<vec<float, 4>>(y);"),
    ("x = (float4)a[i] + (half4)-b;", "x = sm_make<float4>(a[i]) + sm_make<half4>(-b);"),
    ("x = (float4)(half4)p->q.r(1) * 2;", "x = sm_make<float4>(sm_make<half4>(p->q.r(1))) * 2;"),
    (
      "x = dot((float4) *p, (metal::vec<float, 4>)f<int, 2>(1)[0]);",
      "x = dot(sm_make<float4>( *p), sm_make<metal::vec<float, 4>>(f<int, 2>(1)[0]));"
    ),
    ("return (int2)(a + b) / 2;", "return sm_make<int2>((a + b)) / 2;"),
    ("x = (uint2)1 < (uint2)n::m;", "x = sm_make<uint2>(1) < sm_make<uint2>(n::m);"),
    ("x = a < float4 (1) ? b : c;", "x = a < sm_make<float4> (1) ? b : c;"),
    ("if (any(x == int2(1, 2))) int2 y = int2(3);", "if (any(x == sm_make<int2>(1, 2))) int2 y = sm_make<int2>(3);"),
  ])
  func becomeCalls(statement: String, expected: String) throws {
    #expect(try Lowered("void g() { \(statement) }").body == "void g() { \(expected) }")
  }

  @Test(arguments: [
    "float4 y{1, 2, 3, 4};", "x = float4{1};", "x = float(1) + int(2);",
    "x = static_cast<float>(y);", "x = (float)y;", "x = (device float4 *)y;", "x = sizeof(float4) * 2;", "f(float4);",
    "void h(float4);", "x = (float4){1, 2, 3, 4};", "x = static_cast<device float4 *>(y);", "x.float4(1);",
    "p->float4(1);",
    "\"float4(1)\"; /* float4(1) */", "device float4 (&r)[2] = q;", "const thread float4 (&r)[2] = q;", "float4x4(1);",
  ])
  func stay(statement: String) throws {
    let source = "void g() { \(statement) }"
    #expect(try Lowered(source).body == source)
  }

  @Test func conversionOperatorsStay() throws {
    let members = "operator float4() const { return v; } float4 v; };"
    #expect(try Lowered("struct S { \(members)").body.hasSuffix(members))
  }

  @Test func aliases() throws {
    let body = try Lowered(
      """
      using V = metal::vec<float, 4>;
      typedef half2 H;
      typedef float Scalar;
      struct P { P(int) {} };
      using Q = P;
      template <typename U> using V3 = vec<U, 3>;
      void g() { V(1); H(2); Scalar(3); Q(4); V3<half>(5); ns::V(6); typename T::V(7); V v(8); }
      """
    ).body
    #expect(
      body.has(
        "sm_make<V>(1); sm_make<H>(2); Scalar(3); Q(4); sm_make<V3<half>>(5); sm_make<ns::V>(6); "
          + "sm_make<typename T::V>(7); V v(sm_make<V>(8));"))
  }

  @Test func typeParametersInTheirScope() throws {
    let body = try Lowered(
      """
      template <typename T, class U = vec<float, (2 > 1)>, int N> T g(T x) { return T(x) + U(N); }
      void h() { T(1); U(2); }
      template <template <typename> class C, typename W> struct S { W f() { return W(C<W>()(1)); } };
      """
    ).body
    #expect(body.has("return sm_make<T>(x) + sm_make<U>(N);"))
    #expect(body.has("{ T(1); U(2); }"))
    #expect(body.has("return sm_make<W>(C<W>()(1));"))
  }
}
