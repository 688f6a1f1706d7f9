/** Spellings that published kernels use and that other compilers than Apple's take differently. */
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { type Case, floats, languageSuite, range } from "./harness.ts";

const prelude = `
// Parameters that are arrays in an address space.
static int flat(uint3 at, constant const int shape[3]) { return (at.z * shape[1] + at.y) * shape[2] + at.x; }
template <typename T> static T middle(const threadgroup T tile[3][4], int i) { return tile[1][i]; }
static float first(device const float list[], int i) { return list[i]; }
struct Row { static float last(constant float values[4]) { return values[3]; } };
constant float kValues[4] = {1, 2, 3, 4.5};
constant int kShape[3] = {2, 3, 4};

// A type of functions, and a function of it as the argument of a template.
typedef void (*Butterfly)(thread float2 *, thread float2 *);
static void radix2(thread float2 *x, thread float2 *y) { y[0] = x[0] + x[1]; y[1] = x[0] - x[1]; }
template <int N, Butterfly function> static void step(thread float2 *x, thread float2 *y) { for (int i = 0; i < N; i += 2) function(x + i, y + i); }

// Designators of elements, of ranges of elements and of members.
typedef struct { int count; float scale; uint2 size; } Settings;
constant Settings kSettings = {.count = 3, .size = {7, 8}};
constant float kSparse[] = {[2] = 5.0f, [0] = 1.0f};
template <int N> static float lowest() { float list[N] = {[0 ... N - 1] = -FLT_MAX / 2}; return list[0] == list[N - 1] ? list[N / 2] : 0; }

// Constructors that are defaulted for each memory.
template <typename T> struct Indexed {
  uint i;
  T value;
  constexpr Indexed<T>() threadgroup = default;
  METAL_FUNC Indexed<T>() thread = default;
  constexpr Indexed<T>(uint at, T x) : i(at), value(x) {}
};
template <typename T> struct Pair {
  T a, b;
  constexpr Pair() device = default;
};

// Structs as constants of a template, and in one expression from two memories.
struct Complex {
  float re, im;
  constexpr Complex(float r, float i) : re(r), im(i) {}
  Complex() threadgroup : re(0), im(0) {}
  Complex() : re(0), im(0) {}
};
template <typename T> struct Limits { static constexpr constant T min = metal::numeric_limits<T>::lowest(); };
template <> struct Limits<Complex> { static constexpr constant Complex min = Complex(-8, -4); };
template <typename T> struct Max { static constexpr constant T init = Limits<T>::min; };
template <typename T> static T choose(bool here, threadgroup T *shared, uint i) {
  Max<T> op;
  return here ? shared[i] : op.init;
}
static float sum(array<float, 3> list, const device float *__restrict a, const device float (*rows)[4]) {
  thread float *second = &list[1];
  return list[0] + second[0] + second[1] + a[0] + rows[1][2];
}
template <typename... T> struct AnyFloat { static constant constexpr bool value = _disjunction<is_same<T, float>...>::value; };
`;

const list = [0.5, -1.25, 3, 7.75, 2, -6, 9.5, 10];
const wide = range(13, (k) => k + 0.25);
/** An NVIDIA GPU has no such access, and a fault would take the cases behind this one along. */
const unaligned: Case = {
  name: "vectors of four and matrices where a single number may lie, in device and threadgroup memory",
  code: `threadgroup float box[16]; for (int k = 0; k < 13; ++k) box[k] = a[k]; threadgroup_barrier(mem_flags::mem_threadgroup);
      *(device float4 *)(out + 1) = *(const device float4 *)(a + 3); *(device float2x4 *)(out + 5) = *(const device float2x4 *)(a + 1);
      *(threadgroup float4 *)(box + 3) = *(threadgroup float4 *)(box + 5) * 2; out[0] = box[3]; *(device packed_float4 *)(out + 13) = packed_float4(box[6]);`,
  out: "float",
  inputs: [floats(wide)],
  threads: 1,
  expected: [10.5, ...wide.slice(3, 7), ...wide.slice(1, 9), ...range(4, () => 16.5)],
};

languageSuite("spellings", prelude, [
  {
    name: "array parameters in constant, device and threadgroup memory, of one and two dimensions",
    code: `threadgroup float tile[3][4]; tile[i / 4][i % 4] = i; threadgroup_barrier(mem_flags::mem_threadgroup);
      if (i == 0) { out[0] = flat(uint3(1, 2, 1), kShape); out[1] = middle(tile, 2); out[2] = first(a, 3); out[3] = Row::last(kValues); }`,
    out: "float",
    inputs: [floats(list)],
    threads: 12,
    expected: [(1 * 3 + 2) * 4 + 1, 6, 7.75, 4.5],
  },
  {
    name: "a typedef of functions as the type of a template parameter",
    code: "float2 x[4] = {1, 2, 3, 5}, y[4]; step<4, radix2>(x, y); out[i] = y[i].x;",
    out: "float",
    expected: [3, -1, 8, -2],
  },
  {
    name: "designators",
    code: `const Settings s = {.scale = 0.5f, .size = uint2(1, 2)};
      out[0] = kSettings.count + kSettings.scale; out[1] = kSettings.size.y; out[2] = kSparse[0] + kSparse[1] + kSparse[2]; out[3] = lowest<5>() == -FLT_MAX / 2; out[4] = s.count + s.scale + s.size.y;`,
    out: "float",
    threads: 1,
    expected: [3, 8, 6, 1, 2.5],
  },
  {
    name: "constructors defaulted for threadgroup and thread memory",
    code: `threadgroup Indexed<float> best[4]; best[i] = Indexed<float>(i, a[i]); threadgroup_barrier(mem_flags::mem_threadgroup);
      Indexed<float> top; top = best[0]; for (int k = 1; k < 4; ++k) { if (best[k].value > top.value) top = best[k]; }
      Pair<float> pair{top.value, float(top.i)}; out[i] = pair.a + pair.b * 10;`,
    out: "float",
    inputs: [floats(list)],
    expected: [37.75, 37.75, 37.75, 37.75],
  },
  {
    name: "a struct of threadgroup memory or one of constant memory, by a condition",
    code: `threadgroup Complex shared[4]; shared[i] = Complex(i, a[i]); threadgroup_barrier(mem_flags::mem_threadgroup);
      const Complex c = choose(i < 2, shared, 3 - i); out[i] = c.re * 100 + c.im;`,
    out: "float",
    inputs: [floats(list)],
    expected: [307.75, 203, -804, -804],
  },
  {
    name: "a struct of device memory or a new one, by a condition, and numbers in the same way",
    code: `const device Complex *pairs = (const device Complex *)a; threadgroup float box[4]; box[i] = i;
      const Complex c = i < 2 ? pairs[i] : Complex(3, 4); const Complex d = i > 1 ? Complex(1, 1) : pairs[3 - i];
      out[i] = c.re + c.im + d.re + (i < 3 ? box[i] : kValues[i]);`,
    out: "float",
    inputs: [floats(list)],
    expected: [0.5 - 1.25 + 9.5, 3 + 7.75 + 2 + 1, 7 + 1 + 2, 7 + 1 + 4.5],
  },
  {
    name: "aligned threadgroup arrays: the attribute in either place",
    code: `threadgroup __attribute__((aligned(16))) float first[3]; threadgroup float second[4] __attribute__((aligned(16)));
      first[i] = i; second[i] = first[i] + 1; out[i] = second[i] + (((ulong)&first[0] & 15) == 0) + (((ulong)&second[0] & 15) == 0);`,
    out: "float",
    expected: [3, 4, 5],
  },
  ...(isOtherGpu ? [] : [unaligned]),
  {
    name: "SIMD-group matrices from metal_stdlib, filled by type and one size",
    code: `auto m = make_filled_simdgroup_matrix<float, 8>(2.0f); simdgroup_matrix<half, 8> h(3.0h); simdgroup_multiply(m, m, h);
      if (i < 2) { out[i] = m.thread_elements()[i]; }`,
    out: "float",
    threads: 32,
    expected: [6, 6],
  },
  {
    name: "parameters beside an array<T, N>, and the address of one of its elements",
    code: "array<float, 3> list = {{1, 2, 4}}; out[i] = sum(list, a, (const device float (*)[4])a);",
    out: "float",
    inputs: [floats(list)],
    expected: [1 + 2 + 4 + 0.5 + 9.5],
  },
  {
    name: "any of a list of traits",
    code: "out[0] = AnyFloat<int, float>::value; out[1] = AnyFloat<int, uint>::value; out[2] = AnyFloat<>::value;",
    out: "float",
    threads: 1,
    expected: [1, 0, 0],
  },
]);
