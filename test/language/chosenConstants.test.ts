/** Function constants by expressions, through macros, in everything that may depend on them. */
import { floats, type KernelCase, range } from "./harness.ts";
import { type SourceCase, sourceSuite } from "./separate.ts";

type Constants = NonNullable<KernelCase["constants"]>;
const list = [1.5, -2, 3.25, 8];
const parameters =
  "device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]";
const made = (name: string, source: string, constants: Constants, expected: readonly number[]): SourceCase => ({
  name,
  source,
  constants,
  kernel: "k",
  out: "float",
  inputs: [floats(list)],
  grid: 4,
  threads: 4,
  expected,
});
const i32 = (index: number, value: number) => ({ index, dtype: "i32", value }) as const;
const f32 = (index: number, value: number | readonly number[]) => ({ index, dtype: "f32", value }) as Constants[number];
const bool = (index: number, value: boolean) => ({ index, dtype: "bool", value }) as const;

sourceSuite("chosenIndices", [
  made(
    "an index that is an expression of macros",
    `#define BASE 100\n#define AT(n) function_constant(BASE + (n))\nconstant int a [[AT(0)]]; constant int b [[AT(1)]]; constant int c [[function_constant(BASE * 2 - 1)]];\nkernel void k(${parameters}) { out[i] = a * 100 + b * 10 + c; }`,
    [i32(100, 1), i32(101, 2), i32(199, 3)],
    range(4, () => 123),
  ),
  made(
    "an index that is an enumerator, a constant and sizeof",
    `enum Slot { kFirst = 10, kSecond, kThird }; constant constexpr uint kBase = 20; enum class Other { x = 30 };\nconstant int a [[function_constant(kSecond)]]; constant int b [[function_constant(kBase + 1)]]; constant int c [[function_constant(kThird + sizeof(float))]]; constant int d [[function_constant(int(Other::x))]];\nkernel void k(${parameters}) { out[i] = a * 1000 + b * 100 + c * 10 + d; }`,
    [i32(11, 1), i32(21, 2), i32(16, 3), i32(30, 4)],
    range(4, () => 1234),
  ),
  made(
    "an index in octal, in hexadecimal, with shifts and a condition",
    `#define WIDE 1\nconstant int a [[function_constant(0x1F)]]; constant int b [[function_constant(1 << 4 | 2)]]; constant int c [[function_constant(WIDE ? 010 : 9)]];\nkernel void k(${parameters}) { out[i] = a * 100 + b * 10 + c; }`,
    [i32(31, 4), i32(18, 5), i32(8, 6)],
    range(4, () => 456),
  ),
]);

sourceSuite("chosenValues", [
  made(
    "in a template's function, a method and a default argument",
    `constant int n [[function_constant(0)]]; constant float s [[function_constant(1)]];
template <typename T> static T scaled(T x) { return x * s + n; } struct S { float x; float get() const { return x * n; } }; static float plus(float x, float y = s) { return x + y; }
kernel void k(${parameters}) { out[i] = scaled(in[i]) + S{2}.get() + plus(1); }`,
    [i32(0, 3), f32(1, 2)],
    list.map((x) => 2 * x + 3 + 6 + 3),
  ),
  made(
    "constants derived by conditions, comparisons, casts and others that are derived",
    `constant int n [[function_constant(0)]]; constant bool f [[function_constant(1)]]; constant float2 v [[function_constant(2)]];
constant bool big = n > 4 && !f; constant int m = big ? n * 2 : -n; constant float x = (float)m / 2 + v.y; constant uint u = uint(m) << 1; constant float2 w = v * x; constant bool any_of = big || f || n == 0; constant half h = half(v.x);
kernel void k(${parameters}) { out[i] = i == 0 ? m + x : i == 1 ? u : i == 2 ? w.y : float(h) + any_of; }`,
    [i32(0, 5), bool(1, false), f32(2, [1.5, 3])],
    [10 + 8, 20, 24, 2.5],
  ),
  made(
    "is_function_constant_defined in derived ones, in code and in a macro",
    `#define OR(c, other) (is_function_constant_defined(c) ? c : other)
constant int a [[function_constant(0)]]; constant float4 b [[function_constant(1)]]; constant int c [[function_constant(2)]]; constant int d = OR(a, 7); constant bool both = is_function_constant_defined(a) && is_function_constant_defined(c);
kernel void k(${parameters}) { const float4 v = OR(b, float4(5)); int r = d + v.w; if (!both) r += 100; if (is_function_constant_defined(c)) r += c; out[i] = r; }`,
    [i32(2, 1000)],
    range(4, () => 7 + 5 + 100 + 1000),
  ),
  made(
    "as bounds of loops, cases of a switch's operand and lengths of parts of arrays",
    `constant int n [[function_constant(0)]]; constant ushort stride [[function_constant(1)]];
kernel void k(${parameters}) { float s = 0; float part[8] = {}; for (int j = 0; j < n; j += stride) part[j & 7] = in[j & 3]; for (int j = 0; j < 8; j++) s += part[j]; switch (n) { case 4: s += 100; break; case 5: s += 200; break; default: s = -1; } while (s > 1000) s -= n; out[i] = s; }`,
    [i32(0, 5), { index: 1, dtype: "u16", value: 2 }],
    range(4, () => 1.5 + 3.25 + 1.5 + 200),
  ),
  made(
    "vectors: components, swizzles, functions, indices",
    `constant float4 v [[function_constant(0)]]; constant uint3 n [[function_constant(1)]]; constant bool2 f [[function_constant(2)]];
kernel void k(${parameters}) { float4 w = v.wzyx; w.xy += v.zw; uint s = 0; for (uint j = 0; j < n.z; j++) s += n[j % 3]; out[i] = dot(w, float4(1)) + s + (any(f) ? 0.5 : 0) + (all(f) ? 100 : 0) + v[i]; }`,
    [
      f32(0, [1, 2, 3, 4]),
      { index: 1, dtype: "u32", value: [1, 2, 4] },
      { index: 2, dtype: "bool", value: [true, false] },
    ],
    range(4, (k) => 10 + 7 + 8 + 0.5 + k + 1),
  ),
  made(
    "arguments of which one is there for a constant, and one for its opposite",
    `constant bool f [[function_constant(0)]]; constant bool g = !f;
kernel void k(device float *out [[buffer(0)]], const device float *x [[buffer(1), function_constant(g)]], constant float4 &y [[buffer(2), function_constant(f)]], uint i [[thread_position_in_grid]]) { if (f) out[i] = y[i] * 2; else out[i] = x[i] * 3; }`,
    [bool(0, false)],
    list.map((x) => 3 * x),
  ),
  made(
    "declared by a list, used by a template that is chosen by if",
    `#define LIST(X) X(0, bool, transposed) X(1, int, rows) X(2, float, alpha)\n#define DECLARE(n, T, name) constant T name [[function_constant(n)]];\nLIST(DECLARE)
template <bool T> static int at(int r, int c) { return T ? c * rows + r : r * rows + c; }
kernel void k(${parameters}) { const int r = i / rows, c = i % rows; const int p = transposed ? at<true>(r, c) : at<false>(r, c); out[p] = in[i] * alpha; }`,
    [bool(0, true), i32(1, 2), f32(2, 10)],
    [15, 32.5, -20, 80],
  ),
  made(
    "in namespaces and shadowed by variables, members and parameters",
    `namespace opt { constant int n [[function_constant(0)]]; constant int twice = n * 2; } constant int m [[function_constant(1)]]; struct S { int m; int get() const { return m + ::m; } }; static int f(int m) { return m * 10; }
kernel void k(${parameters}) { const S s = {100}; int r = s.get() + f(opt::n); { int m = 1000; r += m; } using namespace opt; out[i] = r + twice; }`,
    [i32(0, 3), i32(1, 4)],
    range(4, () => 104 + 30 + 1000 + 6),
  ),
]);
