/** Names and forms of published files once more, each in other places: templates, macros, structs, narrow includes. */
import { bfloat } from "./formats.ts";
import { encoded, floats, ints, range } from "./harness.ts";
import { bareSuite, sourceSuite, statementSuite } from "./separate.ts";

const values = [0.75, -2.5, 3, 9];
const inputs = [floats(values)];

statementSuite("furtherNames", [
  {
    name: "assert in a template, in a macro and with a comma in its condition",
    before:
      "#define CHECKED(x, n) (assert((n) > 0), (x) / (n))\ntemplate <typename T, int N> static T at(T x) { assert(N < 4); return x * N; }\nstruct R { int lo, hi; bool has(int n) const { assert(lo <= hi); return n >= lo && n < hi; } };",
    code: "assert((is_same_v<float, float>)); const R r = {0, 4}; out[i] = r.has(i) ? CHECKED((at<float, 3>(a[i])), 2) : -1;",
    out: "float",
    inputs,
    expected: values.map((x) => (x * 3) / 2),
  },
  {
    name: "memory that other devices see, as a struct's member and a template's argument",
    before:
      "template <typename T> static T first(const volatile coherent(system) device T *p) { return p[0]; }\nstruct Ring { volatile coherent(system) device uint *slots; uint mask; void put(uint at, uint v) { slots[at & mask] = v; } };",
    code: "Ring r = {out, 3}; r.put(i + 4, i * 3); const uint w = first(out + i); out[i] = w + 1;",
    out: "uint",
    threads: 4,
    expected: [1, 4, 7, 10],
  },
  {
    name: "memory that other devices see, through an alias and a cast",
    before: "typedef volatile coherent(system) device uint *shared_t;",
    code: "shared_t p = (shared_t)out; coherent(system) device uint &x = out[i]; p[i] = i + 5; x = x * 2;",
    out: "uint",
    threads: 4,
    expected: [10, 12, 14, 16],
  },
  {
    name: "limits of vectors in templates, by component and as constants",
    before:
      "template <typename V> static V lowest() { return numeric_limits<V>::lowest(); }\nconstant float4 kTop = numeric_limits<float4>::max();\ntemplate <typename T> struct Best { T v = -numeric_limits<T>::infinity(); void see(T x) { v = max(v, x); } };",
    code: "out[0] = lowest<short2>().y; out[1] = kTop.w == FLT_MAX; Best<float2> b; b.see(float2(a[0], a[3])); b.see(float2(a[2])); out[2] = b.v.x + b.v.y; out[3] = numeric_limits<uint3>::max().z == 0xffffffffu; out[4] = any(numeric_limits<half4>::epsilon() > 0.0h);",
    out: "float",
    threads: 1,
    inputs,
    expected: [-32768, 1, 12, 1, 1],
  },
  {
    name: "limits of a type of the file's own, by the name of Apple's headers",
    before:
      "template <typename T> struct Indexed { uint i; T x; }; namespace metal { template <typename T> struct _numeric_limits_impl<Indexed<T>> { static constexpr Indexed<T> lowest() { return Indexed<T>{7, numeric_limits<T>::lowest()}; } }; }",
    code: "const Indexed<char> a = numeric_limits<Indexed<char>>::lowest(); out[0] = a.i; out[1] = a.x; out[2] = _numeric_limits_impl<short>::max();",
    out: "int",
    threads: 1,
    expected: [7, -128, 32767],
  },
  {
    name: "types that functions of the SIMD group take",
    before: "template <typename T> constexpr constant bool kIsTaken = __is_valid_simdgroup_type<T>::value;",
    code: "out[0] = kIsTaken<float>; out[1] = kIsTaken<long>; out[2] = kIsTaken<bool>; out[3] = kIsTaken<bfloat>; out[4] = kIsTaken<ulong2>; out[5] = kIsTaken<uchar4>;",
    out: "int",
    threads: 1,
    expected: [1, 0, 0, 1, 0, 1],
  },
  {
    name: "metal::nullptr_t",
    before:
      "struct Maybe { int n; Maybe(thread const metal::nullptr_t &) : n(5) {} Maybe(int n) : n(n) {} }; static int f(nullptr_t) { return 2; }",
    code: "Maybe a(nullptr), b(3); out[0] = a.n + b.n + f(nullptr); out[1] = is_same_v<metal::nullptr_t, decltype(nullptr)>;",
    out: "int",
    threads: 1,
    expected: [10, 1],
  },
  {
    name: "functions by the names that C gives those of float",
    before:
      "float sinf(float x) { return x + 1; } static float powf(float x, float y) { return x * y; } inline int ilogbf(float) { return 9; }",
    code: "out[0] = sinf(2) + powf(3, 4) + ilogbf(8.0f); out[1] = pow(2.0f, 10.0f) + sin(0.0f) + ilogb(8.0f); out[2] = sin(100000.0f) > 0.0357 && sin(100000.0f) < 0.0358;",
    out: "float",
    threads: 1,
    expected: [24, 1027, 1],
  },
  {
    name: "saturated sums and differences with a number of known sign",
    code: "const int x = int(a[i]); out[4 * i] = subsat(5, x); out[4 * i + 1] = addsat(x & 255, 2147483600); out[4 * i + 2] = addsat(char(100), char(x)); out[4 * i + 3] = subsat(uchar(7), uchar(x));",
    out: "int",
    threads: 4,
    inputs: [floats([90, -2, 3, 9])],
    expected: [90, -2, 3, 9].flatMap((x) => [
      5 - x,
      Math.min(2 ** 31 - 1, (x & 255) + 2147483600),
      Math.min(127, 100 + x),
      Math.max(0, 7 - (x & 255)),
    ]),
  },
  {
    name: "limits of vectors by an alias and in a macro",
    before: "#define LIMIT(T, which) (numeric_limits<T>::which())\nusing V = vec<int, 3>;",
    code: "out[0] = LIMIT(V, min).x; out[1] = LIMIT(uchar2, max).y; out[2] = metal::numeric_limits<V>::max()[2];",
    out: "int",
    threads: 1,
    expected: [-(2 ** 31), 255, 2 ** 31 - 1],
  },
  {
    name: "vec_elements in a specialization, as an array's length and of const types",
    before:
      "template <typename T, uint N = vec_elements<T>::value> struct Lanes { uint list[N]; };\ntemplate <typename V> static float total(V v) { float s = 0; for (uint k = 0; k < vec_elements<V>::value; ++k) s += v[k]; return s; }",
    code: "out[0] = sizeof(Lanes<half3>); out[1] = total(float3(1, 2, 3)); out[2] = total(int4(1)); out[3] = vec_elements<bfloat2>::value * 10;",
    out: "float",
    threads: 1,
    expected: [12, 6, 4, 20],
  },
  {
    name: "remove_addrspace_t of a pointer's element and of a reference, in templates",
    before:
      "template <typename P> static auto loaded(P p) { using E = remove_addrspace_t<remove_reference_t<decltype(*p)>>; remove_const_t<E> x = *p; x += 1; return x; }\ntemplate <typename T> struct Plain { typedef metal::remove_addrspace_t<T> type; };",
    code: "threadgroup float box[1]; box[0] = a[1]; out[0] = loaded(a); out[1] = loaded(box); out[2] = is_same_v<Plain<constant half4>::type, const half4> || is_same_v<Plain<constant half4>::type, half4>; Plain<thread int>::type n = 3; out[3] = n;",
    out: "float",
    threads: 1,
    inputs,
    expected: [1.75, -1.5, 1, 3],
  },
  {
    name: "the user's forward, is_empty and void_t in a namespace and beside metal's",
    before:
      "namespace mine { template <typename T> struct is_empty : false_type {}; template <> struct is_empty<int> : true_type {}; template <typename...> struct make_void { typedef void type; }; template <typename... T> using void_t = typename make_void<T...>::type; template <typename T> static T forward(T x, int n) { return x + n; } }",
    code: "using mine::forward; out[0] = forward(2, 3); out[1] = mine::is_empty<int>::value; out[2] = is_same_v<mine::void_t<int, float>, void>; using namespace mine; out[3] = is_empty<float>::value;",
    out: "int",
    threads: 1,
    expected: [5, 1, 1, 0],
  },
  {
    name: "a dot and a length of the user's for packed vectors and by pointer",
    before:
      "template <typename T> static T dot(const device T *x, const device T *y, int n) { T s = 0; for (int k = 0; k < n; ++k) s += x[k] * y[k]; return s; }\nstatic float length(packed_float2 v) { return v[0] + v[1]; }",
    code: "out[0] = dot(a, a, 2); out[1] = dot(float2(1, 2), float2(3, 4)); out[2] = length(packed_float2(3, 4)); out[3] = length(float2(3, 4));",
    out: "float",
    threads: 1,
    inputs,
    expected: [0.5625 + 6.25, 11, 7, 5],
  },
  {
    name: "a bfloat by the modes' names in a template, and beside the library's",
    before:
      "namespace metal { template <int MODE> METAL_FUNC bfloat scaled(bfloat x) { return bfloat(__metal_fma(float(x), 2.0f, 1.0f)); } METAL_FUNC bfloat pow(bfloat x, bfloat y) { return static_cast<bfloat>(__metal_pow(static_cast<float>(x), static_cast<float>(y), __METAL_MAYBE_FAST_MATH__)); } }",
    code: "const bfloat x = a[i]; out[i] = float(scaled<__METAL_FAST_MATH__>(x)) + float(pow(x, bfloat(2)));",
    out: "float",
    inputs: [encoded(bfloat, [1, 2, -3, 4])],
    expected: [4, 9, 4, 25],
  },
]);

const loop = { kernel: "k", out: "float", grid: 4, threads: 4 } as const;
bareSuite("furtherBare", [
  {
    ...loop,
    name: "narrow includes alone: common, geometric, relational and type traits",
    source:
      "#include <metal_common>\n#include <metal_geometric>\n#include <metal_relational>\n#include <metal_type_traits>\nkernel void k(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { const metal::float3 v(1, 2, 2); out[i] = metal::length(v) + metal::clamp(float(i), 1.0f, 2.0f) + (metal::isnan(0.0f) ? 100 : 0) + metal::is_same<float, float>::value + metal::select(0, 10, i == 3); }",
    expected: [5, 5, 6, 16],
  },
  {
    ...loop,
    name: "using declarations inside a function, a struct's namespace and of as_type",
    source:
      "#include <metal_stdlib>\nnamespace app { using metal::half2; using metal::float2; static float2 wide(half2 h) { using metal::max; return max(float2(h), float2(1)); } }\nkernel void k(device float *out [[buffer(0)]], metal::uint i [[thread_position_in_grid]]) { using metal::as_type; out[i] = app::wide(app::half2(i, 2)).x + as_type<float>(0x3f800000u) + as_type<app::half2>(0x40003c00u).y; }",
    expected: [4, 4, 5, 6],
  },
]);

const ownPair = "struct Pair { float2 v; };";
const kernelOf =
  "device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]";
sourceSuite("furtherForms", [
  {
    ...loop,
    name: "functions for types of the user's that call the library's of their name",
    inputs: [floats(values)],
    source: `${ownPair} static float length(Pair p) { return length(p.v); } static Pair clamp(Pair p, float lo, float hi) { return {clamp(p.v, lo, hi)}; } static Pair max(Pair p, Pair q) { return {max(p.v, q.v)}; } static float max(Pair p) { return max(p.v.x, p.v.y); }
kernel void k(${kernelOf}) { const Pair p = {float2(3, 4)}; out[i] = length(p) + clamp(p, 0, 3.5).v.y + max(p) + max(p, Pair{in[i]}).v.x; }`,
    expected: values.map((x) => 5 + 3.5 + 4 + Math.max(3, x)),
  },
  ...["all", "floor", "dot", "reverse"].map((kernel) => ({
    ...loop,
    kernel,
    name: `a kernel named ${kernel}, which calls the library's`,
    inputs: [floats(values)],
    source: `kernel void ${kernel}(${kernelOf}) { out[i] = floor(in[i]) + dot(float2(in[i], 1), float2(2, 3)) + all(float2(in[i]) > 0); }`,
    expected: values.map((x) => Math.floor(x) + 2 * x + 3 + (x > 0 ? 1 : 0)),
  })),
  {
    ...loop,
    name: "function constants of types in two words, and without a value of their own",
    inputs: [ints([1])],
    constants: [
      { index: 0, dtype: "u16", value: 5 },
      { index: 1, dtype: "u32", value: 7 },
      { index: 2, dtype: "i8", value: -2 },
      { index: 3, dtype: "f16", value: [1, 2, 3] },
    ],
    source: `constant unsigned short a [[function_constant(0)]]; constant unsigned int b [[function_constant(1)]]; constant signed char c [[function_constant(2)]], d [[function_constant(4)]]; constant vec<half, 3> v [[function_constant(3)]];
kernel void k(${kernelOf}) { out[i] = a + b + c + v.z + (is_function_constant_defined(d) ? 100 : 0); }`,
    expected: range(4, () => 13),
  },
]);
