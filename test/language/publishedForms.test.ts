/** Forms of published kernel files that Apple's compiler takes: kernel templates, references, braces, attributes. */
import { floats, type KernelCase, range, uints } from "./harness.ts";
import { bareSuite, sourceSuite, statementSuite } from "./separate.ts";

const list = range(64, (k) => k * 0.5 - 4);
const parameters =
  "device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]";
const types = "device float *, const device float *, uint";
const swapped: KernelCase = {
  name: "",
  kernel: "k",
  out: "float",
  inputs: [floats(list)],
  grid: 64,
  threads: 64,
  expected: list.map((_, k) => 2 * (list[63 - k] ?? 0)),
};

sourceSuite("functionParameters", [
  {
    ...swapped,
    name: "a threadgroup array in a kernel template with a function as parameter",
    source: `static void twice(float x, thread float &y) { y = 2 * x; }
template <typename T, void (*f)(T, thread T &)> kernel void body(${parameters}) { threadgroup T s[64]; T y; f(in[i], y); s[i] = y; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = s[63 - i]; }
template [[host_name("k")]] kernel void body<float, twice>(${types});`,
  },
  {
    ...swapped,
    name: "the same with blocks in device memory, decltype and a second function",
    source: `struct block { half4 v[4]; };
static void load(device const block *b, thread half4x4 &m) { m = half4x4(b->v[0], b->v[1], b->v[2], b->v[3]); }
static half twice(half x) { return x * 2.0h; }
template <typename B, void (*f)(device const B *, thread half4x4 &), half (*g)(half)> kernel void body(device float *out [[buffer(0)]], device const B *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  threadgroup half s[64]; half4x4 m; f(in + i / 16, m); s[i] = g(m[i / 4 % 4][i % 4]); threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = s[63 - i]; }
typedef decltype(body<block, load, twice>) body_t;
template [[host_name("k")]] kernel body_t body<block, load, twice>;`,
    inputs: [{ type: "half", values: range(64, (k) => 0x3c00 + (k << 4)) }],
    expected: range(64, (k) => 2 * (1 + (63 - k) / 64)),
  },
  {
    ...swapped,
    name: "an operation of a SIMD group as parameter, threadgroup structs and two arrays",
    source: `struct Best { float v; uint at; };
template <float (*reduce)(float), short N> [[kernel]] void body(${parameters}, uint g [[simdgroup_index_in_threadgroup]]) {
  threadgroup Best best[N]; threadgroup float s[N * 32]; s[i] = in[i]; const float top = reduce(in[i]); if (simd_is_first()) best[g] = {top, g}; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = best[1 - g].v + best[g].at + s[63 - i]; }
template [[host_name("k")]] [[kernel]] void body<simd_max, 2>(${types}, uint);`,
    expected: list.map((_, k) => (list[k < 32 ? 63 : 31] ?? 0) + (k < 32 ? 0 : 1) + (list[63 - k] ?? 0)),
  },
]);

statementSuite("referencesToPointers", [
  {
    name: "a template that moves a pointer",
    before: "template <typename T> void adv(const device T *&x) { x += 2; }",
    code: "const device float *p = a; adv(p); out[0] = *p; adv<float>(p); out[1] = p[0];",
    out: "float",
    threads: 1,
    inputs: [floats([1, 2, 3, 4, 5])],
    expected: [3, 5],
  },
  {
    name: "a template that swaps two pointers, and one that sets its argument",
    before:
      "template <typename T> void swap_pointers(device T *&x, device T *&y) { device T *t = x; x = y; y = t; }\ntemplate <typename T, int N> METAL_FUNC void at(threadgroup T *&p) { p = p + N; }",
    code: "device int *p = out, *q = out + 1; swap_pointers(p, q); *p = 5; *q = 6; threadgroup int box[4]; box[3] = 7; threadgroup int *t = box; at<int, 3>(t); out[2] = *t;",
    out: "int",
    threads: 1,
    expected: [6, 5, 7],
  },
  {
    name: "a method of a class template that moves a pointer",
    before:
      "template <typename T> struct Loader { const int step; Loader(int n) : step(n) {} void next(const device T *&p) { p += step; } template <typename U> static U take(constant U *&p) { return *p++; } };\nconstant float kList[] = {1, 2, 3};",
    code: "const device half *p = (const device half *)a; Loader<half> load(3); load.next(p); constant float *c = kList; out[0] = float(*p); out[1] = Loader<half>::take(c); out[2] = *c;",
    out: "float",
    threads: 1,
    inputs: [uints([0, 0x3c000000])],
    expected: [1, 1, 2],
  },
]);

statementSuite("bracedVectors", [
  {
    name: "braces as the vector argument of a function",
    before: "static uint flat(uint3 p, uint3 n) { return (p.z * n.y + p.y) * n.x + p.x; }",
    code: "const uint3 p(i, 1, 2); out[i] = flat({p.x, p.y, p.z}, {4, 5, 6});",
    out: "uint",
    expected: range(3, (k) => 11 * 4 + k),
  },
  {
    name: "braces as arguments of methods, templates and constructors",
    before:
      "struct Tensor { uint3 n; Tensor(uint3 x) : n(x) {} uint at(uint2 p) const { return p.y * n.x + p.x; } }; template <typename T> static T sum(vec<T, 4> v) { return v.x + v.y + v.z + v.w; } template <typename T> static vec<T, 2> pair(T x) { return {x, x + 1}; }",
    code: "const Tensor t({4, 5, 6}); out[0] = t.at({3, 2}); out[1] = sum<uint>({1, 2, 3, 4}); out[2] = pair(7u).y; out[3] = Tensor{{9, 1, 1}}.at({1, 1});",
    out: "uint",
    threads: 1,
    expected: [11, 10, 8, 10],
  },
  {
    name: "braces as result, default argument, assignment and element",
    before:
      "static float3 made(float x) { return {x, 2 * x, 3}; }\nstatic float second(float x, float2 v = {5, 6}) { return x + v.y; }",
    code: "float3 v = made(2); out[0] = v.y + v.z; out[1] = second(1); v = {7, 8, 9}; out[2] = v.x; float2 list[2] = {{1, 2}, {3, 4}}; list[0] = {0, 10}; out[3] = list[0].y + list[1].x; out[4] = second(0, {}); half4 h = {}; out[5] = h.w;",
    out: "float",
    threads: 1,
    expected: [7, 7, 7, 13, 0, 0],
  },
]);

const typed = "constant float *in [[buffer(1)]], uint i [[thread_position_in_grid]]";
const shared = `template <typename T> static T scale(T x) { return x + T(1); }
template <typename T, typename U> void kernel scale(constant T *in [[buffer(1)]], device U *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = scale(static_cast<U>(in[i])); }
template [[host_name("scale_f")]] void kernel scale<float, float>(constant float *, device float *, uint);
static float next(float x) { return x * 2; }
kernel void next(device float *out [[buffer(0)]], ${typed}) { threadgroup float t[4]; t[i] = next(in[i]); threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = t[3 - i]; }
template <typename T> kernel void fill(device T *out [[buffer(0)]], constant T *in [[buffer(1)]], uint i [[thread_position_in_grid]]) { threadgroup T t[4]; t[i] = in[i]; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = t[3 - i]; }
template <typename T> kernel void fill(device T *out [[buffer(0)]], constant T *in [[buffer(1)]], constant float &m [[buffer(2)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] + m; }
template <typename T> T fill(T x) { return x + 1; }
template [[host_name("fill_2")]] kernel void fill<float>(device float *, constant float *, uint);
template [[host_name("fill_3")]] kernel void fill<float>(device float *out [[buffer(0)]], constant float *in [[buffer(1)]], constant float &m [[buffer(2)]], uint i);`;
const named = { source: shared, out: "float", grid: 4, threads: 4 } as const;
const four = floats([1, 2, 3, 4]);
sourceSuite("sharedNames", [
  {
    ...named,
    name: "an instance of a kernel template beside a template that it calls",
    kernel: "scale_f",
    inputs: [four],
    expected: [2, 3, 4, 5],
  },
  {
    ...named,
    name: "a kernel beside the function that it calls",
    kernel: "next",
    inputs: [four],
    expected: [8, 6, 4, 2],
  },
  {
    ...named,
    name: "instances of two kernel templates of one name: the first",
    kernel: "fill_2",
    inputs: [four],
    expected: [4, 3, 2, 1],
  },
  {
    ...named,
    name: "instances of two kernel templates of one name: the second",
    kernel: "fill_3",
    inputs: [four, floats([10])],
    expected: [11, 12, 13, 14],
  },
]);

const loop = { kernel: "k", out: "float", grid: 4, threads: 4 } as const;
sourceSuite("unusualDeclarations", [
  {
    ...loop,
    name: "an initialised threadgroup array, which the threads fill",
    source:
      "kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { threadgroup float b[32] = {0}; b[i] = i; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = b[3 - i]; }",
    expected: [3, 2, 1, 0],
  },
  {
    ...loop,
    name: "initialised threadgroup arrays of two dimensions and of structs, in a template",
    source: `struct P { float x; int n; };
template <typename T, int N> kernel void body(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { threadgroup T b[N][2] = {{0}}; threadgroup P p[N] = {}; b[i][1] = i + 1; p[i] = {2, int(i)}; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = b[N - 1 - i][1] * 10 + p[N - 1 - i].n; }
template [[host_name("k")]] kernel void body<float, 4>(device float *, uint);`,
    expected: [43, 32, 21, 10],
  },
  {
    ...loop,
    name: "noexcept of functions, methods and templates",
    source: `static float f(float x) noexcept { return x + 1; }
struct S { float v; constexpr float get() const noexcept { return v; } S(float x) noexcept : v(x) {} };
template <typename T> static T g(T x) noexcept { return x * 2; }
kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = f(i) + g(S(3).get()); }`,
    expected: [7, 8, 9, 10],
  },
  {
    ...loop,
    name: "attributes of members for the graphics part",
    source: `struct Vertex { float4 position [[position]]; float2 uv [[user(locn0)]]; float size [[user(size), flat]]; };
kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { Vertex v; v.position = float4(i); v.uv = float2(2); v.size = 3; out[i] = v.position.z + v.uv.y + v.size; }`,
    expected: [5, 6, 7, 8],
  },
  {
    ...loop,
    name: "blocks of extern C, with constants, functions and kernels",
    source: `extern "C" { constant float kBase = 3; static float helper(float x) { return x + kBase; } struct Q { float v; }; }
extern "C" { kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { const Q q = {helper(i)}; out[i] = q.v; } }`,
    expected: [3, 4, 5, 6],
  },
  {
    ...loop,
    name: "extern C before one kernel, and one function",
    source: `extern "C" float twice(float x) { return 2 * x; }
extern "C" kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = twice(i); }`,
    expected: [0, 2, 4, 6],
  },
  {
    ...loop,
    name: "functions that shall not be optimised",
    source: `[[clang::optnone]] static float f(float x) { float y = x; for (int n = 0; n < 3; n++) y += n; return y; }
static float g(float x) __attribute__((optnone)); static float g(float x) { return f(x) + 1; }
kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = g(i); }`,
    expected: [4, 5, 6, 7],
  },
  {
    ...loop,
    name: "a kernel that shall not be optimised, with lanes",
    source: `[[clang::optnone]] static float total(float x) { return simd_sum(x); }
[[kernel]] [[clang::optnone]] void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = total(i); }`,
    expected: [6, 6, 6, 6],
  },
  {
    ...loop,
    name: "sizeof of an instance after a comparison of sizes",
    source: `template <bool small, typename T> struct Pick { typedef T type; T v[small ? 2 : 1]; };
template <typename T> struct C { typename Pick<sizeof(T) < 8, T>::type x, y; };
constant uint kBytes = sizeof(C<half>); constant uint kMore = sizeof(Pick<(sizeof(C<int>) > 8), C<char>>);
kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = kBytes + sizeof(C<float>) * 10 + kMore * 100 + sizeof(C<uchar>) + i; }`,
    expected: range(4, (i) => 4 + 80 + 200 + 2 + i),
  },
  {
    ...loop,
    name: "sizes compared in defaults, conditions and lengths",
    source: `template <typename T, int N = sizeof(T) < 4 ? 8 : 4, bool B = (sizeof(T) > 1)> struct Load { T v[N]; static constexpr constant int n = N + B; };
template <typename T> static enable_if_t<sizeof(T) < 4, int> kind() { return sizeof(Load<T>); }
template <typename T> static enable_if_t<sizeof(T) >= 4, int> kind() { return -int(sizeof(Load<T>)); }
kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { int list[sizeof(Load<half>) > 8 ? 3 : 1]; out[i] = kind<half>() * 100 + kind<float>() + sizeof(list) + Load<uchar>::n + i; }`,
    expected: range(4, (i) => 1600 - 16 + 12 + 8 + i),
  },
  {
    ...loop,
    name: "instantiations whose arguments are deduced",
    source: `template <typename T> kernel void body(device T *out [[buffer(0)]], constant T &by [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = T(i) * by; }
template [[host_name("k")]] kernel void body(device float *out [[buffer(0)]], constant float &by [[buffer(1)]], uint i [[thread_position_in_grid]]);
template [[host_name("whole")]] kernel void body(device int *, constant int &, uint);`,
    inputs: [floats([2.5])],
    expected: [0, 2.5, 5, 7.5],
  },
  {
    ...loop,
    name: "alias templates of types of functions",
    source: `template <typename T> using Unary = T(T);
static float twice(float x) { return 2 * x; } static float add(float x, float y) { return x + y; }
template <typename T, Unary<T> f, T (*g)(T, T)> static T apply(T x) { return g(f(x), x); }
template <typename T> using Body = void(device T *, uint);
template <typename T> kernel void body(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = apply<T, twice, add>(i); }
template [[host_name("k")]] kernel Body<float> body<float>;`,
    expected: [0, 3, 6, 9],
  },
  {
    ...loop,
    name: "structs by typedef inside templates",
    source: `template <typename T> static T last(T x) { typedef struct { T value; int n; } Item; Item items[2] = {{x, 1}, {x + 1, 2}}; return items[1].value * items[1].n; }
template <typename T> struct Outer { typedef struct { T x, y; } pair; typedef struct Named { T z; } named; pair p; named q; };
template <typename T> kernel void body(device T *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { typedef struct { T v; } Box; threadgroup Box box[4]; box[i].v = last(T(i)); Outer<T> o = {{1, 2}, {3}}; typename Outer<T>::pair p = o.p; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[3 - i].v + p.y + o.q.z; }
template [[host_name("k")]] kernel void body<float>(device float *, uint);`,
    expected: [13, 11, 9, 7],
  },
  {
    ...loop,
    name: "strings as constant char",
    source: `constant char *kText = "metal"; constant char kList[] = "abc";
static int length(constant char *s) { int n = 0; while (s[n]) n++; return n; }
template <typename T> static constant char *name() { return is_same_v<T, float> ? "float" : "int"; }
kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { constant char *s = "ab" "cd"; out[i] = length(s) + length("xyz") * 10 + name<float>()[i] + kText[1] * 1000 + sizeof(kList) * 100; }`,
    expected: range(4, (i) => 4 + 30 + "float".charCodeAt(i) + "e".charCodeAt(0) * 1000 + 400),
  },
  {
    ...loop,
    name: "declarations in branches of #if that are not taken",
    source: `#define WIDE 0
#if WIDE
typedef float4 T; struct S { double v; }; constant int kN [[function_constant(0)]];
kernel void k(device float4 *out [[buffer(0)]], texture2d<float> t [[texture(0)]]) { }
#else
typedef float T; struct S { T v; };
#  ifdef UNKNOWN
template <typename T> struct Bad : Missing<T> { virtual ~Bad(); };
#  elif !defined(__HAVE_BFLOAT__)
typedef struct _bf { ushort bits; operator float() const { return 0; } } bfloat;
#  endif
constant int kN = 3;
kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { S s = {T(i)}; out[i] = s.v * kN + float(bfloat(1)); }
#endif`,
    expected: [1, 4, 7, 10],
  },
  {
    ...loop,
    name: "two definitions of a struct, a function and an alias, one of them not taken",
    source: `#define FAST 1
#if FAST == 1
struct Op { float4 v; }; using R = float4; static R get(Op o) { return o.v + 1; }
#endif
#if FAST == 2
struct Op { float v; }; using R = float; static R get(Op o) { return o.v; }
#endif
#ifndef FAST
threadgroup float shared[32]; int counter;
#endif
kernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { Op o; o.v = i; R r = get(o); r++; out[i] = r.w; }`,
    expected: [2, 3, 4, 5],
  },
]);

/** Sources that include less than the standard library, or do not use its namespace. */
bareSuite("namesOutOfMetal", [
  {
    ...loop,
    name: "select, clamp and max of narrow headers by their whole names",
    source:
      "#include <metal_math>\n#include <metal_integer>\n#include <metal_simdgroup>\nkernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = metal::select(1.0f, 2.0f, i > 1) + metal::max(i, 2u) + metal::clamp(int(i), 1, 2); }",
    expected: [1 + 2 + 1, 1 + 2 + 1, 2 + 2 + 2, 2 + 3 + 2],
  },
  {
    ...loop,
    name: "as_type and types without the namespace",
    source:
      "#include <metal_stdlib>\nkernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { const float2 v = as_type<float2>(uint2(0x3f800000, 0x40000000)); out[i] = as_type<float>(0x40400000u + i) - as_type<float>(0x40400000u + i) + v.y + as_type<half2>(0x3c004000u).y; }",
    expected: [3, 3, 3, 3],
  },
  {
    ...loop,
    name: "using declarations of types and functions",
    source:
      "#include <metal_stdlib>\nusing metal::uint; using metal::float4; using metal::max; using metal::uint3;\nnamespace m = metal;\nkernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { const float4 v(max(i, uint(2))); using m::fract; out[i] = v.x + fract(1.25f) + uint3(1).z; }",
    expected: [3.25, 3.25, 3.25, 4.25],
  },
]);
