/** Templates, constant expressions, type traits, macros, pragmas and headers. */
import { type Case, floats, kernelSuite, languageSuite, range, suiteSource } from "./harness.ts";

const prelude = `
template <typename T, int N = 4> struct Row {
  T values[N];
  static constant constexpr int kWidth = N;
  T sum() const { T s = 0; for (int k = 0; k < N; ++k) { s += values[k]; } return s; }
};
template <typename T> struct Row<T, 1> {
  T values[1];
  static constant constexpr int kWidth = 100;
  T sum() const { return values[0] + 1000; }
};
template <typename T, typename Accumulate = float, short Rows = 2, bool Negate = false> struct Tile {
  typedef Accumulate accumulate_type;
  using row = Row<T, 3>;
  row rows[Rows];
  Accumulate total() const thread {
    Accumulate s = 0;
    for (short k = 0; k < Rows; ++k) { s += Accumulate(rows[k].sum()); }
    return Negate ? -s : s;
  }
};
template <typename T> struct Accumulator { using type = T; };
template <> struct Accumulator<half> { using type = float; };
template <> struct Accumulator<uchar> { typedef uint type; };
template <typename T> using accumulator_t = typename Accumulator<T>::type;

template <typename T> constexpr T square(T x) { return x * x; }
template <int N> constexpr int factorial() { if constexpr (N <= 1) { return 1; } else { return N * factorial<N - 1>(); } }
template <uint N> struct Power { static constant constexpr uint value = 2 * Power<N - 1>::value; };
template <> struct Power<0> { static constant constexpr uint value = 1; };
template <typename T> T identity(T x) { return x; }
template <> int identity<int>(int x) { return x + 100; }
template <typename T, typename U> auto mixed(T x, U y) -> decltype(x + y) { return x + y; }
template <typename... T> float total(T... values) { return (float(values) + ... + 0.0f); }
template <typename T, typename... Rest> T first(T x, Rest... rest) { (void)sizeof...(rest); return x; }
template <typename T> enable_if_t<is_integral_v<T>, int> kind(T) { return 1; }
template <typename T> enable_if_t<is_floating_point_v<T>, int> kind(T) { return 2; }
template <typename T> typename enable_if<is_same<T, float4>::value, int>::type kind(T) { return 3; }
template <typename T, T V> struct Constant { static constant constexpr T value = V; };
template <template <typename, int> class Container, typename T> int width() { return Container<T, 7>::kWidth; }
struct Add { template <typename T> T operator()(T x, T y) const { return x + y; } };
struct Max { template <typename T> static T apply(T x, T y) { return max(x, y); } };
template <typename Op, typename T> T reduce(const device T *from, uint n, Op op) { T r = from[0]; for (uint k = 1; k < n; ++k) { r = op(r, from[k]); } return r; }
template <typename Op, typename T> T fold(const device T *from, uint n) { T r = from[0]; for (uint k = 1; k < n; ++k) { r = Op::template apply<T>(r, from[k]); } return r; }
template <typename T, uint N> METAL_FUNC void load(const device T *from, thread T (&to)[N]) { for (uint k = 0; k < N; ++k) { to[k] = from[k]; } }
template <typename T> METAL_FUNC T sized(T x) { static_assert(sizeof(T) >= 2, "wide enough"); return x; }
static_assert(square(3) == 9, "square");
static_assert(sizeof(Row<half>) == 8 && Row<int>::kWidth == 4, "defaults");
constexpr int fibonacci(int n) { int a = 0, b = 1; for (int k = 0; k < n; ++k) { const int next = a + b; a = b; b = next; } return a; }
constant constexpr int kFibonacci = fibonacci(10);
constant constexpr float kSquares[3] = {square(1.0f), square(2.0f), square(3.0f)};
template <typename T> constant constexpr T kPi = T(3.14159265358979f);
inline constexpr int cube(int x) { return x * x * x; }
#define TWICE(x) ((x) + (x))
#define JOIN(a, b) a##b
#define NAME(x) #x
#define SUM(...) total(__VA_ARGS__)
#define LOOP(n, body) for (int k = 0; k < n; ++k) { body; }
#define WIDTH 8
#if defined(WIDTH) && WIDTH > 4 && !defined(UNKNOWN)
#define CHOSEN 1
#elif WIDTH
#define CHOSEN 2
#else
#error not reached
#endif
#ifdef __METAL_VERSION__
#define VERSION __METAL_VERSION__
#endif
`;

const traits: readonly (readonly [string, number])[] = [
  ["is_same<int, int>::value", 1],
  ["is_same_v<int, uint>", 0],
  ["is_same_v<vec<float, 4>, float4>", 1],
  ["is_floating_point_v<float>", 1],
  ["is_floating_point<half>::value", 1],
  ["is_floating_point_v<bfloat>", 1],
  ["is_floating_point_v<int>", 0],
  ["is_integral_v<uchar>", 1],
  ["is_integral_v<bool>", 1],
  ["is_integral_v<float>", 0],
  ["is_signed_v<short>", 1],
  ["is_unsigned_v<ushort>", 1],
  ["is_arithmetic_v<half>", 1],
  ["is_scalar_v<float>", 1],
  ["is_void_v<void>", 1],
  ["is_pointer_v<device float *>", 1],
  ["is_pointer_v<float>", 0],
  ["is_array_v<int[3]>", 1],
  ["is_reference_v<thread int &>", 1],
  ["is_lvalue_reference_v<thread int &>", 1],
  ["is_enum_v<mem_flags>", 1],
  ["is_class_v<Add>", 1],
  ["is_union_v<Add>", 0],
  ["is_const_v<const int>", 1],
  ["is_convertible_v<int, float>", 1],
  ["is_convertible_v<Add, float>", 0],
  ["is_trivially_copyable_v<float4>", 1],
  ["is_same_v<remove_const_t<const int>, int>", 1],
  ["is_same_v<remove_cv_t<const volatile int>, int>", 1],
  ["is_same_v<remove_reference_t<thread int &>, int>", 1],
  ["is_same_v<remove_pointer_t<thread int *>, int>", 1],
  ["is_same_v<remove_volatile_t<volatile int>, int>", 1],
  ["is_same_v<add_const_t<int>, const int>", 1],
  ["is_same_v<decay_t<const int>, int>", 1],
  ["is_same_v<conditional_t<true, int, float>, int>", 1],
  ["is_same_v<conditional<false, int, float>::type, float>", 1],
  ["is_same_v<make_unsigned_t<int>, uint>", 1],
  ["is_same_v<make_signed_t<uchar>, char> || is_same_v<make_signed_t<uchar>, signed char>", 1],
  ["is_same_v<make_unsigned_t<short4>, ushort4>", 1],
  ["is_same_v<make_scalar_t<float4>, float>", 1],
  ["is_same_v<underlying_type_t<Shade>, uchar>", 1],
  ["integral_constant<int, 7>::value", 7],
  ["true_type::value", 1],
  ["bool_constant<false>::value", 0],
  ["int(integral_constant<uint, 9>())", 9],
  ["is_same_v<decltype(declval<float>() + declval<int>()), float>", 1],
  ["is_same_v<common_type_t<int, float>, float>", 1],
  ["is_same_v<enable_if_t<true, half>, half>", 1],
  ["alignof(float4)", 16],
];

const cases: Case[] = [
  {
    name: "default arguments, specialisations, nested templates",
    code: `Row<float> r = {{1, 2, 3, 4}}; Row<int, 1> s = {{5}}; Tile<half> t; for (int k = 0; k < 2; ++k) { t.rows[k] = {{1, 2, 3}}; }
      Tile<int, int, 1, true> u = {{{{4, 5, 6}}}}; Tile<float>::row v = {{7, 8, 9}}; out[0] = r.sum(); out[1] = s.sum(); out[2] = t.total(); out[3] = u.total();
      out[4] = Row<int, 1>::kWidth + Row<half>::kWidth; out[5] = v.sum(); Row<Row<float, 2>, 2> n = {{{{1, 2}}, {{3, 4}}}}; out[6] = n.values[1].sum();`,
    out: "float",
    threads: 1,
    expected: [10, 1005, 12, -15, 104, 24, 7],
  },
  {
    name: "member types, alias templates, dependent names",
    code: `typename Tile<half>::accumulate_type x = 1.5f; accumulator_t<half> y = 2.25f; accumulator_t<uchar> z = 300; out[0] = x + y + z;
      out[1] = is_same_v<accumulator_t<half>, float> + 2 * is_same_v<accumulator_t<int>, int>;`,
    out: "float",
    threads: 1,
    expected: [303.75, 3],
  },
  {
    name: "function templates: deduction, explicit arguments, specialisation, packs, folds",
    code: `out[0] = identity(2.5f); out[1] = identity(2); out[2] = mixed(1, 0.5f); out[3] = total(1, 2.5f, 3u, 0.5h); out[4] = first(7, 1.0f, 2); out[5] = square<float>(3);
      out[6] = total();`,
    out: "float",
    threads: 1,
    expected: [2.5, 102, 1.5, 7, 7, 9, 0],
  },
  {
    name: "enable_if chooses overloads",
    code: "out[0] = kind(1); out[1] = kind(1.0f); out[2] = kind(1.0h); out[3] = kind(float4(1)); out[4] = kind(ushort(1));",
    out: "int",
    threads: 1,
    expected: [1, 2, 2, 3, 1],
  },
  {
    name: "constexpr functions, if constexpr, recursion of templates, variable templates",
    code: `out[0] = factorial<5>(); out[1] = Power<10>::value; out[2] = kFibonacci; out[3] = kSquares[2]; out[4] = Constant<int, -3>::value; int list[cube(2)] = {};
      out[5] = sizeof(list) / sizeof(int); out[6] = width<Row, float>(); out[7] = kPi<float>; out[8] = float(kPi<half>) * 512;`,
    out: "float",
    threads: 1,
    expected: [120, 1024, 55, 9, -3, 8, 7, Math.PI, 1608],
  },
  {
    name: "function objects and static members of template arguments",
    code: "out[0] = reduce(a, 4, Add()); out[1] = fold<Max>(a, 4); out[2] = fold<Max, float>(a, 2); float own[3]; load(a, own); out[3] = own[2]; out[4] = sized(2.5f);",
    out: "float",
    threads: 1,
    inputs: [floats([1, 5, 2, 3])],
    expected: [11, 5, 5, 2, 2.5],
  },
  {
    name: "macros: arguments, pasting, variadic, bodies over several lines",
    code: `int JOIN(va, lue) = TWICE(3); int s = 0; LOOP(4, s += k) out[0] = value; out[1] = s; out[2] = SUM(1, 2, 3); out[3] = CHOSEN; out[4] = sizeof(NAME(abc));
      out[5] = VERSION >= 310; out[6] = WIDTH; out[7] = __LINE__ > 5; out[8] = __HAVE_BFLOAT__;`,
    out: "float",
    threads: 1,
    expected: [6, 6, 6, 1, 4, 1, 8, 1, 1],
  },
  {
    name: "#pragma unroll and _Pragma of clang loops",
    code: `float s = 0;
#pragma unroll
      for (int k = 0; k < 4; ++k) { s += k; }
#pragma clang loop unroll(full)
      for (int k = 0; k < 4; ++k) { s += k; }
#pragma clang loop unroll_count(2)
      for (int k = 0; k < 4; ++k) { s += k; }
      _Pragma("clang loop unroll(full)") for (int k = 0; k < 4; ++k) { s += k; }
      _Pragma("unroll") for (int k = 0; k < 4; ++k) { s += k; }
#pragma METAL internals : enable
      out[0] = s;`,
    out: "float",
    threads: 1,
    expected: [30],
  },
  {
    name: "attributes of C++: likely words are kept out of the way",
    code: "[[maybe_unused]] int x = 3; int y = 0; switch (x) { case 3: y = 1; [[fallthrough]]; default: y += 1; } out[0] = y;",
    out: "int",
    threads: 1,
    expected: [2],
  },
  ...traits.map(
    ([expression, value]): Case => ({
      name: `traits: ${expression}`,
      code: `out[0] = int(${expression});`,
      out: "int",
      expected: [value],
    }),
  ),
];
languageSuite("templates", `enum class Shade : uchar { dark };\n${prelude}`, cases);

const headers = [
  "metal_stdlib",
  "metal_common",
  "metal_math",
  "metal_integer",
  "metal_relational",
  "metal_geometric",
  "metal_compute",
  "metal_simdgroup",
  "metal_simdgroup_matrix",
  "metal_quadgroup",
  "metal_atomic",
  "metal_type_traits",
  "metal_limits",
  "metal_types",
  "metal_array",
  "metal_matrix",
  "metal_pack",
  "metal_uniform",
];
for (const header of headers) {
  kernelSuite(
    `include_${header}`,
    `#include <${header}>
using namespace metal;
kernel void include_${header}_0(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = float(i) + 0.5f; }`,
    [
      {
        name: `#include <${header}> alone`,
        kernel: `include_${header}_0`,
        out: "float",
        grid: 2,
        threads: 2,
        expected: [0.5, 1.5],
      },
    ],
  );
}

const built = (name: string): string => suiteSource("", [], name);
kernelSuite(
  "macrokernels",
  `${built("macrokernels")}
#define KERNEL(name, type, expression)                                     \\
  kernel void name(device type *out [[buffer(0)]], const device type *a [[buffer(1)]], \\
                   uint i [[thread_position_in_grid]]) {                    \\
    const type x = a[i];                                                    \\
    out[i] = expression;                                                    \\
  }
KERNEL(macro_twice, float, x + x)
KERNEL(macro_square, int, x *x)

template <typename T, int N> [[kernel]] void scaled(device T *out [[buffer(0)]], const device T *a [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = a[i] * T(N);
}
#define INSTANTIATE(type, n) template [[host_name("scaled_" #type "_" #n)]] [[kernel]] void scaled<type, n>(device type *, const device type *, uint);
INSTANTIATE(float, 3)
INSTANTIATE(int, 5)
#define INSTANTIATE_ALL(type) INSTANTIATE(type, 7) INSTANTIATE(type, 9)
INSTANTIATE_ALL(float)
#define instantiate_kernel(name, func, ...) template [[host_name(name)]] [[kernel]] decltype(func<__VA_ARGS__>) func<__VA_ARGS__>;
instantiate_kernel("scaled_uint_2", scaled, uint, 2)
#if 1
kernel void in_a_branch(device float *out [[buffer(0)]], const device float *a [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = a[i] - 1; }
#else
kernel void not_in_a_branch(device double *out [[buffer(0)]]) {}
#endif
`,
  [
    {
      name: "a macro that builds a kernel",
      kernel: "macro_twice",
      out: "float",
      inputs: [floats([1, 2])],
      grid: 2,
      threads: 2,
      expected: [2, 4],
    },
    {
      name: "the same macro with other arguments",
      kernel: "macro_square",
      out: "int",
      inputs: [{ type: "int", values: [3, -4] }],
      grid: 2,
      threads: 2,
      expected: [9, 16],
    },
    ...(
      [
        ["scaled_float_3", 3],
        ["scaled_float_7", 7],
        ["scaled_float_9", 9],
      ] as const
    ).map(([kernel, by]) => ({
      name: `instantiation by a macro: ${kernel}`,
      kernel,
      out: "float" as const,
      inputs: [floats([1.5, 2])],
      grid: 2,
      threads: 2,
      expected: [1.5 * by, 2 * by],
    })),
    {
      name: "instantiation by a macro: scaled_int_5",
      kernel: "scaled_int_5",
      out: "int",
      inputs: [{ type: "int", values: [3, 4] }],
      grid: 2,
      threads: 2,
      expected: [15, 20],
    },
    {
      name: "a variadic macro with decltype, as MLX has it",
      kernel: "scaled_uint_2",
      out: "uint",
      inputs: [{ type: "uint", values: [3, 4] }],
      grid: 2,
      threads: 2,
      expected: [6, 8],
    },
    {
      name: "a kernel between #if and #else",
      kernel: "in_a_branch",
      out: "float",
      inputs: [floats(range(3, (k) => k))],
      grid: 3,
      threads: 3,
      expected: [-1, 0, 1],
    },
  ],
);
