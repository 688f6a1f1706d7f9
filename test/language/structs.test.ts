/** Structs, unions, enumerations and arrays, in every address space; pointers and references. */
import { type Case, floats, ints, languageSuite, range, uints } from "./harness.ts";

const prelude = `
struct Pair { float x; int n; };
struct Nested { Pair first; Pair rest[2]; uchar tag; };
struct Aligned { float3 v; half h; };
struct Defaults { int a = 3; float b = 1.5f; };
struct Counter {
  int value;
  int next() { return ++value; }
  int peek() const { return value; }
  static int twice(int x) { return 2 * x; }
  static constant constexpr int kStep = 4;
};
struct Point {
  float x, y;
  Point(float px, float py) : x(px), y(py) {}
  Point operator+(Point other) const { return Point(x + other.x, y + other.y); }
  bool operator==(Point other) const { return x == other.x && y == other.y; }
  thread Point &operator+=(Point other) { x += other.x; y += other.y; return *this; }
  explicit operator float() const { return x * y; }
};
inline Point operator*(float by, Point p) { return Point(by * p.x, by * p.y); }
class Hidden {
public:
  void set(int v) { value = v; }
  int get() const { return value; }
private:
  int value;
};
union Word { float f; uint u; uchar bytes[4]; };
enum Plain { kZero, kOne, kTen = 10, kEleven };
enum class Scoped : uchar { red = 1, green, blue = 200 };
typedef struct { int a; int b; } Anonymous;
struct Bits { uint low : 4; uint high : 28; };
template <typename T> struct Box { T value; T get() const { return value; } };
struct Holder { Box<float> f; Box<int> n; };

constant Pair kPairs[] = {{1.5f, 1}, {2.5f, 2}, {3.5f, 3}};
constant float kTable[2][3] = {{1, 2, 3}, {4, 5, 6}};
constant float kScale = 2.0f;
constant constexpr int kCount = 3;
constant Nested kNested = {{1, 2}, {{3, 4}, {5, 6}}, 7};
constexpr constant uchar kCodes[4] = {10, 20, 30, 40};
namespace outer { constant int kInner = 11; namespace inner { int twice(int x) { return 2 * x; } } }
namespace alias = outer::inner;

float sum(const device Pair *p, uint n) { float s = 0; for (uint k = 0; k < n; ++k) { s += p[k].x; } return s; }
float sum(constant Pair *p, uint n) { float s = 1000; for (uint k = 0; k < n; ++k) { s += p[k].x; } return s; }
float sum(threadgroup const Pair *p, uint n) { float s = 2000; for (uint k = 0; k < n; ++k) { s += p[k].x; } return s; }
float sum(thread const Pair *p, uint n) { float s = 3000; for (uint k = 0; k < n; ++k) { s += p[k].x; } return s; }
int space(device int &) { return 1; }
int space(threadgroup int &) { return 2; }
int space(thread int &) { return 3; }
int space(constant int &) { return 4; }
void bump(device int &x) { x += 1; }
void swap(thread int &x, thread int &y) { const int t = x; x = y; y = t; }
Pair made(float x, int n) { return {x, n}; }
Pair doubled(Pair p) { p.x *= 2; p.n *= 2; return p; }
void fill(device Pair *to, Pair value) { to[0] = value; }
template <typename T> void put(device T *to, T value) { *to = value; }
template <typename T> T take(const device T *from) { return *from; }
template <typename T> void shift(threadgroup T *items) { items[0] = items[1]; }
int total(const thread int (&items)[3]) { return items[0] + items[1] + items[2]; }
`;

const cases: Case[] = [
  {
    name: "sizes and offsets follow the C layout",
    code: `const uint s[] = {sizeof(Pair), sizeof(Nested), sizeof(Aligned), alignof(Aligned), sizeof(Word), sizeof(Plain), sizeof(Scoped),
      sizeof(Bits), sizeof(Box<half>), sizeof(Anonymous), sizeof(Holder)}; out[i] = s[i];`,
    out: "uint",
    expected: [8, 28, 32, 16, 4, 4, 1, 4, 2, 8, 8],
  },
  {
    name: "copies between thread variables, from braces, nested and arrays of structs",
    code: `Pair p = {1.5f, 2}; Pair q = p; q.n = 5; Pair r; r = q; r = {4.0f, 6}; Nested n = {p, {q, r}, 9}; Nested m = n; m.rest[1].x = 8;
      Pair list[3] = {p, q, {7, 7}}; list[2] = m.rest[1]; out[0] = q.x; out[1] = q.n; out[2] = r.x; out[3] = n.rest[1].x; out[4] = m.tag;
      out[5] = list[2].x; out[6] = made(3, 4).n; out[7] = doubled(p).x + p.x;`,
    out: "float",
    threads: 1,
    expected: [1.5, 5, 4, 4, 9, 8, 4, 4.5],
  },
  {
    name: "default member initialisers",
    code: "Defaults d; Defaults e; e.a = 9; out[0] = d.a; out[1] = d.b; out[2] = e.a + e.b;",
    out: "float",
    threads: 1,
    expected: [3, 1.5, 10.5],
  },
  {
    name: "structs read from device memory",
    code: `const device Pair *p = (const device Pair *)a; const Pair q = p[i]; Pair r; r = p[i]; out[2 * i] = q.x + p[i].n; out[2 * i + 1] = r.x;`,
    out: "float",
    threads: 2,
    inputs: [uints([0x3f800000, 5, 0x40000000, 6])],
    expected: [6, 1, 8, 2],
  },
  {
    name: "structs written to device memory: out[i] = s",
    code: `device Pair *p = (device Pair *)out; Pair s = {float(i) + 0.5f, int(i)}; p[i] = s;`,
    out: "uint",
    threads: 3,
    expected: [0x3f000000, 0, 0x3fc00000, 1, 0x40200000, 2],
  },
  {
    name: "structs written through *p, references, braces, members and functions",
    code: `device Pair *p = (device Pair *)out; *p = {1, 2}; device Pair &r = p[1]; r = Pair{3, 4}; p[2] = p[0]; p[3] = kPairs[1];
      fill(p + 4, made(5, 6)); put(p + 5, made(7, 8)); device Nested *n = (device Nested *)(p + 6); n->first = p[0]; n->rest[1] = {9, 10};
      (*n).rest[0] = take(p + 5); n->tag = 3;`,
    out: "uint",
    threads: 1,
    expected: [
      0x3f800000, 2, 0x40400000, 4, 0x3f800000, 2, 0x40200000, 2, 0x40a00000, 6, 0x40e00000, 8, 0x3f800000, 2,
      0x40e00000, 8, 0x41100000, 10, 3,
    ],
  },
  {
    name: "templates that store vectors and scalars alike",
    code: `put(out, 1.5f); put((device float2 *)(out + 2), float2(2, 3)); put((device half4 *)(out + 4), half4(1, 0, 0, 0));
      out[6] = take((const device float2 *)out).x;`,
    out: "float",
    threads: 1,
    expected: [1.5, 0, 2, 3, 0x3c00 * 2 ** -149, 0, 1.5],
  },
  {
    name: "struct copies through threadgroup memory",
    code: `threadgroup Pair box[4]; threadgroup Nested one; Pair mine = {float(local), int(local) * 10}; box[local] = mine;
      if (local == 0) { one = kNested; one.first = mine; } threadgroup_barrier(mem_flags::mem_threadgroup);
      Pair other = box[3 - local]; Nested copy = one; out[2 * i] = other.x + copy.rest[1].x; out[2 * i + 1] = float(box[3 - local].n) + copy.tag;`,
    out: "float",
    threads: 4,
    expected: [8, 37, 7, 27, 6, 17, 5, 7],
  },
  {
    name: "threadgroup structs assigned in a template",
    code: `threadgroup Pair box[2]; box[local] = {float(local) + 1, 7}; threadgroup_barrier(mem_flags::mem_threadgroup);
      if (local == 0) { shift(box); } threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = box[0].x;`,
    out: "float",
    threads: 2,
    expected: [2, 2],
  },
  {
    name: "constants at program scope: scalars, arrays, structs, in namespaces",
    code: `const Pair p = kPairs[i]; const Nested n = kNested; out[i] = p.x * kScale + kPairs[2 - i].n + kTable[1][i] + kCount + kCodes[i]
      + n.rest[1].x + outer::kInner + alias::twice(kCount);`,
    out: "float",
    expected: range(3, (i) => (1.5 + i) * 2 + (3 - i) + (4 + i) + 3 + 10 * (i + 1) + 5 + 11 + 6),
  },
  {
    name: "overloads on the address space of a pointer",
    code: `threadgroup Pair box[2]; box[0] = {1, 0}; box[1] = {2, 0}; const Pair mine[2] = {{3, 0}, {4, 0}};
      out[0] = sum((const device Pair *)a, 2); out[1] = sum(kPairs, 2); out[2] = sum(box, 2); out[3] = sum(mine, 2);`,
    out: "float",
    threads: 1,
    inputs: [floats([0.5, 0, 0.25, 0])],
    expected: [0.75, 1004, 2003, 3007],
  },
  {
    name: "overloads on the address space of a reference",
    code: `threadgroup int box; box = 0; int mine = 0; out[1] = space(out[1]); out[2] = space(box); out[3] = space(mine); out[4] = space(outer::kInner);`,
    out: "int",
    threads: 1,
    expected: [0, 1, 2, 3, 4],
  },
  {
    name: "references to device elements and thread variables",
    code: `device int &first = out[0]; first = 5; bump(first); bump(out[1]); int x = 1, y = 2; swap(x, y); thread int &z = x; z *= 10;
      out[2] = x; out[3] = y; const device int &last = a[2]; out[4] = last; constant int &c = outer::kInner; out[5] = c;`,
    out: "int",
    threads: 1,
    inputs: [ints([1, 2, 3])],
    expected: [6, 1, 20, 1, 3, 11],
  },
  {
    name: "pointer arithmetic in device, constant, threadgroup and thread memory",
    code: `const device int *p = a; ++p; p += 2; const device int *q = p - 1; out[0] = *p; out[1] = q[0]; out[2] = int(p - a); out[3] = *(q--);
      out[4] = q == a + 1; threadgroup int box[8]; threadgroup int *t = box + 2; *t++ = 5; t[0] = 6; out[5] = box[2] + box[3];
      int mine[3] = {1, 2, 3}; thread int *m = mine; m += 1; out[6] = m[1] + *m; constant Pair *c = kPairs; out[7] = (c + 1)->n; out[8] = (&kPairs[2])->n;
      device int *none = nullptr; out[9] = none == nullptr; out[10] = p > a;`,
    out: "int",
    threads: 1,
    inputs: [ints([10, 20, 30, 40])],
    expected: [40, 30, 3, 30, 1, 11, 5, 2, 3, 1, 1],
  },
  {
    name: "pointers of device memory as another type, and as integers",
    code: `device uchar *bytes = (device uchar *)out; bytes[1] = 2; device uint *words = reinterpret_cast<device uint *>(bytes + 4); words[0] = 9;
      const ulong address = (ulong)out; out[2] = (address & 3) == 0; device packed_float2 *v = (device packed_float2 *)(out + 3); v[0] = float2(1, 2);
      out[5] = uint(reinterpret_cast<ulong>(out + 1) - address);`,
    out: "uint",
    threads: 1,
    expected: [512, 9, 1, 0x3f800000, 0x40000000, 4],
  },
  {
    name: "member functions, static members, constants of a struct",
    code: `Counter c = {5}; c.next(); c.next(); const Counter d = c; out[0] = c.value; out[1] = d.peek(); out[2] = Counter::twice(4); out[3] = Counter::kStep;
      thread Counter &r = c; out[4] = r.next(); thread Counter *p = &c; out[5] = p->next(); Hidden h; h.set(9); out[6] = h.get();`,
    out: "int",
    threads: 1,
    expected: [7, 7, 8, 4, 8, 9, 9],
  },
  {
    name: "constructors and operators of a struct",
    code: `Point p(1, 2); const Point q = Point(3, 4) + p; p += q; const Point r = 2.0f * q; out[0] = p.x; out[1] = p.y; out[2] = r.y; out[3] = float(q);
      out[4] = q == Point(4, 6); Point list[2] = {p, Point{7, 8}}; out[5] = list[1].x;`,
    out: "float",
    threads: 1,
    expected: [5, 8, 12, 24, 1, 7],
  },
  {
    name: "structs with constructors, to and from device memory",
    code: `device Point *p = (device Point *)out; p[0] = Point(1, 2); p[1] = Point(p[0]) + Point(3, 4); const Point q = p[1]; Point r(0, 0); r = p[0];
      p[2] = 2.0f * q; p[3] = r;`,
    out: "float",
    threads: 1,
    expected: [1, 2, 4, 6, 8, 12, 1, 2],
  },
  {
    name: "unions",
    code: `Word w; w.f = 1.0f; out[0] = w.u; out[1] = w.bytes[3]; w.bytes[0] = 1; out[2] = w.u; const Word v = w; out[3] = v.bytes[2];`,
    out: "uint",
    threads: 1,
    expected: [0x3f800000, 0x3f, 0x3f800001, 0x80],
  },
  {
    name: "enumerations, plain and scoped",
    code: `const Plain p = kEleven; Scoped s = Scoped::green; int x = p + kTen; switch (s) { case Scoped::red: x += 1000; break; case Scoped::green: x += 2000;
      break; default: break; } out[0] = x; out[1] = int(Scoped::blue); out[2] = static_cast<int>(s); out[3] = kOne; s = static_cast<Scoped>(1); out[4] = s == Scoped::red;`,
    out: "int",
    threads: 1,
    expected: [2021, 200, 2, 1, 1],
  },
  {
    name: "bit fields",
    code: "Bits b = {}; b.low = 2; b.high = 3; out[0] = b.low; out[1] = b.high; out[2] = 2u + 3u * 16u; b.low += 1; out[3] = b.low;",
    out: "uint",
    threads: 1,
    expected: [2, 3, 2 + 3 * 16, 3],
  },
  {
    name: "anonymous structs by typedef",
    code: `Anonymous s = {1, 2}; Anonymous t = s; t.a += 5; device Anonymous *p = (device Anonymous *)out; p[1] = t; p[0] = p[1];`,
    out: "int",
    threads: 1,
    expected: [6, 2, 6, 2],
  },
  {
    name: "structs declared in a function",
    code: `struct Local { int a; float b; }; Local s = {1, 2}; Local t = s; t.a = 5; device Local *p = (device Local *)out; p[1] = t; const Local u = p[1];
      out[0] = u.a + s.a;`,
    out: "int",
    threads: 1,
    expected: [6, 0, 5, 0x40000000],
  },
  {
    name: "structs that are templates, in device memory and in each other",
    code: `Box<float> b = {1.5f}; Holder h = {b, {7}}; device Holder *p = (device Holder *)out; p[0] = h; p->f = Box<float>{b.get() * 2}; const Holder g = p[0];
      out[2] = g.n.get(); out[3] = int(g.f.get());`,
    out: "int",
    threads: 1,
    expected: [0x40400000, 7, 7, 3],
  },
  {
    name: "arrays: dimensions, partial initialisers, passing by reference",
    code: `int x[3] = {1, 2, 3}; int y[2][3] = {{1}, {4, 5}}; int z[] = {7, 8}; out[0] = total(x); out[1] = y[0][2] + y[1][1]; out[2] = sizeof(z) / sizeof(z[0]);
      for (uint k = 0; k < 3; ++k) { y[1][k] = x[2 - k]; } out[3] = y[1][0]; out[4] = total(y[1]);`,
    out: "int",
    threads: 1,
    expected: [6, 5, 2, 3, 6],
  },
  {
    name: "range-based for over an array, array<T, N>",
    code: `int s = 0; int x[3] = {1, 2, 3}; for (int v : x) { s += v; } array<float, 4> f = {1, 2, 3, 4}; f[1] = 9; float t = 0;
      for (uint k = 0; k < f.size(); ++k) { t += f[k]; } const array<float, 4> g = f; out[0] = s; out[1] = int(t); out[2] = int(g[1]);`,
    out: "int",
    threads: 1,
    expected: [6, 17, 9],
  },
  {
    name: "auto, decltype, nullptr, sizeof of an expression, C++17 structured bindings and if with an initialiser",
    code: `auto x = 3; auto v = float2(1, 2); decltype(v) w = v * 2.0f; Pair p = {1.5f, 4}; auto [f, n] = p; if (const int k = x + 1; k > 3) { out[0] = k; }
      out[1] = int(w.y); out[2] = n + int(f * 2); out[3] = sizeof(x + 1l);`,
    out: "int",
    threads: 1,
    expected: [4, 4, 7, 8],
  },
];

languageSuite("structs", prelude, cases);

/** A complex number as MLX has it: members for objects in every address space. */
const complex = `
struct complex64_t {
  float real;
  float imag;
  constexpr complex64_t(float real, float imag) : real(real), imag(imag) {}
  constexpr complex64_t() : real(0), imag(0) {}
  constexpr complex64_t() threadgroup : real(0), imag(0) {}
  template <typename T, typename = metal::enable_if_t<!is_same_v<T, complex64_t> && is_arithmetic_v<T>>>
  constexpr complex64_t(T x) thread : real(x), imag(0) {}
  template <typename T, typename = metal::enable_if_t<!is_same_v<T, complex64_t> && is_arithmetic_v<T>>>
  constexpr complex64_t(T x) threadgroup : real(x), imag(0) {}
  template <typename T, typename = metal::enable_if_t<!is_same_v<T, complex64_t> && is_arithmetic_v<T>>>
  constexpr operator T() const thread { return static_cast<T>(real); }
  template <typename T, typename = metal::enable_if_t<!is_same_v<T, complex64_t> && is_arithmetic_v<T>>>
  constexpr operator T() const device { return static_cast<T>(real); }
  template <typename T, typename = metal::enable_if_t<!is_same_v<T, complex64_t> && is_arithmetic_v<T>>>
  constexpr operator T() const constant { return static_cast<T>(real); }
};
constexpr complex64_t operator-(complex64_t x) { return {-x.real, -x.imag}; }
constexpr complex64_t operator*(complex64_t a, complex64_t b) { return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real}; }
`;
languageSuite("complex", complex, [
  {
    name: "a complex number with members for every address space",
    code: `const device complex64_t *in = (const device complex64_t *)a; device complex64_t *to = (device complex64_t *)out; const complex64_t z = in[1];
      to[0] = in[0] * z; to[1] = -z; to[2] = complex64_t(3.5f); to[3] = {float(z), static_cast<float>(complex64_t(8, 9))};`,
    out: "float",
    threads: 1,
    inputs: [floats([1, 2, 3, 4])],
    expected: [1 * 3 - 2 * 4, 1 * 4 + 2 * 3, -3, -4, 3.5, 0, 3, 8],
  },
]);
languageSuite(
  "struct_memory",
  `struct Sizes { uint rows, columns; uint size() const constant { return rows * columns; } uint at(uint r, uint c) const constant { return r * columns + c; } };
struct Item { float x; float2 v; float sum() const device { return x + v.y; } float sum() const threadgroup { return x + v.y; } float sum() const { return x + v.y; } float own() const { return x; } };
union Word { uint bits; float number; ushort halves[2]; uchar4 bytes; };
struct Tagged { uint tag; union { uint bits; float number; struct { ushort low, high; } halves; }; };
struct Holder { Word word; struct { ushort a, b; } pair; };
constant Sizes kSizes = {3, 4};
struct Table { array<float, 4> list; array<float2, 2> pairs; };
constant float kNumbers[] = {1, 2, 3, 4, 5, 6, 7, 8};`,
  [
    {
      name: "constant functions of objects in constant, device and threadgroup memory",
      code: `const device Item *items = (const device Item *)a; threadgroup Item box[2]; box[1] = items[1]; const Item mine = items[0]; constant Sizes *sizes = &kSizes;
        out[0] = kSizes.size(); out[1] = sizes->at(1, 2); out[2] = items[1].sum(); out[3] = (items + 1)->sum(); out[4] = box[1].sum() + mine.sum() + mine.own();`,
      out: "float",
      threads: 1,
      inputs: [floats([1, 0, 2, 3, 4, 0, 5, 6])],
      expected: [12, 6, 10, 10, 15],
    },
    {
      name: "unions by name, without a name and in structs, copied to and from device and threadgroup memory",
      code: `const device Word *words = (const device Word *)a; device Holder *holders = (device Holder *)(out + 8); threadgroup Tagged box[2];
        Word w = words[0]; w.bytes.x |= 1; out[0] = w.bits; w.number = 1.0f; out[1] = w.halves[1]; Holder h; h.word = words[1]; h.pair.a = 7; h.pair.b = 9; holders[0] = h;
        holders[1].word = w; Holder back = holders[0]; back.word.halves[0] = 5; out[2] = back.word.bits; out[3] = back.pair.b; Tagged t; t.tag = 3; t.number = 2.0f; box[1] = t;
        Tagged u = box[1]; out[4] = u.bits; out[5] = u.halves.high; u = ((const device Tagged *)a)[0]; out[6] = u.tag + u.halves.low; const Word made = {6u}; out[7] = made.bits;`,
      out: "uint",
      threads: 1,
      inputs: [uints([0x10, 0x00030002])],
      expected: [0x11, 0x3f80, 0x00030005, 9, 0x40000000, 0x4000, 0x12, 6, 0x00030002, 0x00090007, 0x3f800000],
    },
    {
      name: "array<T, N> in constant, device, threadgroup and thread memory, in structs and in arrays",
      code: `constant Table &table = *(constant Table *)kNumbers; device Table *tables = (device Table *)out; threadgroup array<float, 2> box; box[1] = table.list[2];
        tables[0].list[1] = box[1] + table.list.size(); tables->list[0] = table.list[i + 3]; array<float, 4> mine = table.list; mine[2] += 1; thread array<float, 4> &r = mine; r[3]++;
        tables[0].pairs[1].y = mine[2] + mine[3]; array<array<int, 2>, 2> nested = {{{{1, 2}}, {{3, 4}}}}; out[4] = nested[1][0] + table.pairs[1].x; float sum = 0; for (float x : mine) { sum += x; }
        out[2] = sum; out[3] = table.list.empty();`,
      out: "float",
      threads: 1,
      expected: [4, 3 + 4, 1 + 2 + 4 + 5, 0, 3 + 7, 0, 0, 4 + 5],
    },
  ],
);
