/** SIMD-group matrices in arrays and structs, and their elements as places. */
import { floats, type KernelCase, range } from "./harness.ts";
import { type SourceCase, sourceSuite } from "./separate.ts";

const a = range(64, (k) => ((k * 7) % 11) - 5);
const b = range(64, (k) => ((k * 5) % 13) - 6);
const at = (m: readonly number[], r: number, c: number): number => m[r * 8 + c] ?? 0;
const product = (x: readonly number[], y: readonly number[]): number[] =>
  range(64, (k) => range(8, (j) => at(x, k >> 3, j) * at(y, j, k & 7)).reduce((s, v) => s + v));
/** The lane that holds place k: rows are of four pairs, in quarters of 8 lanes that go left to right and then down. */
const laneOf = (k: number): number => {
  const row = k >> 3;
  const pair = (k & 7) >> 1;
  return (row & 4) * 4 + (pair & 2) * 4 + (row & 3) * 2 + (pair & 1);
};
const parameters =
  "device float *out [[buffer(0)]], const device float *in [[buffer(1)]], const device float *in2 [[buffer(2)]], uint i [[thread_position_in_grid]]";
const made = (
  name: string,
  source: string,
  expected: readonly number[],
  more: Partial<KernelCase> = {},
): SourceCase => ({
  name,
  source: `#include <metal_simdgroup_matrix>\n${source}`,
  kernel: "k",
  out: "float",
  inputs: [floats(a), floats(b)],
  grid: 32,
  threads: 32,
  expected,
  ...more,
});

sourceSuite("matrixPlaces", [
  made(
    "elements scaled by the index of the place",
    `kernel void k(${parameters}) { simdgroup_float8x8 m; simdgroup_load(m, in); m.thread_elements()[0] *= 2; m.thread_elements()[1] *= 2; simdgroup_store(m, out); }`,
    a.map((x) => 2 * x),
  ),
  made(
    "elements through a reference to the pair",
    `kernel void k(${parameters}) { simdgroup_matrix<float, 8, 8> m; simdgroup_load(m, in); thread auto &e = m.thread_elements(); e[0] += 1; e[1] += 1; e *= 3; simdgroup_store(m, out); }`,
    a.map((x) => 3 * (x + 1)),
  ),
  made(
    "elements through a cast to a vector of two, read and written",
    `typedef vec<float, 2> frag; kernel void k(${parameters}) { simdgroup_float8x8 m; simdgroup_load(m, in); thread frag &f = reinterpret_cast<thread frag &>(m.thread_elements()); f = -f; const frag g = reinterpret_cast<thread frag &>(m.thread_elements()); reinterpret_cast<thread frag &>(m.thread_elements()) = g + 1; simdgroup_store(m, out); }`,
    a.map((x) => 1 - x),
  ),
  made(
    "matrices in an array, in loops, multiplied and summed",
    `kernel void k(${parameters}) { simdgroup_float8x8 m[2], c[2]; for (int n = 0; n < 2; n++) { simdgroup_load(m[n], n == 0 ? in : in2); c[n] = make_filled_simdgroup_matrix<float, 8, 8>(n); }
#pragma unroll
for (int n = 0; n < 2; n++) simdgroup_multiply_accumulate(c[n], m[n], m[1 - n], c[n]); c[0].thread_elements()[0] += c[1].thread_elements()[0]; c[0].thread_elements()[1] += c[1].thread_elements()[1]; simdgroup_store(c[0], out); }`,
    product(a, b).map((x, k) => x + (product(b, a)[k] ?? 0) + 1),
  ),
  made(
    "matrices of two dimensions in a struct that is a template",
    `template <typename T, int R, int C> struct Tile { simdgroup_matrix<T, 8, 8> m[R][C]; void fill(T x) { for (int r = 0; r < R; r++) for (int c = 0; c < C; c++) m[r][c] = simdgroup_matrix<T, 8, 8>(x); } thread auto &at(int r, int c) { return m[r][c].thread_elements(); } void add(const thread Tile &o) { for (int r = 0; r < R; r++) for (int c = 0; c < C; c++) for (int e = 0; e < 2; e++) m[r][c].thread_elements()[e] += o.m[r][c].thread_elements()[e]; } };
kernel void k(${parameters}) { Tile<float, 1, 2> x, y; x.fill(2); y.fill(3); simdgroup_load(x.m[0][1], in); x.add(y); x.at(0, 1)[0] -= 1; x.at(0, 1)[1] -= 1; simdgroup_store(x.m[0][1], out); simdgroup_store(x.m[0][0], out + 64); }`,
    [...a.map((x, k) => x + (k % 9 === 0 ? 3 : 0) - 1), ...range(64, (k) => (k % 9 === 0 ? 5 : 0))],
  ),
  made(
    "matrices by reference, by pointer and by value",
    `static void load(thread simdgroup_float8x8 &m, const device float *p) { simdgroup_load(m, p, 8, ulong2(0, 0), true); } static void twice(thread simdgroup_float8x8 *m) { for (int e = 0; e < 2; e++) m->thread_elements()[e] *= 2; (*m).thread_elements()[0] += 1; m[0].thread_elements()[1] += 1; } static simdgroup_float8x8 times(simdgroup_float8x8 x, simdgroup_float8x8 y) { simdgroup_float8x8 r; simdgroup_multiply(r, x, y); return r; }
kernel void k(${parameters}) { simdgroup_float8x8 m, n; load(m, in); simdgroup_load(n, in2); twice(&m); simdgroup_store(times(m, n), out); }`,
    product(
      range(64, (k) => 2 * at(a, k & 7, k >> 3) + 1),
      b,
    ),
  ),
  made(
    "a matrix of half as operand, elements as half2 and as floats",
    `kernel void k(${parameters}) { threadgroup half t[64]; t[i] = half(in[i]); t[i + 32] = half(in[i + 32]); simdgroup_barrier(mem_flags::mem_threadgroup); simdgroup_half8x8 h; simdgroup_load(h, t); const half2 e = half2(h.thread_elements()); h.thread_elements()[0] = e[0] * 0.5h; h.thread_elements()[1] = half(float(e[1]) * 0.5f); simdgroup_float8x8 n, c(0); simdgroup_load(n, in2); simdgroup_multiply_accumulate(c, h, n, c); simdgroup_store(c, out); }`,
    product(
      a.map((x) => x / 2),
      b,
    ),
  ),
  made(
    "elements in conditions, as arguments and as targets of functions",
    `static void clear(thread float &x) { if (x < 0) x = 0; } static float relu(float x) { return max(x, 0.0); }
kernel void k(${parameters}) { simdgroup_float8x8 m, n; simdgroup_load(m, in); simdgroup_load(n, in2); for (short e = 0; e < 2; e++) { m.thread_elements()[e] = relu(m.thread_elements()[e]); float x = n.thread_elements()[e]; clear(x); n.thread_elements()[e] = x > 3 ? 3 : x; } simdgroup_multiply(m, m, n); simdgroup_store(m, out); }`,
    product(
      a.map((x) => Math.max(x, 0)),
      b.map((x) => Math.min(Math.max(x, 0), 3)),
    ),
  ),
  made(
    "copies of matrices and of structs that hold them",
    `struct Pair { simdgroup_float8x8 x, y; int n; }; static Pair swapped(Pair p) { return {p.y, p.x, p.n + 1}; }
kernel void k(${parameters}) { Pair p; simdgroup_load(p.x, in); simdgroup_load(p.y, in2); p.n = 1; Pair q = swapped(p); const Pair r = q; q.x = p.x; simdgroup_float8x8 m = r.x; m.thread_elements()[0] += r.n; m.thread_elements()[1] += q.n; simdgroup_store(m, out); simdgroup_store(q.x, out, 8, ulong2(0, 8)); }`,
    [...b.map((x) => x + 2), ...a],
  ),
  made(
    "macros of loads, products and elements",
    `#define M(T) simdgroup_matrix<T, 8, 8>\n#define LOAD(m, p, ...) simdgroup_load(m, p, ##__VA_ARGS__)\n#define EACH(e, m, x) for (short e_ = 0; e_ < 2; ++e_) { thread auto &e = m.thread_elements(); x; }\n#define MMA(d, x, y) simdgroup_multiply_accumulate(d, x, y, d)
kernel void k(${parameters}) { M(float) x, y, d(1.0f); LOAD(x, in); LOAD(y, in2, 8, ulong2(0), true); MMA(d, x, y); EACH(e, d, e[e_] += 1) simdgroup_store(d, out); }`,
    product(
      a,
      range(64, (k) => at(b, k & 7, k >> 3)),
    ).map((x, k) => x + (k % 9 === 0 ? 1 : 0) + 1),
  ),
  // SIMD groups of four rows of a threadgroup each.
  made(
    "a threadgroup of two dimensions, whose threads are known by their numbers",
    `kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], const device float *in2 [[buffer(2)]], uint i [[thread_index_in_threadgroup]], uint g [[simdgroup_index_in_threadgroup]], uint2 size [[threads_per_threadgroup]]) { simdgroup_float8x8 m; simdgroup_load(m, g == 0 ? in : in2); m.thread_elements()[0] += i; m.thread_elements()[1] += size.x; simdgroup_store(m, out + g * 64); }`,
    [a, b].flatMap((m, g) => m.map((x, k) => x + (k % 2 === 1 ? 8 : g * 32 + laneOf(k)))),
    { grid: [8, 8], threads: [8, 8] },
  ),
  made(
    "a threadgroup of two dimensions, whose threads are known by their places",
    `kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], const device float *in2 [[buffer(2)]], uint2 i [[thread_position_in_threadgroup]], uint2 at [[thread_position_in_grid]], uint g [[simdgroup_index_in_threadgroup]]) { simdgroup_float8x8 m; simdgroup_load(m, g == 0 ? in : in2); m.thread_elements()[0] += i.x + 10 * i.y; m.thread_elements()[1] += at.x + 10 * at.y; simdgroup_store(m, out + g * 64); }`,
    [a, b].flatMap((m, g) => m.map((x, k) => x + (laneOf(k) % 8) + 10 * (g * 4 + Math.floor(laneOf(k) / 8)))),
    { grid: [8, 8], threads: [8, 8] },
  ),
]);
