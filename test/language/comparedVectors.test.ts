/** Comparisons whose operands' types the text does not show: behind macros, in braces, as arguments. */
import { floats, ints, range } from "./harness.ts";
import { statementSuite } from "./separate.ts";

const list = [1, 5, 3, 3, 3, 3, -2, 8, 0, 0, 7, 6];
const first = list.filter((_, k) => k % 2 === 0);
const second = list.filter((_, k) => k % 2 === 1);
const inputs = [floats(list)];
/** Two vectors of three: (1, 3, 3) and (5, 3, 3), then (-2, 0, 7) and (8, 0, 6). */
const vectors = `float3 v(a[0], a[2], a[4]), w(a[1], a[3], a[5]); v += float3(0, 0, 1);`;
// v = (1, 3, 4), w = (5, 3, 3).
const less = [1, 0, 0];
const show = (m: string): string => `out[0] = ${m}.x; out[1] = ${m}.y; out[2] = ${m}.z;`;

statementSuite("comparedVectors", [
  {
    name: "a macro of two operands",
    before: "#define LESS(a, b) ((a) < (b))",
    code: `${vectors} const bool3 m = LESS(v, w); ${show("m")}`,
    out: "int",
    threads: 1,
    inputs,
    expected: less,
  },
  {
    name: "a macro that is given the operator",
    before: "#define COMPARE(op, x, y) (x op y)",
    code: `${vectors} ${show("COMPARE(<, v, w)")} out[3] = all(COMPARE(>=, v, w) == COMPARE(==, v, v)); out[4] = COMPARE(!=, v, w).y;`,
    out: "int",
    threads: 1,
    inputs,
    expected: [...less, 0, 0],
  },
  {
    name: "macros within macros, and select",
    before:
      "#define GREATER(a, b) ((a) > (b))\n#define LARGER(a, b) select((b), (a), GREATER((a), (b)))\n#define LARGEST(a, b, c) LARGER(LARGER(a, b), c)",
    code: `${vectors} const float3 m = LARGEST(v, w, float3(2, 9, 0)); ${show("m")}`,
    out: "float",
    threads: 1,
    inputs,
    expected: [5, 9, 4],
  },
  {
    name: "a macro that is used for numbers and for vectors",
    before: "#define EQUAL(a, b) ((a) == (b))",
    code: "const half4 h(1, 2, 3, 4); const int2 n(7, 8); out[0] = EQUAL(n, int2(7, 9)).x; out[1] = EQUAL(n.y, 9); out[2] = any(EQUAL(h, h.wzyx)); out[3] = all(EQUAL(h, h)); out[4] = EQUAL(i, 0u) ? 5 : 6;",
    out: "int",
    threads: 1,
    expected: [1, 0, 0, 1, 5],
  },
  {
    name: "auto with braces",
    code: `${vectors} auto m{v < w}; auto n{v >= w}; ${show("m")} out[3] = n.y; out[4] = sizeof(m) == sizeof(bool3); auto k{a[0] < a[1]}; out[5] = k;`,
    out: "int",
    threads: 1,
    inputs,
    expected: [...less, 1, 1, 1],
  },
  {
    name: "a vector of bool with braces, with parentheses, and in an array",
    code: `${vectors} bool3 m{v < w}; bool3 n(v > w); const bool3 both[2] = {v == w, v != w}; const bool3 list[]{m, v <= w}; ${show("m")} out[3] = n.z; out[4] = both[0].y; out[5] = both[1].y; out[6] = list[1].z;`,
    out: "int",
    threads: 1,
    inputs,
    expected: [...less, 1, 1, 0, 0],
  },
  {
    name: "braces as a member, as an argument and as a result",
    before: `struct Mask { bool3 m; int tag; };
      static int count(bool3 m) { return int(m.x) + int(m.y) + int(m.z); }
      static bool3 compared(float3 p, float3 q) { return {p <= q}; }`,
    code: `${vectors} const Mask s{v < w, 7}; const Mask t = {.m = v > w, .tag = 8}; ${show("s.m")} out[3] = count({v <= w}); out[4] = count(compared(v, w)) + t.tag; out[5] = t.m.z;`,
    out: "int",
    threads: 1,
    inputs,
    expected: [...less, 2, 10, 1],
  },
  {
    name: "the argument of an object's call",
    before: `struct Count { int by; int operator()(bool3 m) const { return by * (int(m.x) + int(m.y) + int(m.z)); } };`,
    code: `${vectors} Count count{10}; out[0] = count(v < w); out[1] = count(v == w) + Count{1}(v <= w); out[2] = (count)(v != w);`,
    out: "int",
    threads: 1,
    inputs,
    expected: [10, 12, 20],
  },
  {
    name: "the argument of a template, of a method and of a constructor",
    before: `template <typename M> static int bytes(M m) { return sizeof(m); }
      struct Mask { bool4 m; Mask(bool4 x) : m(x) {} int count() const { return int(m.x) + int(m.y) + int(m.z) + int(m.w); } Mask both(bool4 x) const { return Mask(m && x); } };`,
    code: `const int4 p(1, 2, 3, 4), q(4, 2, 1, 9); out[0] = bytes(p < q); out[1] = Mask(p < q).count(); out[2] = Mask(p <= q).both(p == q).count(); Mask m(p > q); out[3] = m.m.z; out[4] = bytes(p.x < q.x);`,
    out: "int",
    threads: 1,
    expected: [4, 2, 1, 1, 1],
  },
  {
    name: "operators and functions of the user's own that take a mask",
    before: `struct Bits { uint b; }; static Bits operator|(Bits x, bool2 m) { return Bits{x.b << 2 | uint(m.x) << 1 | uint(m.y)}; }
      static Bits operator<(Bits x, Bits y) { return Bits{x.b * 100 + y.b}; }`,
    code: "const float2 p(1, 2), q(2, 1); Bits b{0}; b = b | (p < q) | (p > q) | (p == q); out[0] = b.b; out[1] = (Bits{3} < Bits{4}).b; auto c{Bits{5} < Bits{6}}; out[2] = c.b;",
    out: "uint",
    threads: 1,
    expected: [0b100100, 304, 506],
  },
  {
    name: "a component of a comparison, a comparison of comparisons",
    code: `${vectors} out[0] = (v < w).x; out[1] = (v < w)[1]; out[2] = all((v < w) == (w > v)); out[3] = (v.xy < w.xy).x + (v.zzz > w.zzz).z * 2; out[4] = any(!(v < w) && (v != w));`,
    out: "int",
    threads: 1,
    inputs,
    expected: [1, 0, 1, 3, 1],
  },
  {
    name: "both arms and the condition of ?:",
    code: `${vectors} const bool3 m = a[6] < a[7] ? v < w : v > w; const bool3 n = any(v < w) ? v > w : v == w; ${show("m")} out[3] = n.z; out[4] = all(v < w) ? 1 : 2;`,
    out: "int",
    threads: 1,
    inputs,
    expected: [...less, 1, 2],
  },
  {
    name: "operands of decltype and auto types, of aliases and of results",
    before: `typedef float3 Point; template <typename T> using Three = vec<T, 3>; static Three<float> at(const device float *p, int k) { return Three<float>(p[k], p[k + 2], p[k + 4]); }`,
    code: `const auto p = at(a, 0); decltype(at(a, 1)) q = at(a, 1); Point r = p; out[0] = (at(a, 0) < at(a, 1)).x; out[1] = (p < q).y; out[2] = all(r == p); out[3] = (r < Three<float>(2)).x;`,
    out: "int",
    threads: 1,
    inputs,
    expected: [1, 0, 1, 1],
  },
  {
    name: "a template that compares what it is given",
    before: `template <typename T> static auto smaller(T x, T y) { return x < y; }
      template <typename T> static T least(T x, T y) { return select(y, x, x < y); }
      struct Less { template <typename T> auto operator()(T x, T y) const -> decltype(x < y) { return x < y; } };`,
    code: `${vectors} ${show("smaller(v, w)")} out[3] = smaller(3, 4); out[4] = Less()(v, w).x; out[5] = Less{}(a[0], a[1]); out[6] = int(least(v, w).z); out[7] = int(least(half2(4, 1), half2(3)).x);`,
    out: "int",
    threads: 1,
    inputs,
    expected: [...less, 1, 1, 1, 3, 3],
  },
  {
    name: "a component beside a vector, on either side",
    code: "const float4 v(a[0], a[1], a[2], a[6]); const bool4 m = v < 3.0f; const bool4 n = 3 <= v; out[i] = m[i] + 10 * n[i] + 100 * (v.y > v)[i];",
    out: "int",
    inputs,
    expected: [1, 5, 3, -2].map((x) => Number(x < 3) + 10 * Number(x >= 3) + 100 * Number(x < 5)),
  },
  {
    name: "packed vectors and elements of arrays in device memory",
    before: "#define LESS(a, b) a < b",
    code: "const device packed_float3 *p = (const device packed_float3 *)a; const bool3 m = float3(p[0]) < float3(p[1]); const bool3 n{LESS(p[2], p[3])}; out[i] = m[i] + 10 * n[i];",
    out: "int",
    inputs,
    expected: range(
      3,
      (k) => Number((list[k] ?? 0) < (list[3 + k] ?? 0)) + 10 * Number((list[6 + k] ?? 0) < (list[9 + k] ?? 0)),
    ),
  },
  {
    name: "shifts and comparisons of vectors of integers in one expression",
    before: "#define SHIFTED(v, n) ((v) << (n))",
    code: "const int4 v(a[0], a[1], a[2], a[3]); const bool4 m = SHIFTED(v, 1) > int4(4) && v >> 1 < int4(3); out[i] = m[i];",
    out: "int",
    inputs: [ints([1, 5, 3, 9])],
    expected: [1, 5, 3, 9].map((x) => Number(x << 1 > 4 && x >> 1 < 3)),
  },
  {
    name: "comparisons of every component of lists, in a loop",
    code: "int n = 0; for (int k = 0; k < 6; k++) { const float2 p = ((const device float2 *)a)[k]; n += (p < p.yx).x ? 1 : 0; n += (p == p.yx).y ? 100 : 0; } out[0] = n;",
    out: "int",
    threads: 1,
    inputs,
    expected: [
      first.filter((x, k) => x < (second[k] ?? 0)).length + 100 * first.filter((x, k) => x === second[k]).length,
    ],
  },
]);
