/** Expressions whose meaning hangs on a type that the text does not show. */
import { floats, ints, range, uints } from "./harness.ts";
import { sourceSuite, statementSuite } from "./separate.ts";

const ring = `struct Ring { uint at; thread Ring &operator++() { at = (at + 1) % 3; return *this; }
  Ring operator++(int) { Ring old = *this; ++*this; return old; } };`;

statementSuite("hiddenIncrements", [
  {
    name: "a vector's ++ beside a struct's",
    before: ring,
    code: "float4 v(1, 2, 3, 4); v++; ++v; v.xy--; Ring r{2}; r++; out[0] = v.x; out[1] = v.w; out[2] = r.at; const float4 w = v--; out[3] = w.z; out[4] = v.z;",
    out: "float",
    threads: 1,
    expected: [2, 6, 0, 5, 4],
  },
  {
    name: "a vector's ++ in device memory beside a struct's for device memory",
    before:
      "struct Count { int n; void operator++(int) device { n += 10; } device Count &operator--() device { n -= 5; return *this; } };",
    code: "device int2 *v = (device int2 *)out; v[1]++; ++v[1]; v[1].y--; device Count *c = (device Count *)(out + 4); (*c)++; (*c)++; --*c; c[1]++; --v[3];",
    out: "int",
    threads: 1,
    expected: [0, 0, 2, 1, 15, 10, -1, -1],
  },
  {
    name: "a template that steps vectors, numbers and structs",
    before: `${ring} template <typename T> static T stepped(T x) { x++; ++x; return x; } template <typename T> static T old(thread T &x) { return x++; }`,
    code: "out[0] = stepped(3); out[1] = stepped(Ring{0}).at; out[2] = stepped(int3(7)).z; float2 f(5); out[3] = int(old(f).y * 10 + f.x); Ring r{1}; out[4] = old(r).at * 10 + r.at;",
    out: "int",
    threads: 1,
    expected: [5, 2, 9, 56, 12],
  },
  {
    name: "parentheses around what is stepped",
    before:
      "#define STEP(x) (x)++\n#define BACK(x) --(x)\n#define PICK(x) ((x).get())\nstruct Held { float v; float get() const { return v; } };",
    code: "float3 v(1, 2, 3); STEP(v); STEP(v.y); BACK((v)); int n = 4; STEP(n); (n)--; Held h{2.5f}; (v)++; ((v.z))++; out[0] = v.x; out[1] = v.y; out[2] = v.z; out[3] = n; out[4] = PICK(h);",
    out: "float",
    threads: 1,
    expected: [2, 4, 5, 4, 2.5],
  },
  {
    name: "a method of a parenthesis: pointers, references, arrays, results",
    before:
      "struct Held { int v; int get() const { return v; } int get() const device { return v + 100; } thread Held &set(int x) thread { v = x; return *this; } }; static Held made(int x) { return Held{x}; }\n#define GET(p) (p).get()\n#define AT(list, k) (list)[k]",
    code: "Held h{1}; thread Held *p = &h; thread Held &r = h; Held list[2] = {{5}, {6}}; const device Held *d = (const device Held *)a; out[0] = GET(h); out[1] = GET(*p); out[2] = GET(r); out[3] = GET(AT(list, 1)); out[4] = GET(made(9)); out[5] = GET(d[1]); out[6] = (p)->get(); out[7] = GET((h).set(3)) + (*d).get();",
    out: "int",
    threads: 1,
    inputs: [ints([10, 20])],
    expected: [1, 1, 1, 6, 9, 120, 1, 113],
  },
  {
    name: "a bit field is stepped, added to and shifted",
    before: "struct Bits { uint low : 3; uint middle : 5; int top : 8; };",
    code: "Bits s{6, 3, -2}; s.low++; ++s.middle; s.top--; const uint before = s.low++; out[0] = s.low; out[1] = s.middle; out[2] = uint(s.top + 10); out[3] = before; s.middle += 30; out[4] = s.middle; s.low |= 5; s.top <<= 2; out[5] = s.low; out[6] = uint(s.top + 100);",
    out: "uint",
    threads: 1,
    expected: [0, 4, 7, 7, 2, 5, 88],
  },
  {
    name: "bit fields by pointer and reference, in arrays and in device memory",
    before: "struct Bits { uint a : 4; uint b : 12; uint c : 16; };",
    code: "device Bits *d = (device Bits *)out; d[0].a++; d[0].b = 300; d->c--; device Bits &r = d[1]; r.a = 15; r.a++; r.b += 7; Bits list[2] = {{1, 2, 3}, {4, 5, 6}}; thread Bits *p = list; p++->a++; p->c *= 3; out[2] = list[0].a + 10 * list[1].c; d[3] = list[1];",
    out: "uint",
    threads: 1,
    expected: [1 + 300 * 16 + 65535 * 65536, 7 * 16, 182, 4 + 5 * 16 + 18 * 65536],
  },
  {
    name: "bit fields beside vectors of the same names of members",
    before: "struct Bits { uint x : 4; uint y : 4; };",
    code: "Bits s{1, 2}; uint2 v(14, 15); s.x++; v.x++; s.y--; v.y--; s.x += v.x; v.xy++; out[0] = s.x; out[1] = s.y; out[2] = v.x; out[3] = v.y;",
    out: "uint",
    threads: 1,
    expected: [1, 1, 16, 15],
  },
]);

statementSuite("hiddenConstants", [
  {
    name: "a struct with a const member, read from device memory",
    before: "struct Item { const int id; float weight; float total() const { return weight * id; } };",
    code: "const device Item *items = (const device Item *)a; const Item one = items[i]; Item two = items[1 - i]; out[i] = one.total() + two.id;",
    out: "float",
    inputs: [uints([3, 0x3f000000, 5, 0x40000000])],
    expected: [3 * 0.5 + 5, 5 * 2 + 3],
  },
  {
    name: "const members that are arrays, vectors and structs, from constant and threadgroup memory",
    before:
      "struct Inner { const uint2 size; }; struct Item { const int list[2]; const Inner inner; const float3 v; };\nconstant Item kItem = {{4, 5}, {uint2(6, 7)}, float3(1, 2, 3)};",
    code: "const Item mine = kItem; constant Item &r = kItem; out[0] = mine.list[1]; out[1] = mine.inner.size.y; out[2] = int(mine.v.z); const Inner inner = r.inner; out[3] = inner.size.x; out[4] = Item{{1, 2}, {8}, 9}.inner.size.y;",
    out: "int",
    threads: 1,
    expected: [5, 7, 3, 6, 8],
  },
  {
    name: "const members set by a constructor, in arrays and by value",
    before:
      "class Scale { public: Scale(float x, int k) : by(x), at(k) {} float of(float x) const { return by * x + at; } private: const float by; const int at; }; static float use(Scale s, float x) { return s.of(x); }",
    code: "const Scale list[2] = {Scale(2, 1), {3, 4}}; Scale s(0.5f, 0); out[0] = use(list[0], 5); out[1] = use(list[1], a[0]); out[2] = s.of(3); out[3] = use({1, 1}, 1);",
    out: "float",
    threads: 1,
    inputs: [floats([6])],
    expected: [11, 22, 1.5, 2],
  },
]);

statementSuite("hiddenNames", [
  {
    name: "a parameter of the name T times a number",
    before:
      "template <typename T> static T same(T x) { return x; }\nstatic int product(int T, int n) { return T * n + 1; }\nstatic float scaled(float T) { const float n = 3; float r = 0; r = T * n; return r; }",
    code: "out[0] = product(4, 5) + same(1); out[1] = int(scaled(2.5f) * 2); int T = 3, n = 7; out[2] = T * n; T *n; out[3] = (T)*n;",
    out: "int",
    threads: 1,
    expected: [22, 15, 21, 21],
  },
  {
    name: "references with the names of template parameters and of structs, multiplied",
    before:
      "template <typename T, typename C> static T same(T x, C c) { thread T *p = &x; return *p * c; } struct B { int v; }; static int volume(const device int &B, thread int &T, const thread int &C) { int n = B * T * C; return n + B % (T * T) + 100 * (n % (T * C)); }",
    code: "int x = 3; out[0] = volume(a[0], x, 4) + 1000 * same(x, 2);",
    out: "int",
    threads: 1,
    inputs: [ints([5])],
    expected: [60 + 5 + 6000],
  },
  {
    name: "variables with the names of types of other scopes",
    before: "namespace one { struct Tile { int v; }; typedef float Real; } struct Box { typedef int Count; Count c; };",
    code: "int Tile = 2, Real = 3, Count = 4, y = 5; out[0] = Tile * y; out[1] = Real * y + (Count) * y; out[2] = (Tile) - y; out[3] = (Real) & y; { one::Tile Tile{6}; out[4] = Tile.v * y; }",
    out: "int",
    threads: 1,
    expected: [10, 35, -3, 1, 30],
  },
  {
    name: "variables with the names of library functions and of members",
    before: "struct Range { float min, max, clamp; float length() const { return max - min; } };",
    code: "Range r{1, 5, 2}; float min = r.min, max = 9, dot = 2; float abs = metal::abs(-3.0f); out[0] = min * max + dot; out[1] = metal::max(r.max, abs) + r.length(); { float length = 4; out[2] = length * dot - r.clamp; }",
    out: "float",
    threads: 1,
    expected: [11, 9, 6],
  },
  {
    name: "one alias in two functions",
    before:
      "static float one(float x) { typedef float R; R r = x / 2; return r; }\nstatic float two(float x) { typedef int R; R r = x / 2; return r; }\nstatic float three(float x) { using R = float2; R r(x, 1); r++; return r.x < r.y; }",
    code: "out[0] = one(5); out[1] = two(5); out[2] = three(5); out[3] = three(0);",
    out: "float",
    threads: 1,
    expected: [2.5, 2, 0, 1],
  },
  {
    name: "one alias in nested blocks, as a vector and as a number",
    code: "using V = float4; V v(1); v++; { using V = int; V n = 7; n++; out[0] = n; { typedef uchar2 V; V c(255); c++; out[1] = c.x; } V m = 2.9f; out[2] = m; } V w = select(V(6), V(5), v < V(3)); out[3] = int(w.z + v.y);",
    out: "int",
    threads: 1,
    expected: [8, 0, 2, 7],
  },
  {
    name: "one alias in two structs, in a namespace and in a template",
    before:
      "struct A { typedef float3 type; type v; type next() const { type r = v; r++; return r; } }; struct B { typedef int type; type v; type next() const { type r = v; r++; return r; } };\nnamespace n { typedef half type; static type next(type x) { return ++x; } }\ntemplate <typename S> static typename S::type stepped(S s) { typename S::type r = s.next(); ++r; return r; }\ntypedef uint type;",
    code: "type k = 3; k++; out[0] = k; out[1] = stepped(A{float3(1)}).y; out[2] = stepped(B{5}); out[3] = float(n::next(1.5h));",
    out: "float",
    threads: 1,
    expected: [4, 3, 7, 2.5],
  },
]);

const parameters =
  "device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]]";
const list = range(32, (k) => k * 0.5 - 4);
const sum = list.reduce((x, y) => x + y);
const lanes = { out: "float", inputs: [floats(list)], grid: 32, threads: 32, kernel: "k" } as const;
const all = (value: number): number[] => range(32, () => value);

sourceSuite("hiddenLanes", [
  {
    ...lanes,
    name: "a macro that is given the function",
    source: `#define APPLY(f, x) f(x)\nkernel void k(${parameters}) { out[i] = APPLY(simd_sum, in[i]) + APPLY(simd_max, in[i]); }`,
    expected: all(sum + Math.max(...list)),
  },
  {
    ...lanes,
    name: "a template that is given the function",
    source: `template <float (*F)(float)> static float apply(float x) { return F(x); }\nkernel void k(${parameters}) { out[i] = apply<simd_sum>(in[i]) - apply<simd_min>(in[i]); }`,
    expected: all(sum - Math.min(...list)),
  },
  {
    ...lanes,
    name: "a list of calls by a macro of macros",
    source: `#define EACH(X) X(sum) X(max) X(min)\n#define ADD(name) total += simd_##name(in[i]);\nkernel void k(${parameters}) { float total = 0; EACH(ADD) out[i] = total; }`,
    expected: all(sum + Math.max(...list) + Math.min(...list)),
  },
  {
    ...lanes,
    name: "an object of a template argument, and a static function of it",
    source: `struct Sum { static float of(float x) { return simd_sum(x); } float operator()(float x) const { return simd_broadcast(x, 3); } };
template <typename Op> static float reduced(float x) { return Op::of(x) + Op()(x); }
template <template <typename> class W, typename Op> static float through(float x) { return W<Op>::run(x); }
template <typename Op> struct Wrap { static float run(float x) { return reduced<Op>(x); } };
kernel void k(${parameters}) { out[i] = through<Wrap, Sum>(in[i]); }`,
    expected: all(sum + (list[3] ?? 0)),
  },
  {
    ...lanes,
    name: "a default argument and a conversion that need lanes",
    source: `struct Total { float x; operator float() const { return simd_sum(x); } };
static float plus(float x, float y = simd_max(1.5f)) { return x + y; }
kernel void k(${parameters}) { Total t{in[i]}; float s = t; out[i] = plus(s); }`,
    expected: all(sum + 1.5),
  },
]);
