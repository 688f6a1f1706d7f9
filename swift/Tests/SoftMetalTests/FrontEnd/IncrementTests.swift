import Testing

@testable import SoftMetal

@Suite struct IncrementTests {
  func body(_ statement: String) throws -> String {
    let source = "template <typename T> void g(float4 v, device float4 *p, thread S &s, int n, T t) { \(statement) }"
    let lowered = try Lowered(source).body
    return String(lowered.split(separator: "{").last?.dropFirst().dropLast(2) ?? "").squeezed
  }

  @Test(arguments: [
    ("++v;", "(v += 1);"),
    ("v++;", "v += 1;"),
    ("--t; t--;", "(t -= 1); t -= 1;"),
    ("v = v++;", "v = sm_add_after(v);"),
    ("return s.v--;", "return sm_subtract_after(s.v);"),
    ("p[1]++; v = p[1]++;", "p[1] += 1; v = sm_add_after(p[1]);"),
    ("if (n) v++; else t++;", "if (n) v += 1; else t += 1;"),
    ("for (; n; v++, t--);", "for (; n; v += 1, t -= 1);"),
    ("for (; n; n++) f(v++, ++*p);", "for (; n; n++) f(sm_add_after(v), (*p += 1));"),
    ("switch (n) { case 1: v++; }", "case 1: v += 1;"),
    ("v = n ? v : v++;", "v = n ? v : sm_add_after(v);"),
    ("++s.v.x; ++(*p).y;", "(s.v.x += 1); ((*p).y += 1);"),
    ("v = -v++ * (float4)++v;", "v = -sm_add_after(v) * sm_make<float4>( (v += 1));"),
  ])
  func vectors(statement: String, expected: String) throws {
    let lowered = try body(statement)
    #expect(lowered.has(expected), "\(lowered)")
  }

  /// Numbers and pointers declared as such; what may be a component where the value before counts.
  @Test(arguments: ["n++;", "--n;", "p++;", "*p++ = v;", "n = v[1]++;", "n = s.v.x--;", "n = (*p)[2]++;", "n - --n;"])
  func stays(statement: String) throws {
    #expect(try body(statement) == statement)
  }

  @Test func operatorsOfTheSourceStay() throws {
    let source = "struct R { int a; R operator++(int); };\nvoid g(R r) { r++; ++r; }"
    #expect(try Lowered(source).body.has("r++; ++r;"))
  }

  /// A loop over integers is the same text, so that it is the same code.
  @Test func loopsOfIntegersStay() throws {
    let source =
      "float sum(const device float *x, uint n) { float s = 0; for (uint k = 0; k < n; ++k) s += x[k]; return s; }"
    #expect(try Lowered(source).body == source)
  }
}
