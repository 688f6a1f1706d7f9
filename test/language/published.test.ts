/** Forms of published kernel files that Apple's compiler takes: names, conversions, references, braces. */
import { bfloat, bitsOf } from "./formats.ts";
import { encoded, floats, ints, range } from "./harness.ts";
import { statementSuite } from "./separate.ts";

const values = [0.75, -2.5, 3, 9];
const inputs = [floats(values)];

statementSuite("publishedLiterals", [
  {
    name: "library functions of a number and a literal",
    code: "const float x = a[i]; out[i] = max(0.0, x) + clamp(x, 0.0, 1.0) + fmin(x, 2.0) + pow(x, 2.0) + fma(x, 2.0, 0.5) + saturate(x * 0.25);",
    out: "float",
    inputs,
    ulps: 2,
    expected: values.map(
      (x) =>
        Math.max(0, x) +
        Math.min(Math.max(x, 0), 1) +
        Math.min(x, 2) +
        x * x +
        2 * x +
        0.5 +
        Math.min(Math.max(x / 4, 0), 1),
    ),
  },
  {
    name: "literals with vectors, halves and integers",
    code: "const float3 v(a[0], a[1], a[2]); const half2 h(0.5, 1.5); const float3 w = 0.5 * v + 1.0; out[0] = w.y; out[1] = (v * 2.0 - 0.25).z; out[2] = float((h * 2.0h).y); out[3] = max(v, 0.0).y; out[4] = 3 * 0.5; out[5] = mix(v, float3(0.0), 0.5).z;",
    out: "float",
    threads: 1,
    inputs,
    expected: [-0.25, 5.75, 3, 0, 1.5, 1.5],
  },
  {
    name: "bfloat of an expression with a literal",
    code: "const float f = a[i]; out[i] = as_type<ushort>(bfloat(f * 1.44)); ",
    out: "ushort",
    inputs,
    expected: values.map((x) => bitsOf(bfloat, Math.fround(x * Math.fround(1.44)))),
  },
  {
    name: "the size and the type of a literal",
    before:
      "template <typename T> static int kind(T) { return is_same_v<T, float> ? 1 : is_same_v<T, half> ? 2 : 3; }\n#define PI 3.14159265358979\nconstant float kTwoPi = 2.0 * PI;",
    code: "out[0] = sizeof(0.1); out[1] = kind(PI); out[2] = kind(0.5 * 2); out[3] = kind(0.5h); out[4] = sizeof(1 ? 0.5 : 1); out[5] = int(kTwoPi * 1000.0); out[6] = kTwoPi == 2.0f * 3.14159265358979f; out[7] = is_same_v<decltype(1.0), float>;",
    out: "int",
    threads: 1,
    expected: [4, 1, 1, 2, 4, 6283, 1, 1],
  },
]);

/** What a file may define itself in namespace metal, by the names that Apple's headers are written with. */
const overloads = `typedef bfloat bfloat16_t;
#define ELEMENTARY(mode) \\
  METAL_FUNC bfloat16_t fma(bfloat16_t x, bfloat16_t y, bfloat16_t z) { return static_cast<bfloat16_t>(__metal_fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z), mode)); } \\
  METAL_FUNC bfloat16_t ldexp(bfloat16_t x, int k) { return static_cast<bfloat16_t>(__metal_ldexp(static_cast<float>(x), k, mode)); } \\
  METAL_FUNC bfloat16_t frexp(bfloat16_t x, thread int &e) { return static_cast<bfloat16_t>(__metal_frexp(static_cast<float>(x), &e)); }
#define OVERLOADS(mode) \\
  METAL_FUNC bfloat16_t abs(bfloat16_t x) { return static_cast<bfloat16_t>(__metal_fabs(static_cast<float>(x), mode)); } \\
  METAL_FUNC bfloat16_t floor(bfloat16_t x) { return static_cast<bfloat16_t>(__metal_floor(static_cast<float>(x), mode)); } \\
  METAL_FUNC bfloat16_t max(bfloat16_t x, bfloat16_t y) { return static_cast<bfloat16_t>(__metal_fmax(static_cast<float>(x), static_cast<float>(y), mode)); } \\
  METAL_FUNC bfloat16_t exp2(bfloat16_t x) { return static_cast<bfloat16_t>(__metal_exp2(static_cast<float>(x), mode)); }
namespace metal {
OVERLOADS(__METAL_MAYBE_FAST_MATH__)
ELEMENTARY(__METAL_MAYBE_FAST_MATH__)
namespace fast { ELEMENTARY(__METAL_FAST_MATH__) }
namespace precise { ELEMENTARY(__METAL_PRECISE_MATH__) }
namespace fast { OVERLOADS(__METAL_FAST_MATH__) }
namespace precise { OVERLOADS(__METAL_PRECISE_MATH__) }
METAL_FUNC bfloat16_t simd_max(bfloat16_t x) { return static_cast<bfloat16_t>(__metal_simd_max(static_cast<float>(x))); }
METAL_FUNC bfloat16_t simd_shuffle_down(bfloat16_t x, ushort delta) { return static_cast<bfloat16_t>(__metal_simd_shuffle_down(static_cast<float>(x), delta)); }
METAL_FUNC bfloat16_t simd_sum(bfloat16_t x) { return static_cast<bfloat16_t>(__metal_simd_sum(static_cast<float>(x))); }
}`;
const steps = range(32, (k) => k - 8);

statementSuite("publishedNames", [
  {
    name: "overloads for bfloat in namespace metal, by builtins and the modes of mathematics",
    before: overloads,
    code: "const bfloat16_t x = bfloat16_t(a[i]); out[i] = float(abs(x)) + float(metal::floor(x)) + float(fast::max(x, bfloat16_t(1))) + float(precise::exp2(bfloat16_t(3)));",
    out: "float",
    inputs,
    expected: values.map((x) => Math.abs(x) + Math.floor(x) + Math.max(x, 1) + 8),
  },
  {
    name: "overloads of fma, ldexp and frexp for bfloat, which the language has already",
    before: overloads,
    code: "int e; out[0] = float(fma(bfloat16_t(2), bfloat16_t(3), bfloat16_t(1))) + float(fast::fma(bfloat16_t(1), bfloat16_t(1), bfloat16_t(1))); out[1] = float(ldexp(bfloat16_t(3), 2)); out[2] = float(precise::frexp(bfloat16_t(12), e)); out[3] = e;",
    out: "float",
    threads: 1,
    expected: [9, 12, 0.75, 4],
  },
  {
    name: "overloads of functions of the SIMD group for bfloat",
    before: overloads,
    code: "const bfloat16_t x = a[i]; out[i] = float(simd_max(x)) + 100 * float(simd_sum(x)) + 10000 * float(metal::simd_shuffle_down(x, 1));",
    out: "float",
    inputs: [encoded(bfloat, steps)],
    // Lane 31 keeps its own value.
    expected: steps.map((_, k) => 23 + 100 * steps.reduce((x, y) => x + y) + 10000 * (steps[Math.min(k + 1, 31)] ?? 0)),
  },
  {
    name: "functions of all modes by a macro for float",
    before:
      "#define EACH(name, mode) static float name##_##mode(float x) { return __metal_##name(x, __METAL_##mode##_MATH__); }\nEACH(sqrt, PRECISE) EACH(rint, FAST) EACH(trunc, MAYBE_FAST) EACH(ceil, PRECISE)",
    code: "out[0] = sqrt_PRECISE(a[3]); out[1] = rint_FAST(a[1]); out[2] = trunc_MAYBE_FAST(a[1]); out[3] = ceil_PRECISE(a[0]);",
    out: "float",
    threads: 1,
    inputs,
    expected: [3, -2, -2, 1],
  },
  {
    name: "modes of mathematics as a bool argument and in #if",
    before:
      "#ifndef __METAL_MAYBE_FAST_MATH__\n#error not defined\n#endif\nMETAL_FUNC float twice(float x, bool fast = __METAL_MAYBE_FAST_MATH__) { return fast ? x * 2 : x + x; }",
    code: "out[0] = twice(a[0]); out[1] = twice(a[0], __METAL_FAST_MATH__); out[2] = twice(a[0], __METAL_PRECISE_MATH__); out[3] = __METAL_FAST_MATH__ != __METAL_PRECISE_MATH__;",
    out: "float",
    threads: 1,
    inputs,
    expected: [1.5, 1.5, 1.5, 1],
  },
  {
    name: "vec_elements of vectors and scalars",
    before:
      "template <uint N> constexpr uint nonzero() { return N == 0 ? 1 : N; }\ntemplate <typename T> constexpr uint width() { return nonzero<vec_elements<T>::value>(); }",
    code: "out[0] = width<float4>(); out[1] = width<half2>(); out[2] = width<float>(); out[3] = width<uchar3>(); uint list[width<int2>() * 2] = {}; out[4] = sizeof(list);",
    out: "uint",
    threads: 1,
    expected: [4, 2, 1, 3, 16],
  },
  {
    name: "remove_addrspace_t of what decltype gives",
    before:
      "template <typename T, T V> struct Number { static constant constexpr T value = V; };\ntemplate <typename T, T v, typename U, U w> constexpr auto operator+(Number<T, v>, Number<U, w>) { constexpr auto sum = v + w; using S = metal::remove_addrspace_t<decltype(sum)>; return Number<remove_const_t<S>, sum>{}; }",
    code: "constexpr auto s = Number<int, 3>{} + Number<int, 4>{}; out[0] = s.value; out[1] = is_same_v<metal::remove_addrspace_t<device float>, float>; out[2] = is_same_v<remove_addrspace_t<threadgroup int2>, int2>; remove_addrspace_t<float> x = 2.5f; out[3] = int(x * 2);",
    out: "int",
    threads: 1,
    expected: [7, 1, 1, 5],
  },
  {
    name: "types of namespace metal by their whole names, in functions and structs",
    before:
      "static metal::float4 made(metal::half x) { return metal::float4(metal::float2(x), metal::float2(1)); }\nstruct Shape { metal::uint2 size; metal::packed_float3 at; metal::uchar tag; };",
    code: "const metal::float4 v = made(1.5h); Shape s; s.size = metal::uint2(3, 4); s.at = metal::float3(5); s.tag = 6; out[0] = v.y; out[1] = s.size.y + s.at.z + s.tag;",
    out: "float",
    threads: 1,
    expected: [1.5, 15],
  },
  {
    name: "types of namespace metal by their whole names, in casts and templates",
    before: "template <typename T> static T half_of(T x) { return x / T(2); }",
    code: "const ::metal::int3 n(1, 2, 3); out[0] = metal::max(n, metal::int3(2)).x; out[1] = metal::uint(7) + metal::ushort(1); out[2] = half_of<metal::float2>(5).y; out[3] = sizeof(metal::half4); out[4] = (metal::float3x3(2))[1][1];",
    out: "float",
    threads: 1,
    expected: [2, 8, 2.5, 8, 2],
  },
  {
    name: "assert as a statement",
    before: "static float checked(float x) { assert(x == x); return x; }",
    code: 'assert(a[2] == 3); assert(i < 4 && "in the grid"); if (i == 0) assert(true); out[i] = checked(a[i]);',
    out: "float",
    inputs,
    expected: values,
  },
  {
    name: "limits of vectors",
    code: "const float4 v = numeric_limits<float4>::max(); const int2 n = numeric_limits<int2>::min(); const uchar4 c = numeric_limits<uchar4>::max(); const float2 w = numeric_limits<float2>::infinity(); out[0] = v.z == FLT_MAX; out[1] = n.x; out[2] = c.w; out[3] = -w.y;",
    out: "float",
    threads: 1,
    inputs,
    expected: [1, -(2 ** 31), 255, Number.NEGATIVE_INFINITY],
  },
  {
    name: "memory that other devices see",
    before: "static uint stepped(volatile coherent(system) device uint *p, uint k) { p[k] = p[k] + 1; return p[k]; }",
    code: "volatile coherent(system) device uint *p = out; coherent(system) device uint *q = out + 4; p[i] = i; q[i] = stepped(p, i) * 2; q[i] += 1;",
    out: "uint",
    threads: 4,
    expected: [1, 2, 3, 4, 3, 5, 7, 9],
  },
  {
    name: "templates of the user's of names that the library has for vectors",
    before:
      "template <typename T> static T dot(T x, T y) { return x * y + 1; }\ntemplate <typename T> static T cross(T x, T y) { return x - y; }",
    code: "out[0] = dot(2.0f, 3.0f); out[1] = dot(2, 3); out[2] = cross(5.0f, 3.0f); out[3] = cross(short(7), short(3));",
    out: "float",
    threads: 1,
    expected: [7, 7, 2, 4],
  },
  {
    name: "the same for types of the user's, and the library's for vectors",
    before:
      "struct Pair { float x, y; Pair operator*(Pair o) const { return {x * o.x, y * o.y}; } Pair operator+(Pair o) const { return {x + o.x, y + o.y}; } };\ntemplate <typename T> static T dot(T x, T y) { return x * y + x; }\nstatic float length(Pair p) { return p.x + p.y; }\nstatic Pair max(Pair p, Pair q) { return length(p) < length(q) ? q : p; }",
    code: "out[0] = dot(Pair{1, 2}, Pair{3, 4}).y; out[1] = dot(float3(1, 2, 3), float3(4, 5, 6)); out[2] = metal::dot(float2(1, 2), float2(3)); out[3] = max(Pair{1, 2}, Pair{3, 4}).x + max(1.0f, 2.0f); out[4] = length(Pair{3, 4}) + length(float2(3, 4));",
    out: "float",
    threads: 1,
    expected: [10, 32, 9, 5, 12],
  },
  {
    name: "a function forward, a trait is_empty of the user's",
    before:
      "template <typename T> static T forward(T x) { return x + 1; }\ntemplate <typename T> struct is_empty { static constant constexpr bool value = sizeof(T) <= 1; };\nstruct E {};",
    code: "out[0] = forward(3); out[1] = is_empty<E>::value; out[2] = is_empty<float>::value; out[3] = int(forward<float>(1.5));",
    out: "int",
    threads: 1,
    expected: [4, 1, 0, 2],
  },
  {
    name: "a void_t of the user's, to ask for a member",
    before:
      "template <typename...> using void_t = void;\ntemplate <typename T, typename = void> struct Has : false_type {};\ntemplate <typename T> struct Has<T, void_t<decltype(T::x)>> : true_type {};\nstruct E {}; struct X { int x; };",
    code: "out[0] = Has<X>::value; out[1] = Has<E>::value; out[2] = Has<int>::value;",
    out: "int",
    threads: 1,
    expected: [1, 0, 0],
  },
]);

statementSuite("publishedConversions", [
  {
    name: "an operator for an object in device memory",
    before:
      "struct Pair { half x, y; operator float2() const device { return float2(x, y); } operator float2() const { return float2(x, y) + 100; } };",
    code: "const device Pair *p = (const device Pair *)a; const float2 v = p[i]; const Pair mine = p[i]; const float2 w = mine; out[i] = v.x + v.y * 10 + w.x + float2(*p).y;",
    out: "float",
    inputs: [ints([0x40003c00, 0x44004200])],
    expected: [1 + 20 + 101 + 2, 3 + 40 + 103 + 2],
  },
  {
    name: "a template's operator to a vector, for device, constant and threadgroup memory",
    before:
      "template <typename T> struct Two { T x, y; constexpr operator vec<T, 2>() const device { return vec<T, 2>(x, y); } constexpr operator vec<T, 2>() const constant { return vec<T, 2>(y, x); } operator vec<T, 2>() const threadgroup { return vec<T, 2>(x + y); } };\nconstant Two<float> kTwo = {3, 4};",
    code: "threadgroup Two<int> t; t.x = 5; t.y = 6; const device Two<float> &d = *(const device Two<float> *)a; const float2 v = d; const float2 c = kTwo; const int2 s = t; out[0] = v.x; out[1] = v.y; out[2] = c.x; out[3] = s.y; out[4] = (float2(d) * 2).x;",
    out: "float",
    threads: 1,
    inputs,
    expected: [0.75, -2.5, 4, 11, 1.5],
  },
  {
    name: "operators to bool and to numbers, as conditions and arguments",
    before:
      "struct Flag { int bits; operator bool() const device { return bits & 1; } operator bool() const threadgroup { return bits & 2; } explicit operator float() const device { return bits * 0.5f; } };",
    code: "const device Flag *f = (const device Flag *)a; threadgroup Flag t; t.bits = 2; int n = 0; if (f[0]) n += 1; if (!f[1]) n += 10; n += f[2] && t ? 100 : 0; while (t) { t.bits = 1; n += 1000; } out[0] = n; out[1] = int(float(f[1])); out[2] = f[0] ? 3 : 4;",
    out: "int",
    threads: 1,
    inputs: [ints([1, 6, 3])],
    expected: [1111, 3, 3],
  },
]);
