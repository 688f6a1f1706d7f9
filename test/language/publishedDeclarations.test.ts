/** More forms of declarations that published files have and that few others write. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";
import { countCase, floats, range } from "./harness.ts";
import { sourceSuite } from "./separate.ts";

const loop = { kernel: "k", out: "float", grid: 4, threads: 4 } as const;
const head = "device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]";

sourceSuite("publishedThreadgroup", [
  {
    ...loop,
    name: "initialised threadgroup vectors and structs with members' braces, in two kernels",
    source: `struct Stat { float sum; uint count; float2 range; };
kernel void other(${head}) { threadgroup float4 rows[2] = {float4(0), float4(0)}; rows[i & 1] = float4(i); out[i] = rows[i & 1].x; }
kernel void k(${head}) { threadgroup Stat stats[4] = {{0, 0, {0, 0}}}; threadgroup half4 rows[4] = {}; stats[i] = {float(i), 1, {2, 3}}; rows[i] = half4(i); threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = stats[3 - i].sum + stats[i].range.y + float(rows[3 - i].w); }`,
    expected: [9, 7, 5, 3],
  },
  {
    ...loop,
    name: "threadgroup tiles of which a template's constant needs one",
    source: `template <bool wide> kernel void body(${head}) {
  float r = 0;
  if (wide) { threadgroup float tile[4096]; tile[i] = i; threadgroup_barrier(mem_flags::mem_threadgroup); r = tile[3 - i]; }
  if (!wide) { threadgroup float small[8192 / 2]; small[i] = 2 * i; threadgroup_barrier(mem_flags::mem_threadgroup); r = small[3 - i]; }
  out[i] = r;
}
template [[host_name("k")]] kernel void body<true>(device float *, uint);
template [[host_name("narrow")]] kernel void body<false>(device float *, uint);`,
    expected: [3, 2, 1, 0],
  },
]);

sourceSuite("publishedFunctions", [
  {
    ...loop,
    name: "noexcept with a condition, of operators and of methods that are const",
    source: `struct Gain { float by; float operator()(float x) const noexcept { return x * by; } Gain operator+(Gain o) const noexcept(true) { return {by + o.by}; } };
template <typename T> static T kept(T x) noexcept(sizeof(T) > 2) { return x; }
kernel void k(${head}) { out[i] = (Gain{1} + Gain{2})(kept(float(i))); }`,
    expected: [0, 3, 6, 9],
  },
  {
    ...loop,
    name: "noexcept of declarations that come before, of overloads and of inline functions",
    source: `static float late(float x) noexcept; static float over(int x) noexcept { return x; } static float over(float x) noexcept { return -x; }
inline float quick(float x) noexcept { return late(x) + over(1) + over(1.0f); } static float late(float x) noexcept { return x + 4; }
kernel void k(${head}) { out[i] = quick(i); }`,
    expected: [4, 5, 6, 7],
  },
  {
    ...loop,
    name: "extern C around a namespace's neighbour, a template's user and two kernels",
    source: `namespace n { static float base() { return 2; } }
template <typename T> static T doubled(T x) { return x + x; }
extern "C" {
  struct Pair { float x, y; };
  static inline float from(Pair p) { return doubled(p.x) + p.y + n::base(); }
  kernel void unused(${head}) { out[i] = 0; }
  [[kernel]] void k(${head}) { Pair p = {float(i), 1}; out[i] = from(p); }
}`,
    expected: [3, 5, 7, 9],
  },
  {
    ...loop,
    name: "functions that are not to be optimised, as a method, in a template and by GNU's spelling",
    source: `struct Step { float by; [[clang::optnone]] float run(float x) const { float y = x; y += by; return y; } };
template <typename T> [[clang::optnone]] static T twice(T x) { T y = x; y *= 2; return y; }
__attribute__((optnone)) static float last(float x) { return x - 1; }
kernel void k(${head}) { const Step s = {3}; out[i] = last(twice(s.run(i))); }`,
    expected: [5, 7, 9, 11],
  },
  {
    ...loop,
    name: "members with a name for the next stage, beside those without one",
    source: `struct Pixel { half4 colour [[user(colour)]]; uint id; };
kernel void k(${head}) { Pixel p; p.colour = half4(i, 1, 2, 3); p.id = 5; out[i] = float(p.colour.x) + p.id; }`,
    expected: [5, 6, 7, 8],
  },
  {
    ...loop,
    name: "the same in a template, in arrays and by reference",
    source: `template <typename T> struct Slot { T value [[user(value)]]; T other [[user(other)]]; };
static void fill(thread Slot<float> &s, float x) { s.value = x; s.other = 2 * x; }
kernel void k(${head}) { Slot<float> slots[2]; fill(slots[0], i); fill(slots[1], 1); out[i] = slots[0].other + slots[1].value; }`,
    expected: [1, 3, 5, 7],
  },
]);

sourceSuite("publishedTemplates", [
  {
    ...loop,
    name: "sizes compared beside shifts and in an alias",
    source: `template <typename T> using Wider = conditional_t<(sizeof(T) < 4), float, T>;
template <typename T, int S = (sizeof(T) << 1 > 4) ? 2 : 1> struct Rows { T v[S]; };
kernel void k(${head}) { Rows<half> h; Rows<int> n; Wider<half> w = 1.5; out[i] = sizeof(h) + sizeof(n) * 10 + (sizeof(Rows<char>) < sizeof(Rows<float>)) * 100 + sizeof(w) * w + i; }`,
    expected: range(4, (i) => 2 + 80 + 100 + 6 + i),
  },
  {
    ...loop,
    name: "instances whose arguments are deduced from pointers, vectors and structs",
    source: `template <typename T> struct Params { T by; uint n; };
template <typename T, typename U> kernel void body(device T *out [[buffer(0)]], constant Params<U> &p [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = T(i) * T(p.by); }
template [[host_name("k")]] kernel void body(device float *, constant Params<float> &, uint);
template [[host_name("k_half")]] kernel void body(device half *, constant Params<float> &, uint);`,
    inputs: [floats([2.5, 0])],
    expected: [0, 2.5, 5, 7.5],
  },
  {
    ...loop,
    name: "alias templates of functions, with an address space and in a struct",
    source: `template <typename T> using Binary = T(T, T); template <typename T> using Store = void(device T *, uint, T);
static float sum(float x, float y) { return x + y; } static void put(device float *p, uint i, float x) { p[i] = x; }
template <typename T, Binary<T> op, Store<T> store> struct Run { static void at(device T *out, uint i) { store(out, i, op(T(i), T(10))); } };
kernel void k(${head}) { Run<float, sum, put>::at(out, i); }`,
    expected: [10, 11, 12, 13],
  },
  {
    ...loop,
    name: "alias templates of kernels, used by a macro that makes the instances",
    source: `template <typename T> using Map = void(device T *, uint);
template <typename T, int N> kernel void body(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = T(i) + N; }
#define MAKE(name, T, N) template [[host_name(name)]] kernel Map<T> body<T, N>;
MAKE("k", float, 5) MAKE("other", int, 6)`,
    expected: [5, 6, 7, 8],
  },
  {
    ...loop,
    name: "typedef structs in nested blocks of a template and in a kernel",
    source: `template <typename T> static T best(T a, T b) { typedef struct { T key; int at; } Entry; Entry list[2] = {{a, 0}, {b, 1}}; { typedef struct { Entry e; } Wrapped; Wrapped w = {list[a < b]}; return w.e.key + w.e.at; } }
kernel void k(${head}) { typedef struct { float x; } Local; Local box[1] = {{2}}; out[i] = best<float>(i, 1.5f) + box[0].x; }`,
    expected: [4.5, 4.5, 4, 5],
  },
  {
    ...loop,
    name: "typedef structs with methods, arrays and bit fields in a template of a kernel",
    source: `template <typename T, int N> kernel void body(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { typedef struct Tile { T v[N]; uint used : 4; T sum() const { T s = 0; for (int n = 0; n < N; n++) s += v[n]; return s; } } Tile; Tile t = {{T(i), 1, 2}, 7}; Tile u = t; out[i] = u.sum() + u.used; }
template [[host_name("k")]] kernel void body<float, 3>(device float *, uint);`,
    expected: [10, 11, 12, 13],
  },
  {
    ...loop,
    name: "strings as template-made names, by index and compared",
    source: `static bool same(constant char *a, constant char *b) { for (;; a++, b++) { if (*a != *b) return false; if (!*a) return true; } }
struct Op { constant char *name; float by; };
constant Op kOps[] = {{"add", 1}, {"mul", 5}};
kernel void k(${head}) { out[i] = same(kOps[i & 1].name, "mul") ? kOps[1].by : kOps[0].by + same("a" "dd", kOps[0].name); }`,
    expected: [2, 5, 2, 5],
  },
  {
    ...loop,
    name: "strings with escapes, by arrays of pointers and as default arguments",
    source: `constant char *constant kNames[] = {"a\\tb", "\\x41\\0z", ""};
static int first(constant char *s = "Q") { return s[0]; }
kernel void k(${head}) { out[i] = i < 3 ? kNames[i][0] + kNames[0][1] : first(); }`,
    expected: [97 + 9, 65 + 9, 9, 81],
  },
]);

/** Threadgroup memory of branches that a template's constant rules out is not counted: 16,384 bytes of 49,152. */
const branches = {
  "if constexpr": (name: string) =>
    `if constexpr (mode == 0) { threadgroup float a[4096]; USE(a) } else if constexpr (mode == 1) { threadgroup float ${name}[2][4096]; USE(${name}[1]) }`,
  "if constexpr with else": (name: string) =>
    `if constexpr (mode != 0) { threadgroup float ${name}[8192]; USE(${name}) } else { threadgroup float ${name}[64][64]; USE(${name}[0]) }`,
  "if constexpr in another": (name: string) =>
    `if constexpr (mode < 2) { if constexpr (mode == 1) { threadgroup float ${name}[8192]; USE(${name}) } if constexpr (mode == 0) { threadgroup float4 more[1024]; threadgroup float *p = (threadgroup float *)more; USE(p) } }`,
};
for (const [name, body] of Object.entries(branches)) {
  const done = countCase();
  test(`publishedThreadgroup: what dead branches hold is not counted: ${name}`, () => {
    using device = Device.open();
    const source = `#include <metal_stdlib>
using namespace metal;
#define USE(p) { (p)[i] = i; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = (p)[3 - i]; }
template <int mode> kernel void body(${head}) { ${body("tile")} }
template [[host_name("k0")]] kernel void body<0>(device float *, uint);
template [[host_name("k1")]] kernel void body<1>(device float *, uint);
`;
    device.registerSource("branches.metal", source);
    for (const [kernel, bytes] of [
      ["k0", 16384],
      ["k1", 32768],
    ] as const) {
      using pipeline = device.pipeline(kernel);
      expect(pipeline.info.staticThreadgroupMemoryLength).toBe(bytes);
      using out = device.tensor("f32", [4]);
      using pass = device.pass();
      pass.dispatch(pipeline, { buffers: [out], grid: 4, threads: 4 });
      pass.commitAndWait();
      expect([...out.toFloat32Array()]).toEqual([3, 2, 1, 0]);
    }
    done();
  });
}
