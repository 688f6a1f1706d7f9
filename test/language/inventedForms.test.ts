/** Forms of kernel libraries - MLX's, ggml's, CUTLASS' - written anew: macros, tiles, tables, traits. */
import { floats, ints, range, uints } from "./harness.ts";
import { type SourceCase, sourceSuite } from "./separate.ts";

const steps = range(8, (k) => k + 1);
const whole = { kernel: "k", grid: 8, threads: 8 } as const;

/** Most are kernels of eight threads on the numbers 1 to 8. */
const cases: readonly SourceCase[] = [
  {
    ...whole,
    name: "a tile loader as in CUTLASS, its shape in a template of shapes",
    source: `template <int M, int N> struct Shape { static constant constexpr int kM = M; static constant constexpr int kN = N; static constant constexpr int kCount = M * N; };
template <typename T, typename S, int kThreads = 8> struct TileLoader {
  static constant constexpr int kPerThread = S::kCount / kThreads;
  threadgroup T *destination; const device T *source; const short thread_index;
  TileLoader(threadgroup T *d, const device T *s, ushort t) : destination(d), source(s), thread_index(t) {}
  void load() const { for (int j = 0; j < kPerThread; ++j) { const int at = thread_index * kPerThread + j; destination[at] = source[at % 8] + T(at / 8); } }
};
using Block = Shape<4, 8>;
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], ushort t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[Block::kCount];
  TileLoader<float, Block> loader(tile, in, t);
  loader.load();
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = 0;
  for (int row = 0; row < Block::kM; ++row) sum += tile[row * Block::kN + t];
  out[t] = sum;
}`,
    out: "float",
    inputs: [floats(steps)],
    expected: steps.map((x) => 4 * x + 6),
  },
  {
    ...whole,
    name: "an epilogue as a template template parameter",
    source: `template <typename T> struct Scale { T by; T operator()(T x) const { return x * by; } };
template <typename T> struct Shift { T by; T operator()(T x) const { return x + by; } };
template <typename T, template <typename> class Op, template <typename> class... Rest> struct Chain { static T apply(T x) { return Chain<T, Rest...>::apply(Op<T>{T(3)}(x)); } };
template <typename T, template <typename> class Op> struct Chain<T, Op> { static T apply(T x) { return Op<T>{T(3)}(x); } };
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = Chain<float, Scale, Shift, Scale>::apply(in[i]);
}`,
    out: "float",
    inputs: [floats(steps)],
    expected: steps.map((x) => (x * 3 + 3) * 3),
  },
  {
    ...whole,
    name: "a list of types by an X macro: enumerators, names and sizes",
    source: `#define TYPES(X) X(f32, float, 1) X(f16, half, 2) X(i32, int, 4) X(u8, uchar, 8)
enum Code : uint {
#define X(name, type, bit) code_##name = bit,
  TYPES(X)
#undef X
};
static uint size_of(uint code) {
  switch (code) {
#define X(name, type, bit) case code_##name: return sizeof(type);
    TYPES(X)
#undef X
    default: return 0;
  }
}
kernel void k(device uint *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = size_of(i + 1); }`,
    out: "uint",
    expected: [4, 2, 0, 4, 0, 0, 0, 1],
  },
  {
    ...whole,
    name: "blocks of quants as in ggml: a half scale, nibbles, a union over them",
    source: `#define QK 8
typedef struct { half d; uchar qs[QK / 2]; } block_q4;
static_assert(sizeof(block_q4) == sizeof(half) + QK / 2, "wrong block size");
template <typename type4x4> void dequantize(device const block_q4 *b, short il, thread type4x4 &reg) {
  device const uint16_t *qs = ((device const uint16_t *)b + 1);
  const float d1 = il ? (b->d / 16.h) : b->d, d2 = d1 / 256.f, md = -8.h * b->d;
  const ushort mask0 = il ? 0x00F0 : 0x000F, mask1 = mask0 << 8;
  for (int i = 0; i < 2; i++) { reg[i / 2][2 * (i % 2) + 0] = d1 * (qs[i] & mask0) + md; reg[i / 2][2 * (i % 2) + 1] = d2 * (qs[i] & mask1) + md; }
}
kernel void k(device float *out [[buffer(0)]], device const block_q4 *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float4x4 reg; dequantize(in, short(i / 4), reg); out[i] = reg[0][i % 4];
}`,
    out: "float",
    // d = 0.5; nibbles 1 to 4 low, 9 to 12 high.
    inputs: [uints([0xa2913800, 0xc4b3])],
    expected: [-3.5, -3, -2.5, -2, 0.5, 1, 1.5, 2],
  },
  {
    ...whole,
    name: "instantiations by nested macros, of which one counts its arguments",
    source: `#define FIRST(a, ...) a
#define COUNT_(a, b, c, n, ...) n
#define COUNT(...) COUNT_(__VA_ARGS__, 3, 2, 1, 0)
#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
#define SUM1(x) (x)
#define SUM2(x, ...) ((x) + SUM1(__VA_ARGS__))
#define SUM3(x, ...) ((x) + SUM2(__VA_ARGS__))
#define SUM(...) PASTE(SUM, COUNT(__VA_ARGS__))(__VA_ARGS__)
#define instantiate(name, ...) template [[host_name(#name)]] [[kernel]] decltype(body<__VA_ARGS__>) body<__VA_ARGS__>;
template <typename T, int N> [[kernel]] void body(device T *out [[buffer(0)]], const device T *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = SUM(in[i], T(N), FIRST(T(2), T(3)));
}
instantiate(k, float, COUNT(a, b, c))`,
    out: "float",
    inputs: [floats(steps)],
    expected: steps.map((x) => x + 3 + 2),
  },
  {
    ...whole,
    name: "strides by a variadic template over an index sequence of the file",
    source: `template <int... I> struct Sequence {};
template <int N, int... I> struct Make : Make<N - 1, N - 1, I...> {};
template <int... I> struct Make<0, I...> { typedef Sequence<I...> type; };
template <int... I> static int offset(constant int *strides, int at, Sequence<I...>) {
  int sum = 0; int index = at;
  const int parts[] = {((void)I, sum += (index & 1) * strides[I], index >>= 1)...};
  (void)parts; return sum;
}
kernel void k(device int *out [[buffer(0)]], constant int *strides [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = offset(strides, int(i), Make<3>::type{}); }`,
    out: "int",
    inputs: [ints([100, 10, 1])],
    expected: range(8, (k) => (k & 1) * 100 + ((k >> 1) & 1) * 10 + (k >> 2)),
  },
  {
    ...whole,
    name: "limits of reductions by a class template over the operation",
    source: `template <typename U> struct Limits { static constant constexpr U lowest = U(metal::numeric_limits<U>::lowest()); static constexpr U highest() { return metal::numeric_limits<U>::max(); } };
#define REDUCTION(Name, start, expression) template <typename U> struct Name { static constexpr U init() { return start; } U operator()(U a, U b) { return expression; } };
REDUCTION(Sum, U(0), a + b)
REDUCTION(Prod, U(1), a * b)
REDUCTION(Max, Limits<U>::lowest, a > b ? a : b)
REDUCTION(Min, Limits<U>::highest(), a < b ? a : b)
template <typename U, typename Op> static U all(const device U *in) { Op op; U total = Op::init(); for (int j = 0; j < 8; ++j) total = op(total, in[j]); return total; }
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = i == 0 ? all<float, Sum<float>>(in) : i == 1 ? all<float, Prod<float>>(in) : i == 2 ? all<float, Max<float>>(in) : all<float, Min<float>>(in);
}`,
    out: "float",
    inputs: [floats(steps)],
    expected: [36, 40320, 8, 1, 1, 1, 1, 1],
  },
  {
    ...whole,
    name: "a complex number with all operators, as members, friends and from device memory",
    source: `struct complex64 {
  float re, im;
  constexpr complex64(float r = 0, float j = 0) : re(r), im(j) {}
  friend complex64 operator*(complex64 a, complex64 b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
  thread complex64 &operator+=(complex64 b) { re += b.re; im += b.im; return *this; }
  constexpr bool operator<(complex64 b) const { return re < b.re || (re == b.re && im < b.im); }
};
constexpr complex64 operator-(complex64 a) { return {-a.re, -a.im}; }
constant complex64 kI = complex64(0, 1);
kernel void k(device float *out [[buffer(0)]], const device complex64 *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  complex64 z = in[i / 2] * kI; z += -complex64(1); out[i] = i & 1 ? z.im : z < in[0] ? z.re : -z.re;
}`,
    out: "float",
    inputs: [floats(steps)],
    expected: [-3, 1, -5, 3, -7, 5, -9, 7],
  },
  {
    ...whole,
    name: "packing by a function object with state, a table in constant memory and a bit field",
    source: `constant uchar kTable[4] = {0, 2, 5, 7};
struct Bits { uint low : 3; uint high : 3; uint rest : 26; };
struct Coder { uint seed; uint operator()(uint x) thread { seed = seed * 5 + x; return kTable[seed & 3]; } };
kernel void k(device uint *out [[buffer(0)]], const device uint *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  Coder c{in[i]}; Bits b; b.low = c(1); b.high = c(2); b.rest = 0; b.rest++; out[i] = b.low + 8 * b.high + 64 * b.rest;
}`,
    out: "uint",
    inputs: [uints(steps)],
    expected: steps.map((x) => {
      const table = [0, 2, 5, 7];
      const first = x * 5 + 1;
      return (table[first & 3] ?? 0) + 8 * (table[(first * 5 + 2) & 3] ?? 0) + 64;
    }),
  },
  {
    ...whole,
    name: "a kernel whose memory a template constant chooses by a plain if",
    source: `template <bool Wide> kernel void body(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
  if (Wide) { threadgroup float big[8192]; big[i] = in[i]; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = big[7 - i]; }
  else { threadgroup float small[8]; small[i] = in[i]; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = small[7 - i] * 2; }
}
template [[host_name("k")]] kernel void body<true>(device float *, const device float *, uint);
template [[host_name("small")]] kernel void body<false>(device float *, const device float *, uint);`,
    out: "float",
    inputs: [floats(steps)],
    expected: [...steps].reverse(),
  },
  {
    ...whole,
    name: "an online softmax with vector types chosen by traits",
    source: `template <typename T, int N> struct Vec; template <> struct Vec<float, 4> { using Type = float4; }; template <> struct Vec<half, 4> { using Type = half4; };
template <typename T> METAL_FUNC T wide(const device T *p, int at) { return p[at]; }
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  typename Vec<float, 4>::Type m = -INFINITY, l = 0.0;
  for (int j = 0; j < 2; ++j) {
    const auto v = *(const device Vec<float, 4>::Type *)(in + 4 * j);
    const auto next = metal::max(m, v);
    l = l * fast::exp(m - next) + fast::exp(v - next); m = next;
  }
  out[i] = i < 4 ? m[i] : (l[i - 4] > 1.0 && l[i - 4] < 1.02 ? 1 : 0);
}`,
    out: "float",
    inputs: [floats(steps)],
    expected: [5, 6, 7, 8, 1, 1, 1, 1],
  },
  {
    ...whole,
    name: "pointers advanced by a struct of iterators, in three address spaces",
    source: `template <typename P> struct Walk { P at; int step; Walk(P p, int s) : at(p), step(s) {} void next() { at += step; } auto operator*() const { return *at; } };
template <typename P> Walk<P> walk(P p, int s) { return Walk<P>(p, s); }
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], constant float *again [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  float mine[4] = {1, 2, 3, 4};
  auto a = walk(in, 2); auto b = walk(again, 1); auto c = walk((thread float *)mine, 1);
  for (uint j = 0; j < (i & 3); ++j) { a.next(); b.next(); c.next(); }
  out[i] = *a + 10 * *b + 100 * *c;
}`,
    out: "float",
    inputs: [floats(steps), floats(steps)],
    expected: range(8, (k) => (k & 3) * 2 + 1 + 10 * ((k & 3) + 1) + 100 * ((k & 3) + 1)),
  },
  {
    ...whole,
    name: "partial and full specializations by bits and group, with static members",
    source: `template <int bits, int wsize = 8> inline constexpr short get_pack_factor() { return (bits == 3 || bits == 5) ? 8 : (bits == 6 ? 4 : wsize / bits); }
template <typename T, int group, int bits> struct Dequant { static constant constexpr const short pack = get_pack_factor<bits>(); T operator()(uint word, int j) const { return T((word >> (j * bits)) & ((1 << bits) - 1)); } };
template <typename T, int group> struct Dequant<T, group, 3> { static constant constexpr const short pack = 8; T operator()(uint word, int j) const { return T(100 + j); } };
template <> struct Dequant<float, 32, 8> { static constant constexpr const short pack = 1; float operator()(uint, int) const { return -1; } };
kernel void k(device float *out [[buffer(0)]], const device uint *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  Dequant<float, 64, 4> a; Dequant<float, 64, 3> b; Dequant<float, 32, 8> c;
  out[i] = i < 4 ? a(in[0], i) + decltype(a)::pack : i < 6 ? b(in[0], i) : c(0, 0) + decltype(c)::pack;
}`,
    out: "float",
    inputs: [uints([0x4321])],
    expected: [3, 4, 5, 6, 104, 105, 0, 0],
  },
  {
    ...whole,
    name: "arguments deduced beside those given, of pointers, numbers and an alias",
    source: `template <int N, typename T, typename I = uint> kernel void body(device T *out [[buffer(0)]], const device T *in [[buffer(1)]], I i [[thread_position_in_grid]]) { out[i] = in[i] + T(N) + T(sizeof(I)); }
typedef device float *Out;
template [[host_name("k")]] kernel void body<3>(Out, const device float *, ushort);
template [[host_name("h")]] kernel void body<4, half>(device half *, const device half *, uint);`,
    out: "float",
    inputs: [floats(steps)],
    expected: steps.map((x) => x + 5),
  },
  {
    ...whole,
    name: "a number deduced, and one that an index names",
    source: `template <int N> struct Table { float values[N]; };
template <int Slot, int N> kernel void body(device float *out [[buffer(Slot)]], constant Table<N> &t [[buffer(Slot + 1)]], uint i [[thread_position_in_grid]]) { out[i] = i < N ? t.values[i] * N : 0; }
template [[host_name("k")]] kernel void body<0>(device float *out, constant Table<4> &t, uint i);`,
    out: "float",
    inputs: [floats(steps)],
    expected: [4, 8, 12, 16, 0, 0, 0, 0],
  },
  {
    ...whole,
    name: "a struct declared in a method of a class template, copied and assigned",
    source: `template <typename T> struct Outer {
  T v;
  T plain(T x) const { typedef struct { T a; T b[2]; } Two; Two t = {x, {v, v}}; Two u = t; u = t; u.b[1] += 1; return u.a + u.b[0] + u.b[1]; }
  template <typename U> U inner(U x) { struct Local { U a; U sum() const { return a + 1; } }; Local l{x}; Local m(l); m = l; return m.sum(); }
  struct Nested { T n; T method() { union { T as; uint bits; } u; u.bits = 0; u.as = n; return u.as; } };
};
namespace deep { extern "C" { struct Plain { float x; }; } }
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  Outer<float> o; o.v = 2; Outer<float>::Nested n; n.n = in[i]; deep::Plain p; p.x = 1; out[i] = o.plain(in[i]) + o.inner(in[i]) + n.method() + p.x;
}`,
    out: "float",
    inputs: [floats(steps)],
    expected: steps.map((x) => x + 5 + x + 1 + x + 1),
  },
  {
    ...whole,
    name: "references as arguments of templates, changed through casts",
    source: `template <typename R, typename X> static void bump(thread X &x) { (R)x += 5; R(x) *= 2; R again = (R)x; again += 1; }
template <typename R, typename X> static void put(device X &x, X y) { (R)x = y; }
template <typename T> static T twice(float x) { return (T)x + T(x) + (T)1; }
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float z = in[i]; bump<thread float &>(z); put<device float &>(out[i], z + twice<int>(2.75f) + twice<half>(0.5f));
}`,
    out: "float",
    inputs: [floats(steps)],
    expected: steps.map((x) => (x + 5) * 2 + 1 + 5 + 2),
  },
  {
    ...whole,
    name: "function constants by sums of macros and of a namespace's constants",
    source: `#define FC_BASE 100
namespace op { constant int base = 200; constant float scale [[function_constant(base + 1)]]; enum { kShift = 3 }; constant int shift [[function_constant(FC_BASE + kShift)]]; }
constant int other [[function_constant(FC_BASE + 0)]];
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] * op::scale + op::shift + other; }`,
    out: "float",
    inputs: [floats(steps)],
    constants: [
      { index: 201, dtype: "f32", value: 0.5 },
      { index: 103, dtype: "i32", value: 7 },
      { index: 100, dtype: "i32", value: 20 },
    ],
    expected: steps.map((x) => x * 0.5 + 27),
  },
  {
    kernel: "k",
    name: "fragments of tiles behind a type of another template, by references to const and not",
    source: `#define STEEL_CONST static constant constexpr const
#define STEEL_PRAGMA_UNROLL _Pragma("clang loop unroll(full)")
template <typename T, int R, int C> struct Frag { STEEL_CONST int kRows = R; STEEL_CONST int kCols = C; STEEL_CONST int kElems = R * C / 32; typedef metal::vec<T, kElems> frag_type; METAL_FUNC static constexpr short2 get_coord(ushort lane) { const short qid = lane / 4; return short2((qid & 2) * 2 + (lane % 2) * 2, (qid & 4) + (lane / 2) % 4); }
 template <typename Src> METAL_FUNC static constexpr void load(thread frag_type &dst, Src src, int ld) { STEEL_PRAGMA_UNROLL for (short i = 0; i < kElems; i++) dst[i] = static_cast<T>(src[i * ld]); } };
template <typename T, class F_ = Frag<T, 8, 8>> struct Tile { using F = F_; typename F::frag_type val[2]; METAL_FUNC constexpr thread typename F::frag_type &at(const short i) { return val[i]; } METAL_FUNC constexpr const thread typename F::frag_type &at(const short i) const { return val[i]; } };
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) { Tile<float> t; Tile<float>::F::load(t.at(0), in, 2); const Tile<float> u = t; out[lane] = u.at(0).x + t.at(0)[1] + Tile<float>::F::get_coord(lane).x; }`,
    out: "float",
    inputs: [floats(steps)],
    grid: 32,
    threads: 32,
    expected: range(32, (lane) => 1 + 3 + ((lane >> 2) & 2) * 2 + (lane % 2) * 2),
  },
  {
    kernel: "k",
    name: "integral constants that are multiplied by their types, and unrolled into a function object",
    source: `template <typename T, T v> struct integral_constant_ { static constexpr constant T value = v; using value_type = T; METAL_FUNC constexpr operator value_type() const noexcept { return value; } };
template <int V> using Int = integral_constant_<int, V>;
template <typename A, typename B> constexpr auto operator*(A, B) -> Int<A::value * B::value> { return {}; }
template <typename F, int... I> METAL_FUNC void apply_all(thread F &f) { (f(Int<I>{}), ...); }
struct Body { thread float *x; template <typename I> void operator()(I i) thread { x[0] += i * 2; } };
kernel void k(device float *out [[buffer(0)]]) { float v = 0; Body b{&v}; apply_all<Body, 1, 2, 3>(b); out[0] = v + decltype(Int<3>{} * Int<4>{})::value; }`,
    out: "float",
    grid: 1,
    threads: 1,
    expected: [2 + 4 + 6 + 12],
  },
  {
    kernel: "k",
    name: "a sort of values and their places in registers, by a function object",
    source: `template <typename T> struct LessThan { static constexpr constant T init = numeric_limits<T>::max(); METAL_FUNC bool operator()(T a, T b) const { return a < b; } };
template <typename V, typename I, bool ARG, short N, class Cmp> struct ThreadSort { static METAL_FUNC void sort(thread V (&vals)[N], thread I (&idxs)[N]) { Cmp op; for (short i = 0; i < N; ++i) for (short j = i & 1; j < N - 1; j += 2) if (op(vals[j + 1], vals[j])) { thread_swap(vals[j + 1], vals[j]); if (ARG) thread_swap(idxs[j + 1], idxs[j]); } }
 template <typename T> static METAL_FUNC void thread_swap(thread T &a, thread T &b) { T w = a; a = b; b = w; } };
kernel void k(device float *out [[buffer(0)]], const device float *in [[buffer(1)]]) { float v[4]; uint x[4]; for (uint i = 0; i < 4; ++i) { v[i] = in[i]; x[i] = i; } ThreadSort<float, uint, true, 4, LessThan<float>>::sort(v, x); for (int i = 0; i < 4; ++i) out[i] = v[i] * 10 + x[i]; out[4] = LessThan<float>::init > 0; }`,
    out: "float",
    inputs: [floats([5, -1, 3, 2])],
    grid: 1,
    threads: 1,
    expected: [-9, 23, 32, 50, 1],
  },
  {
    kernel: "k",
    name: "macros that turn arguments into constants, one inside another",
    source: `#define DISPATCH_BOOL(b, NAME, ...) if (b) { constexpr bool NAME = true; __VA_ARGS__ } else { constexpr bool NAME = false; __VA_ARGS__ }
#define DISPATCH_SIZE(n, NAME, ...) switch (n) { case 2: { constexpr int NAME = 2; __VA_ARGS__ } break; case 4: { constexpr int NAME = 4; __VA_ARGS__ } break; default: break; }
template <bool A, int N> METAL_FUNC float work(const thread float (&x)[N]) { float s = 0; for (auto v : x) s += A ? v : -v; return s; }
kernel void k(device float *out [[buffer(0)]], constant int &n [[buffer(1)]], constant bool &neg [[buffer(2)]]) { DISPATCH_BOOL(neg, kNeg, DISPATCH_SIZE(n, kN, float x[kN]; for (int i = 0; i < kN; ++i) x[i] = i; out[0] = work<kNeg>(x);)) }`,
    out: "float",
    inputs: [ints([4]), { type: "uchar", values: [1] }],
    grid: 1,
    threads: 1,
    expected: [6],
  },
  {
    kernel: "k",
    name: "places by shapes and strides, as a function and as a class that recurs",
    source: `template <typename IdxT = int64_t> METAL_FUNC IdxT elem_to_loc(IdxT elem, constant const int *shape, constant const int64_t *strides, int ndim) { IdxT loc = 0; for (int i = ndim - 1; i >= 0 && elem > 0; --i) { loc += (elem % shape[i]) * IdxT(strides[i]); elem /= shape[i]; } return loc; }
template <int D, typename IdxT> struct Looped { Looped<D - 1, IdxT> inner; IdxT offset{0}; int index{0}; Looped(int dim) : inner(dim - 1) {} void next(const constant int *shape, const constant int64_t *strides) { index++; offset += IdxT(strides[D - 1]); if (index >= shape[D - 1]) { index = 0; inner.next(shape, strides); offset = inner.offset; } } };
template <typename IdxT> struct Looped<1, IdxT> { IdxT offset{0}; Looped(int) {} void next(const constant int *, const constant int64_t *strides) { offset += IdxT(strides[0]); } };
kernel void k(device int *out [[buffer(0)]], constant int *shape [[buffer(1)]], constant int64_t *strides [[buffer(2)]], uint i [[thread_position_in_grid]]) { Looped<2, uint> l(2); for (uint j = 0; j < i; ++j) l.next(shape, strides); out[i] = l.offset + elem_to_loc<int64_t>(i, shape, strides, 2) + elem_to_loc(int64_t(i), shape, strides, 2); }`,
    out: "int",
    inputs: [ints([2, 3]), { type: "long", values: [10n, 1n] }],
    grid: 6,
    threads: 6,
    expected: range(6, (n) => 3 * (Math.floor(n / 3) * 10 + (n % 3))),
  },
  {
    kernel: "k",
    name: "a tuple as a recursive class template",
    source: `template <typename... T> struct tuple_; template <> struct tuple_<> {}; template <typename H, typename... T> struct tuple_<H, T...> { H head; tuple_<T...> tail; };
template <int N, typename H, typename... T> METAL_FUNC constexpr auto get(tuple_<H, T...> t) { if constexpr (N == 0) return t.head; else return get<N - 1>(t.tail); }
template <class... T> METAL_FUNC constexpr tuple_<T...> make(T... x) { return {x...}; }
template <> METAL_FUNC constexpr tuple_<> make() { return {}; }
kernel void k(device float *out [[buffer(0)]]) { tuple_<float, int2, half> t = {1.5f, {int2(2, 3), {4.0h, {}}}}; out[0] = get<0>(t) + get<1>(t).y + get<2>(t); }`,
    out: "float",
    grid: 1,
    threads: 1,
    expected: [1.5 + 3 + 4],
  },
];

sourceSuite("inventedForms", cases);
