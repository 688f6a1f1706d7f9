import Testing

@testable import SoftMetal

/// Sources with pieces cut out and put in at random places: lowering ends,
/// with an outcome or an error, and keeps the number of lines.
@Suite struct MutationTests {
  private static let pieces = [
    "{", "}", "(", ")", "[[", "]]", "<", ">", ";", "kernel ", "threadgroup ", "template<", "\"", "'", "/*", "*/", "#",
    "\\\n", ",", "::", "operator", "using ", "typedef ", "constant ", "struct ", "float4(", "=", "(float4)", "\n",
    "++", "--", ".xy", "->", "packed_float3 ", "bool4 b", "array<", "union {", "auto m = ", "for (", "? ", "host_name(",
    "static_cast<", "is_function_constant_defined(", "R\"(", "#if 1\n", "#line 7 \"x\"\n", ") device {", "vec<T, 3> ",
    ".sum(", "template <typename T ", "simd_sum(1)", "break;", "return ", ": x(1)", "struct {", "static ", "S::", "&",
  ]

  private static let vectors = """
    struct V { packed_float3 at; union { uint bits; float x; }; float3 sum() const device { return at + x; }
      void operator+=(float y) device { this->x = y; } float operator[](int k) const constant { return at[k]; } };
    float3 g(const device V *v, device packed_float3 *p, constant array<float, 4> &a, bool4 b, float4 c) {
      float4 d(c.xyz, 1), e(d); d++; --e.x; b.xy = b.zw; auto m = c < d; p[1] += v->at * 2; p[0][1] = a[2]++;
      for (int k = 0; k < 3; k++, c--) { p[k] = v[k].sum() + float3(m.xyz); (*p).zx = (d > e).xy ? c.xy : e.yx; }
      return p[0];
    }
    struct S { struct { int in; }; int x; static const int n; S(int y) : x(y), in{1} { x += get(); } int get() const; };
    constant const int S::n = 3;
    template <typename T> T made(const thread T &t, int n) { return n > 1 ? T(t) : t & (n ? t : T(0)); }
    int exits(int key) { int keys[] = {1, 2}; for (int k : keys) { if (k == key) { return simd_sum(k); } }
      do if (key++ == 3) { key = simd_sum(1); break; } while (int left = 9 - key); return made(key, 2); }

    """

  @Test(arguments: [
    "<int> [[kernel]] (int x) {}", "int A::x = 3; struct A { static const int x", "struct S { S() : a",
    "template <typename T void f(const thread T &T) {} >", "#line 9223372036854775807\nint x;\nint y;",
    "struct A { " + String(repeating: "struct { ", count: 60_000),
    "void f() { for (float v : a) { if (v > 1) { s = simd_sum(v); return; } } }",
  ])
  func sourceThatIsNoneEnds(_ source: String) {
    let text = SourceText(Array(source.utf8))
    _ = try? Lowering.program(text, origin: SourceOrigin(label: "x", source: text))
  }

  @Test func loweringEndsAndKeepsLines() {
    var random = SplitMix64(seed: 2026)
    let source = Array((LoadedShaderTests.source + KernelTests.template + smallSource(3) + Self.vectors).utf8)
    var lowered = 0
    for _ in 0..<2000 {
      var bytes = source
      for _ in 0..<Int.random(in: 1...8, using: &random) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        if Bool.random(using: &random), let piece = Self.pieces.randomElement(using: &random) {
          bytes.insert(contentsOf: piece.utf8, at: place)
        } else {
          bytes.removeSubrange(place..<min(place + Int.random(in: 0...40, using: &random), bytes.count))
        }
      }
      let text = SourceText(bytes)
      guard let program = try? Lowering.program(text, origin: SourceOrigin(label: "x", source: text)) else { continue }
      let result = program.shader(kernel: nil, needingLanes: [])
      lowered += 1
      let lines = result.text.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      let start = (lines.firstIndex { $0.starts(with: "#line 1 \"x\"".utf8) } ?? 0) + 1
      let tail = lines.firstIndex { $0.elementsEqual("namespace {".utf8) } ?? 0
      #expect(tail - start >= text.lineStarts.count)
    }
    #expect(lowered > 100)
  }
}
