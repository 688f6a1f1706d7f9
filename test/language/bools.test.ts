/** Vectors of bool: swizzles on both sides, constructors, logic, what comparisons give, memory. */
import { type Case, floats, ints, languageSuite, range } from "./harness.ts";

/** Bits of a bool vector, the first component in bit 0. */
const bits = (v: string, count: number): string => `(${range(count, (k) => `(int(${v}[${k}]) << ${k})`).join(" | ")})`;
const one = (name: string, code: string, expected: readonly number[]): Case => ({
  name,
  code,
  out: "int",
  threads: 1,
  expected,
});

languageSuite("bools", "bool2 both(bool2 v) { return v.yx; }\ntemplate <typename T> T flipped(T v) { return !v; }", [
  one(
    "swizzles on the right of bool2, bool3, bool4, xyzw and rgba",
    `const bool4 v = bool4(true, false, true, true); const bool2 p = v.xy, q = v.wy; const bool3 r = v.zyx, s = v.gba; const bool4 t = v.yyxw;
     out[0] = ${bits("p", 2)}; out[1] = ${bits("q", 2)}; out[2] = ${bits("r", 3)}; out[3] = ${bits("s", 3)}; out[4] = ${bits("t", 4)};
     out[5] = ${bits("v.zy.yx", 2)}; out[6] = v.xy.x + 2 * v.rgb.z + 4 * v.wzyx[2];`,
    [0b01, 0b01, 0b101, 0b110, 0b1100, 0b10, 1 + 2],
  ),
  one(
    "swizzles on the left, also of themselves and with operators",
    `bool4 v = bool4(false); v.yw = bool2(true, false); out[0] = ${bits("v", 4)}; v.xyz = v.zyx; v.w = true; out[1] = ${bits("v", 4)};
     v.wz = v.xy; out[2] = ${bits("v", 4)}; v.xy |= bool2(true, false); out[3] = ${bits("v", 4)}; v.rgba = !v.abgr; out[4] = ${bits("v", 4)};
     v.zw &= v.xx; v[0] = true; bool3 w = bool3(true); w.yz = bool2(false); w.xz ^= bool2(true); out[5] = ${bits("v", 4)}; out[6] = ${bits("w", 3)};`,
    [0b0010, 0b1010, 0b0110, 0b0111, 0b0001, 0b0001, 0b100],
  ),
  one(
    "constructors from parts, from numbers, from masks, by a scalar and by braces",
    `const bool2 p = bool2(true, false); const bool3 q = bool3(p, true); const bool4 r = bool4(p.yx, q.zy), s = bool4(int4(0, 2, -1, 0)),
     t = {true, true, false, true}; const bool3 u = true; const bool2 w{false, true}; const bool4 x(q, false), y = bool4(float4(0.5f, 0, -0.0f, NAN));
     out[0] = ${bits("q", 3)}; out[1] = ${bits("r", 4)}; out[2] = ${bits("s", 4)}; out[3] = ${bits("t", 4)}; out[4] = ${bits("u", 3)};
     out[5] = ${bits("w", 2)}; out[6] = ${bits("x", 4)}; out[7] = ${bits("y", 4)};`,
    [0b101, 0b0110, 0b0110, 0b1011, 0b111, 0b10, 0b0101, 0b1001],
  ),
  one(
    "any, all, ! and the logical operators on swizzles",
    `const bool4 b = bool4(true, false, false, true); out[0] = any(b.yz); out[1] = all(b.xw); out[2] = any(b.xy); out[3] = all(b.xy);
     out[4] = !b.x; out[5] = ${bits("(!b.xyz)", 3)}; out[6] = ${bits("(b.xy && b.wz)", 2)}; out[7] = ${bits("(b.xy || b.zw)", 2)}; out[8] = any(b.xyz != b.xyw);
     out[9] = ${bits("(b.xy == b.yx)", 2)}; out[10] = all(!b.yz) && !any(b.zy); out[11] = ${bits("both(b.xy)", 2)}; out[12] = ${bits("flipped(b)", 4)};
     out[13] = ${bits("(b & true)", 4)}; out[14] = ${bits("(b.xy ^ b.xz)", 2)}; out[15] = ${bits("flipped(b.xy)", 2)};`,
    [0, 1, 1, 0, 0, 0b110, 0b01, 0b11, 1, 0b00, 1, 0b10, 0b0110, 0b1001, 0b00, 0b10],
  ),
  {
    name: "components of which nobody reads one, beside a lane function",
    code: `const bool4 c = bool4(true, true, false, a[i] > 2) | bool4(true, false, a[i] > 1, false), d = bool4(true, true, false, a[i] > 2) || c.xyyz;
      const int4 e = select(int4(7), int4(int(i) + 50), bool4(false, false, false, a[i] > 2) & bool4(true, a[i] > 1, true, true));
      out[8 * i] = c.x; out[8 * i + 1] = c.y; out[8 * i + 2] = c.z; out[8 * i + 3] = c.w + simd_sum(0); out[8 * i + 4] = d.z; out[8 * i + 5] = d.w; out[8 * i + 6] = e.x; out[8 * i + 7] = e.w;`,
    inputs: [floats([1, 2, 3])],
    out: "int",
    threads: 3,
    expected: [1, 1, 0, 0, 1, 0, 7, 7, 1, 1, 1, 0, 1, 1, 7, 7, 1, 1, 1, 1, 1, 1, 7, 52],
  },
  {
    name: "comparisons are vectors of bool where their type counts: 1, not -1",
    code: `const float3 v = float3(a[0], a[1], a[2]), w = 2.0f; const float3 f = float3(v < w); out[0] = int(f.x + f.y * 10 + f.z * 100); out[1] = (v > w).z;
      out[2] = int3(v >= w).x + int3(v >= w).y; auto m = v == w; out[3] = m.x + m.y * 2 + m.z * 4; out[4] = int(dot(float3(v < w), float3(8)));
      out[5] = ((v < w) || (v == w)).y; out[6] = int(float2((v < w).xz).x); out[7] = uint3(!(v < w)).z; out[8] = (v != w)[0]; out[9] = int(mix(v, w, float3(v > w)).z);
      out[10] = int4(v < w, true).w; out[11] = int(((float3)(v <= w)).y); out[12] = static_cast<int3>((v < w) & (v > 0.0f)).x; out[13] = uchar4(uchar4(3) > uchar4(2)).x;`,
    out: "int",
    threads: 1,
    inputs: [floats([1, 2, 3])],
    expected: [1, 1, 1, 2, 8, 1, 1, 1, 1, 2, 1, 1, 1, 1],
  },
  {
    name: "shifts, templates and scalars are not taken for comparisons of vectors",
    code: `const int n = a[0]; const int2 v = int2(n >> 1, n << 2), w = int2(n > 1, n < 1); const vec<int, 2> u = vec<int, 2>(max<int>(n, 9), n >= 4 && n < 9);
      const uint2 s = uint2(uint2(n) >> 1u); const float2 t = float2(n > 3 ? 1.5f : 2.5f); out[0] = v.x; out[1] = v.y; out[2] = w.x; out[3] = w.y; out[4] = u.x; out[5] = u.y;
      out[6] = s.y; out[7] = int(t.x * 2);`,
    out: "int",
    threads: 1,
    inputs: [ints([6])],
    expected: [3, 24, 1, 0, 9, 1, 3, 3],
  },
  {
    name: "in structs, arrays, threadgroup and device memory",
    code: `struct Flags { bool3 a; bool2 list[2]; }; Flags f = {bool3(true, false, true), {bool2(false), bool2(true)}}; f.list[0].x = true; f.a.xy = f.list[0];
      threadgroup bool4 shared_flags[2]; shared_flags[1] = bool4(f.a, true); shared_flags[1].y = true; const bool4 back = shared_flags[1];
      device bool4 *stored = (device bool4 *)(out + 8); stored[0] = bool4(true, false, false, true); stored[0].yz = bool2(true, true); stored[1] = back; stored[1] &= bool4(true, false, true, true);
      out[0] = ${bits("f.a", 3)}; out[1] = ${bits("back", 4)}; out[2] = any(stored[0].xy); out[3] = sizeof(bool2) + 10 * sizeof(bool3) + 100 * sizeof(bool4);
      out[4] = alignof(bool3) + 10 * sizeof(Flags); out[5] = stored[1].x;`,
    out: "int",
    threads: 1,
    expected: [0b101, 0b1111, 1, 2 + 40 + 400, 4 + 80, 1, 0, 0, 0x01010101, 0x01010001],
  },
  {
    name: "select by a swizzle, and a scalar conditional over bool vectors",
    code: `const bool4 b = bool4(a[0] > 0, false, true, a[0] > 1); const float2 v = select(float2(1, 2), float2(3, 4), b.xy); const bool2 c = a[0] > 0 ? b.zw : b.xy;
      out[0] = v.x; out[1] = v.y; out[2] = c.x; out[3] = c.y;`,
    out: "float",
    threads: 1,
    inputs: [ints([1])],
    expected: [3, 2, 1, 0],
  },
]);

languageSuite(
  "bool_types",
  `template <typename T> T id(T v) { return v; }
template <typename T> int bytes(T v) { return sizeof(v); }
int which(bool3) { return 1; }
int which(int3) { return 2; }
template <typename T> auto less(T a, T b) { return a < b; }
template <typename T> struct Four { vec<T, 4> v; T last() const { return v.w; } vec<T, 2> ends() const { return vec<T, 2>(v.xw); } };
template <typename T> vec<T, 2> two(T a, T b) { return vec<T, 2>(a, b); }
template <typename T, int N> int count(vec<T, N> v) { int n = 0; for (int k = 0; k < N; ++k) { n += v[k] ? 1 : 0; } return n; }
template <typename T> T third(const device vec<T, 4> *p) { return p[1].z; }
template <typename T, int N> T sum(vec<T, N> v) { T s = 0; for (int k = 0; k < N; ++k) { s += v[k]; } return s; }
template <typename T, int N> using Vector = vec<T, N>;
template <typename T> using Wide = vec<T, 4>;
template <typename T> T first(Wide<T> v) { return v.x; }
template <typename T> struct Width { static constexpr constant int value = 1; };
template <typename T, int N> struct Width<vec<T, N>> { static constexpr constant int value = N; };
struct Test { int of(bool2) const { return 1; } int of(int2) const { return 2; } };`,
  [
    {
      name: "vec<bool, N> is boolN, in templates, structs and device memory",
      code: `Four<bool> f = {bool4(true, false, false, true)}; out[0] = is_same_v<vec<bool, 2>, bool2> + is_same_v<vec<bool, 3>, bool3> + is_same_v<Vector<bool, 4>, bool4>; out[1] = sizeof(vec<bool, 4>) + sizeof(Four<bool>);
        out[2] = f.last() + 2 * all(f.ends()); out[3] = two(true, false).x + 2 * two(true, false).y; out[4] = count<bool, 3>(bool3(true, false, true)); const device bool4 *p = (const device bool4 *)a;
        out[5] = third<bool>(p) + 2 * vec<bool, 4>(p[0]).x; vec<bool, 3> m = vec<bool, 3>(true, false, true); m.y = m.x; out[6] = all(m); out[7] = (is_same_v<decltype(m), bool3>);`,
      out: "int",
      threads: 1,
      inputs: [ints([0, 0x00010000])],
      expected: [3, 8, 3, 1, 2, 1, 1, 1],
    },
    {
      name: "T and N of vec<T, N> are found from arguments, through aliases and in partial specialisations",
      code: `out[0] = sum(int3(1, 2, 3)); out[1] = int(sum(float4(0.5f))); out[2] = first(int4(7, 8, 9, 10)); out[3] = Width<float>::value + 10 * Width<half4>::value; out[4] = two(2.5f, 3.0f).y; out[5] = count<int, 2>(int2(3, 0));`,
      out: "int",
      threads: 1,
      expected: [6, 2, 7, 41, 3, 1],
    },
    {
      name: "a comparison as an argument, in decltype, of a conditional and returned by auto is a vector of bool",
      code: `const float3 v = float3(a[0], a[1], a[2]), w = 2.0f; out[0] = id(v < w).x; out[1] = bytes(v < w); out[2] = which(v < w); out[3] = is_same_v<decltype(v < w), bool3> + is_same_v<decltype(a[0] < a[1]), bool>;
        out[4] = select(v, w, v < w).x; out[5] = any(v < w) + 2 * all(v < w); const bool3 r = !(v < w); out[6] = r.x + 2 * r.y + 4 * r.z; auto m = less(float2(1, 3), float2(2)); out[7] = m.x + 2 * m.y;
        auto c = a[0] > 0 ? v < w : v > w; out[8] = c.x + 2 * c.z; out[9] = Test().of(v.xy < w.xy); out[10] = which(bool3(true)) + 10 * which(int3(1)); out[11] = id(a[0] < a[1]) + id(v.x < 2 && w.x > 3);
        out[12] = id<bool3>(v >= w).z; out[13] = bytes(a[0] < a[1]);`,
      out: "int",
      threads: 1,
      inputs: [floats([1, 2, 3])],
      expected: [1, 4, 1, 2, 2, 1, 6, 1, 1, 1, 21, 1, 1, 1],
    },
  ],
);
