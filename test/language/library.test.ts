/** Matrices in every memory, and what of the standard library no other file has: limits, traits, rarer functions of <metal_math>. */
import { bitsOf, half } from "./formats.ts";
import { type Case, floats, ints, languageSuite, range, words } from "./harness.ts";

languageSuite(
  "matrix_memory",
  "struct Views { float4x4 view; float2x2 small[2]; float at(int c, int r) const device { return view[c][r]; } };\nconstant float3x3 kMatrix = float3x3(1, 2, 3, 4, 5, 6, 7, 8, 9);",
  [
    {
      name: "columns and elements of matrices in device, constant and threadgroup memory, read and written",
      code: `device float2x2 *d = (device float2x2 *)out; const device float2x2 *from = (const device float2x2 *)a; d[0] = from[1]; d[0][1][0] = 70; (*d)[0] = float2(50, 60); d->columns[1].y = 80;
      d[1] = float2x2(from[0][1], from[0][0]); d[1] += from[0]; d[2] = from[0]; d[2] *= 2; d[2][0] -= from[1][1].yx; threadgroup float4x4 box[2]; box[1] = float4x4(3); box[1][2][1] = 4; box[0] = box[1]; box[0] -= float4x4(1);
      constant float3x3 &m = kMatrix; out[12] = m[1][2] + kMatrix[2].x; out[13] = (kMatrix * float3(1, 0, 0)).z; out[14] = box[0][2][1] + box[0][0].x; out[15] = (box[1] * float4(1)).y;
      const device Views *views = (const device Views *)a; out[16] = views->view[1][0] + views[0].small[1][1].y; out[17] = views->at(3, 2); const float2 column = views->small[0][1]; out[18] = column.x;`,
      out: "float",
      threads: 1,
      inputs: [floats(range(24, (k) => k + 1))],
      expected: [
        50,
        60,
        70,
        80,
        3 + 1,
        4 + 2,
        1 + 3,
        2 + 4,
        2 - 8,
        4 - 7,
        6,
        8,
        6 + 7,
        3,
        4 + 2,
        3 + 4,
        5 + 24,
        15,
        19,
      ],
    },
  ],
);

const cases: Case[] = [
  {
    name: "fmin3, fmax3, fmedian3, divide, ilogb",
    code: `const float3 v = float3(a[0], a[1], a[2]); out[0] = fmin3(v.x, v.y, v.z); out[1] = fmax3(v.x, v.y, v.z); out[2] = fmedian3(v.x, v.y, v.z); out[3] = fmax3(v, v.yzx, v.zxy).y; out[4] = precise::divide(v.x, v.y);
      out[5] = fast::divide(v, v.yyy).z + divide(v.z, 4.0f); out[6] = ilogb(v.z); out[7] = ilogb(float2(0.3f, 8)).x; out[8] = ilogb(half(0.75h)); out[9] = fmin3(NAN, v.x, v.y); out[10] = float(fmedian3(1.0h, 3.0h, 2.0h));`,
    out: "float",
    threads: 1,
    inputs: [floats([3, 2, 9])],
    expected: [2, 9, 3, 9, 1.5, 4.5 + 2.25, Math.floor(Math.log2(9)), Math.floor(Math.log2(0.3)), -1, 2, 2],
  },
  {
    name: "nextafter of float: to both sides, from zero, across a power of two, to itself and NaN",
    code: "out[i] = nextafter(a[2 * i], a[2 * i + 1]);",
    out: "float",
    inputs: [floats([1, 2, 1, 0, 0, 1, 0, -1, -1, -2, 2, 2, Number.NaN, 1, 1, Number.NaN])],
    expected: [1 + 2 ** -23, 1 - 2 ** -24, 2 ** -149, -(2 ** -149), -1 - 2 ** -23, 2, Number.NaN, Number.NaN],
  },
  {
    name: "nextafter of half",
    code: "out[0] = nextafter(a[0], half(2)); out[1] = nextafter(half2(a[0], a[1]), half2(0)).x; out[2] = nextafter(a[1], half(-INFINITY));",
    out: "half",
    threads: 1,
    inputs: [words("half", [bitsOf(half, 1), bitsOf(half, -1)])],
    expected: [1 + 2 ** -10, 1 - 2 ** -11, -1 - 2 ** -10].map((x) => bitsOf(half, x)),
  },
  {
    name: "integers beside floating-point numbers in functions that have no form for integers; select by one bool",
    code: `const float f = a[0]; out[0] = fma(f, 2, 1); out[1] = pow(f, 2); out[2] = mix(f, 5, 0.5f); out[3] = fmod(7, f); out[4] = step(1, f); out[5] = smoothstep(0, 6, f); out[6] = fmin(f, 2); out[7] = copysign(1, -f);
      out[8] = select(float4(1), float4(2), f > 2).w; out[9] = float(mix(half(1), 3, half(0.5h)));`,
    out: "float",
    threads: 1,
    inputs: [floats([3])],
    expected: [7, 9, 4, 1, 1, 0.5, 2, -1, 2, 2],
  },
  {
    name: "numeric_limits: digits, exponents, kinds, values",
    code: `typedef numeric_limits<float> F; typedef numeric_limits<half> H; typedef numeric_limits<bfloat> B; typedef numeric_limits<int> I;
      const int n[] = {F::digits10, F::max_digits10, F::max_exponent, F::min_exponent, F::max_exponent10, F::min_exponent10, F::radix, H::digits10, H::max_digits10, H::max_exponent, H::min_exponent10, B::digits, B::max_exponent10,
        I::digits10, I::max_digits10, numeric_limits<uchar>::digits10, numeric_limits<long>::digits10, F::is_iec559, F::has_signaling_NaN, F::is_bounded, F::is_modulo, F::has_denorm == denorm_present, F::round_style == round_to_nearest,
        I::is_exact, I::is_modulo, numeric_limits<uint>::is_modulo, I::epsilon(), isnan(F::signaling_NaN()), numeric_limits<bool>::digits, numeric_limits<short>::min() == SHRT_MIN, F::is_specialized}; out[i] = n[i];`,
    out: "int",
    expected: [6, 9, 128, -125, 38, -37, 2, 3, 5, 16, -4, 8, 38, 9, 0, 2, 18, 1, 1, 1, 0, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1],
  },
  {
    name: "macros of limits and of the platform",
    code: "const int n[] = {FLT_DIG, HALF_MAX_10_EXP, HALF_MIN_10_EXP, BFLT_DIG, BFLT_MANT_DIG, BFLT_MAX_EXP, FP_ILOGB0 == ilogb(0.0f), __METAL_MACOS__, __METAL_VERSION__ / 100}; out[i] = n[i];",
    out: "int",
    expected: [6, 4, -4, 2, 8, 128, 1, 1, 3],
  },
  {
    name: "traits: kinds of types, logic on traits, arrays, sequences, void_t",
    code: `const int n[] = {is_fundamental_v<int>, is_fundamental_v<float4>, is_compound_v<device int *>, is_object_v<int>, is_trivial_v<true_type>, is_trivial_v<int>, is_standard_layout_v<Nothing>, is_pod_v<float>,
        is_null_pointer_v<decltype(nullptr)>, is_constructible_v<float, int>, is_constructible_v<Nothing, int>, conjunction_v<true_type, false_type>, disjunction_v<true_type, false_type>, negation_v<false_type>,
        int(rank_v<int[2][3]>), int(extent_v<int[5]>), int(extent_v<int[5][7], 1>), int(alignment_of_v<float4>), is_same_v<remove_extent_t<int[3]>, int>, is_same_v<add_pointer_t<int>, thread int *>, has_x<Point>::value, has_x<Nothing>::value,
        total(make_integer_sequence<int, 5>()), int(make_index_sequence<3>::size()), is_four<float4>::value + is_four<float>{}}; out[i] = n[i];`,
    out: "int",
    expected: [1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 2, 5, 7, 16, 1, 1, 1, 0, 10, 3, 1],
  },
  {
    name: "a dependent type's name in the initialiser of a variable",
    code: "out[0] = widened(half(a[0])); out[1] = widened(2.5f);",
    out: "float",
    threads: 1,
    inputs: [ints([3])],
    expected: [3 + 2, 2.5 + 2],
  },
];
languageSuite(
  "library",
  `struct Nothing {};
struct Point { int x; };
template <typename T, typename = void> struct has_x : false_type {};
template <typename...> using void_t = void;
template <typename T> struct has_x<T, void_t<decltype(T::x)>> : true_type {};
template <int... I> int total(integer_sequence<int, I...>) { return (I + ... + 0); }
template <typename T> struct is_four : bool_constant<sizeof(T) == 16> {};
template <typename T> struct Types { typedef float Sum; using Wide = vec<T, 4>; template <typename U> struct Box { U value; }; };
template <typename T> typename Types<T>::Sum widened(T x) { typename Types<T>::Wide v(x); typename Types<T>::template Box<int> two = {2}; return float(v.w) + two.value; }`,
  cases,
);

languageSuite(
  "simd_header",
  "#include <simd/simd.h>\nstruct Shared { vector_float4 a; simd_float3 b; simd::float2 c; matrix_float4x4 m; vector_uint2 u; simd_uint3 w; };",
  [
    {
      name: "<simd/simd.h>: vectors and matrices by the names that hosts use",
      code: `Shared s; s.a = simd_float4(1, 2, 3, 4); s.b = simd_float3(5.0f); s.c = simd::float2(4, 5); s.m = matrix_float4x4(2.0f); s.u = vector_uint2(uint2(6)); s.w = simd_uint3(7u); threadgroup Shared box[1]; box[0] = s; threadgroup Shared *p = box;
        out[0] = s.a.w + s.b.z + s.c.y; out[1] = s.m[1][1] + p->m[2][2]; out[2] = s.u.y + s.w.z; out[3] = is_same_v<simd_float4, float4> + is_same_v<simd::float3x3, float3x3> + is_same_v<simd_half2x3, half2x3>; out[4] = sizeof(Shared);`,
      out: "float",
      threads: 1,
      expected: [14, 4, 13, 3, 144],
    },
  ],
);
