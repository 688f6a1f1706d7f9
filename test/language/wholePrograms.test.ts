/** Small whole kernels as people write them: each uses several parts of the language at once. */
import { floats, ints, range, uints } from "./harness.ts";
import { sourceSuite, statementSuite } from "./separate.ts";

const list = range(64, (k) => ((k * 29) % 37) - 11);
const inputs = [floats(list)];
const parameters =
  "device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]";
const sum = (values: readonly number[]): number => values.reduce((x, y) => x + y, 0);

sourceSuite("wholePrograms", [
  {
    name: "softmax's maximum and sum over two SIMD groups by a template of operations",
    source: `struct MaxOp { template <typename T> static T simd(T x) { return simd_max(x); } template <typename T> static T two(T x, T y) { return max(x, y); } static constexpr constant float init = -INFINITY; };
struct SumOp { template <typename T> static T simd(T x) { return simd_sum(x); } template <typename T> static T two(T x, T y) { return x + y; } static constexpr constant float init = 0.0; };
template <typename Op, int N> static float reduced(float x, threadgroup float (&shared)[N], uint lane, uint group) { x = Op::simd(x); if (lane == 0) shared[group] = x; threadgroup_barrier(mem_flags::mem_threadgroup); float r = Op::init; for (int n = 0; n < N; n++) r = Op::two(r, shared[n]); threadgroup_barrier(mem_flags::mem_threadgroup); return r; }
kernel void k(${parameters}, uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]]) { threadgroup float shared[2]; const float top = reduced<MaxOp>(in[i], shared, lane, group); const float total = reduced<SumOp>(in[i] - top, shared, lane, group); out[i] = top * 1000 + total; }`,
    kernel: "k",
    out: "float",
    inputs,
    grid: 64,
    threads: 64,
    expected: range(64, () => 25 * 1000 + sum(list.map((x) => x - 25))),
  },
  {
    name: "a transposition by tiles, with padding and swizzled stores",
    source: `#define TILE 8\ntypedef struct { float data[TILE][TILE + 1]; } tile_t;
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint2 at [[thread_position_in_threadgroup]]) { threadgroup tile_t t; t.data[at.y][at.x] = in[at.y * TILE + at.x]; threadgroup_barrier(mem_flags::mem_threadgroup); out[at.y * TILE + at.x] = t.data[at.x][at.y]; }`,
    kernel: "k",
    out: "float",
    inputs,
    grid: [8, 8, 1],
    threads: [8, 8, 1],
    expected: range(64, (k) => list[(k % 8) * 8 + (k >> 3)] ?? 0),
  },
  {
    name: "strided tensors by a struct of constant arrays, broadcast by zero strides",
    source: `struct Layout { int shape[3]; int strides[3]; uint offset(uint at) const constant { uint o = 0; for (int d = 2; d >= 0; d--) { o += (at % shape[d]) * strides[d]; at /= shape[d]; } return o; } };
constant Layout kLeft = {{2, 4, 8}, {32, 8, 1}}; constant Layout kRight = {{2, 4, 8}, {0, 1, 4}};
template <typename Op> static float both(const device float *a, const device float *b, uint i, constant Layout &l, constant Layout &r, Op op = Op()) { return op(a[l.offset(i)], b[r.offset(i)]); }
struct Sub { float operator()(float x, float y) const { return x - y; } };
kernel void k(${parameters}) { out[i] = both<Sub>(in, in, i, kLeft, kRight); }`,
    kernel: "k",
    out: "float",
    inputs,
    grid: 64,
    threads: 32,
    expected: range(64, (k) => (list[k] ?? 0) - (list[((k >> 3) & 3) + 4 * (k & 7)] ?? 0)),
  },
  {
    name: "an inclusive scan by shuffles in a template, and its last lane",
    source: `template <typename T, typename Op> static T scan(T x, Op op, uint lane) { for (ushort d = 1; d < 32; d <<= 1) { const T y = simd_shuffle_up(x, d); if (lane >= d) x = op(x, y); } return x; }
struct Add { template <typename T> T operator()(T x, T y) const { return x + y; } }; struct Max { template <typename T> T operator()(T x, T y) const { return x < y ? y : x; } };
kernel void k(${parameters}, uint lane [[thread_index_in_simdgroup]]) { const float s = scan(in[i], Add(), lane), m = scan(in[i], Max{}, lane); out[i] = s + 1000 * m + simd_shuffle(s, 31); }`,
    kernel: "k",
    out: "float",
    inputs,
    grid: 32,
    threads: 32,
    expected: range(
      32,
      (k) => sum(list.slice(0, k + 1)) + 1000 * Math.max(...list.slice(0, k + 1)) + sum(list.slice(0, 32)),
    ),
  },
  {
    name: "a histogram in threadgroup atomics, written by whoever owns the bin",
    source: `constant constexpr int kBins = 8; enum class Bin : uchar { low, high = 7 };
static Bin bin(float x) { return x < -4 ? Bin::low : x > 20 ? Bin::high : Bin(int(x + 4) / 4); }
kernel void k(${parameters}) { threadgroup atomic_int bins[kBins]; if (i < kBins) atomic_store_explicit(&bins[i], 0, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); atomic_fetch_add_explicit(bins + int(bin(in[i])), 1, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); if (i < kBins) out[i] = atomic_load_explicit(&bins[i], memory_order_relaxed); }`,
    kernel: "k",
    out: "float",
    inputs,
    grid: 64,
    threads: 64,
    expected: range(8, (b) => list.filter((x) => (x < -4 ? 0 : x > 20 ? 7 : Math.trunc((x + 4) / 4)) === b).length),
  },
  {
    name: "rotary positions: pairs in place by references, with a table in constant memory",
    source: `constant float2 kTable[4] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
static float2 rotated(float2 v, float2 r) { return float2(v.x * r.x - v.y * r.y, v.x * r.y + v.y * r.x); }
static void rotate(device float2 &v, constant float2 &r) { v = rotated(v, r); }
kernel void k(${parameters}) { device float2 *pairs = reinterpret_cast<device float2 *>(out); pairs[i] = ((const device float2 *)in)[i]; rotate(pairs[i], kTable[i % 4]); }`,
    kernel: "k",
    out: "float",
    inputs,
    grid: 32,
    threads: 32,
    expected: range(32, (p) => {
      const [x = 0, y = 0] = list.slice(2 * p, 2 * p + 2);
      return (
        [
          [x, y],
          [-y, x],
          [-x, -y],
          [y, -x],
        ][p % 4] ?? []
      );
    })
      .flat()
      .map((x) => x + 0),
  },
]);

statementSuite("statements", [
  {
    name: "switch with fall through, ranges of enumerators, declarations and nested loops",
    before:
      "enum Op { kAdd = 1, kSub, kMul, kNop = 10 }; static int run(Op op, int x) { switch (op) { case kAdd: x += 1; case kSub: { int y = 2; x -= y; break; } case kMul: x *= 3; break; default: for (int n = 0;; n++) { if (n == 3) break; if (n == 1) continue; x += n; } } return x; }",
    code: "out[0] = run(kAdd, 10); out[1] = run(kSub, 10); out[2] = run(kMul, 10); out[3] = run(kNop, 10); out[4] = run(Op(7), 0);",
    out: "int",
    threads: 1,
    expected: [9, 8, 30, 12, 2],
  },
  {
    name: "loops with several variables, commas, pointers and early ends",
    code: "int n = 0; for (const device float *p = a, *q = a + 63; p < q; ++p, --q) { if (*p == *q) continue; n += *p < *q ? 1 : -1; } out[0] = n; int j = 10; do { j -= 3; } while (j > 0); out[1] = j; while (true) { if (++j > 5) break; } out[2] = j; for (uint m = 8; m-- > 0;) out[3] = m + n; out[4] = (n = 5, n + 1);",
    out: "int",
    threads: 1,
    inputs,
    expected: (() => {
      const n = sum(range(32, (k) => Math.sign((list[63 - k] ?? 0) - (list[k] ?? 0))));
      return [n, -2, 6, n, 6];
    })(),
  },
  {
    name: "namespaces: nested, inline, aliases, using in functions, anonymous",
    before:
      "namespace a1 { namespace b1::c1 { static int f() { return 1; } struct S { int v = 4; }; } inline namespace v2 { static int g() { return 2; } } constant int kK = 3; } namespace { static int hidden() { return 5; } } namespace abc = a1::b1::c1;",
    code: "using a1::b1::c1::S; using namespace a1; out[0] = abc::f() + g() + a1::v2::g(); out[1] = S().v + kK + ::a1::kK; out[2] = hidden() + ::hidden(); { namespace d = a1::b1; out[3] = d::c1::f(); }",
    out: "int",
    threads: 1,
    expected: [5, 10, 10, 1],
  },
  {
    name: "overloads by type, width, memory and const, with templates behind them",
    before:
      "static int f(int) { return 1; } static int f(uint) { return 2; } static int f(float) { return 3; } static int f(half) { return 4; } static int f(float2) { return 5; } static int f(bool) { return 6; } static int f(const device float *) { return 7; } static int f(device float *) { return 8; } template <typename T> static int f(T) { return 9; } template <typename T, int N> static int f(vec<T, N>) { return 10 + N; }",
    code: "out[0] = f(1) * 10 + f(1u); out[1] = f(1.0) * 10 + f(1.0h); out[2] = f(float2(1)) * 100 + f(int3(1)); out[3] = f(true) * 10 + f(uchar(1)); out[4] = f(a) * 10 + f((device float *)out); out[5] = f(i < 1);",
    out: "int",
    threads: 1,
    inputs,
    expected: [12, 34, 513, 69, 78, 6],
  },
  {
    name: "integers: wrap, division, shifts, conversions and bit functions mixed with vectors",
    code: "const char c = (char)a[0]; const uchar u = (uchar)a[1]; const short s = -7; out[0] = c + u; out[1] = s / 2 * 10 + s % 2; out[2] = s >> 1; out[3] = (uchar)(u + 250); out[4] = int(uint(-1) >> 28); out[5] = popcount(0xf0fu) + clz(1) + ctz(8u); out[6] = (int3(1, 2, 3) << int3(4, 3, 2)).y; out[7] = as_type<short2>(0xffff0001u).y; out[8] = select(1, 2, u > c); out[9] = (ulong(1) << 40) >> 38;",
    out: "int",
    threads: 1,
    inputs: [ints([-3, 200])],
    expected: [197, -31, -4, 194, 15, 8 + 31 + 3, 16, -1, 2, 4],
  },
  {
    name: "arrays of two dimensions as arguments by reference, by pointer and in templates",
    before:
      "template <typename T, int R, int C> static T trace(const thread T (&m)[R][C]) { T s = 0; for (int k = 0; k < min(R, C); k++) s += m[k][k]; return s; } static float row(const thread float (*m)[3], int r) { return m[r][0] + m[r][2]; } template <int N> static void fill(threadgroup float (&t)[N], float x) { for (int k = 0; k < N; k++) t[k] = x + k; }",
    code: "float m[2][3] = {{1, 2, 3}, {4, 5, 6}}; int n[3][3] = {{1}, {0, 2}, {0, 0, 3}}; threadgroup float t[5]; fill(t, 10); threadgroup float g[2][4]; fill(g[1], 20); out[0] = trace(m); out[1] = trace(n); out[2] = row(m, 1); out[3] = t[4] + g[1][3];",
    out: "float",
    threads: 1,
    expected: [6, 6, 10, 37],
  },
  {
    name: "blocks of weights: shorts from bytes, scales from halves, sums by groups",
    before:
      "struct Q { half d; half m; uchar qs[4]; }; static float dot_q(const device Q &q, const device float *y) { float s = 0; const device ushort *p = (const device ushort *)q.qs; for (int k = 0; k < 2; k++) { const ushort w = p[k]; for (int n = 0; n < 4; n++) s += ((w >> (4 * n)) & 0xF) * y[4 * k + n]; } return q.d * s + q.m * (y[0] + y[7]); }",
    code: "out[i] = dot_q(((const device Q *)a)[i], b);",
    out: "float",
    inputs: [uints([0x40003800, 0x87654321, 0x3c003c00, 0x0f0f0f0f]), floats([1, 2, 3, 4, 5, 6, 7, 8])],
    expected: [0.5 * sum(range(8, (k) => (k + 1) * (k + 1))) + 2 * 9, sum([1, 3, 5, 7].map((x) => 15 * x)) + 9],
  },
]);
