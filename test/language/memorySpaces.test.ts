/** Structs in structs, bit fields, const members, unions and arrays in device, constant, threadgroup and thread memory. */
import { floats, ints, range, uints } from "./harness.ts";
import { statementSuite } from "./separate.ts";

const nested = `struct Leaf { half h; uchar c; float2 v; float sum() const { return float(h) + c + v.x + v.y; } float sum() const device { return 1000 + float(h) + c + v.x + v.y; } float sum() const threadgroup { return 2000 + v.y; } float sum() const constant { return 3000 + v.y; } };
struct Node { Leaf leaf; Leaf list[2]; int n; }; struct Tree { Node a; struct { Node b; int tag; } inner; };
constant Tree kTree = {{{1, 2, {3, 4}}, {{5, 6, {7, 8}}, {9, 10, {11, 12}}}, 13}, {{{14, 15, {16, 17}}, {}, 18}, 19}};`;

statementSuite("nestedStructs", [
  {
    name: "members of members in constant memory, by name, pointer and reference",
    before: nested,
    code: "constant Tree *t = &kTree; constant Node &n = t->inner.b; constant Leaf *l = kTree.a.list + 1; out[0] = kTree.a.list[1].v.y; out[1] = n.leaf.sum(); out[2] = l->c + l[-1].v.x; out[3] = t->inner.tag + n.n; out[4] = kTree.a.leaf.sum();",
    out: "float",
    threads: 1,
    expected: [12, 3017, 17, 37, 3004],
  },
  {
    name: "a whole tree copied from constant to thread, threadgroup and device memory",
    before: nested,
    code: "Tree mine = kTree; mine.a.leaf.v = 100; threadgroup Tree t; t = mine; t.inner.b.list[0] = t.a.list[1]; device Tree *d = (device Tree *)out; d[0] = t; d->inner.b.leaf = kTree.a.leaf; const Tree back = d[0]; const float r[] = {back.a.leaf.sum(), t.a.leaf.sum(), d->a.leaf.sum(), back.inner.b.list[0].sum(), back.inner.b.leaf.sum(), float(sizeof(Tree))}; for (int k = 0; k < 30; k++) out[k] = k < 6 ? r[k] : 0;",
    out: "float",
    threads: 1,
    expected: [203, 2100, 1203, 42, 10, 120, ...range(24, () => 0)],
  },
  {
    name: "references and pointers to members, handed to functions of every memory",
    before: `${nested} static void set(device Leaf &l, float x) { l.v.x = x; } static void set(threadgroup Leaf &l, float x) { l.v.x = x + 1; } static void set(thread Leaf &l, float x) { l.v.x = x + 2; } static float get(const thread Node *n) { return n->list[1].v.x; } static float get(const threadgroup Node *n) { return n->list[1].v.x + 10; }`,
    code: "threadgroup Tree t; Tree mine; device Tree *d = (device Tree *)out; set(t.a.list[1], 1); set(mine.inner.b.list[1], 2); set(d->a.leaf, 3); const float x = d->a.leaf.v.x; device float2 *p = &d->a.leaf.v; (*p).y = 9; const float y = d->a.leaf.v.y; out[0] = get(&t.a); out[1] = get(&mine.inner.b); out[2] = x; out[3] = y;",
    out: "float",
    threads: 1,
    expected: [12, 4, 3, 9],
  },
  {
    name: "methods that reach members' methods in each memory",
    before:
      "struct In { int n; void add(int x) { n += x; } void add(int x) device { n += 10 * x; } void add(int x) threadgroup { n += 100 * x; } int get() const { return n; } int get() const device { return n; } int get() const threadgroup { return n; } }; struct Out { In in, list[2]; template <typename T> static int total(T o) { return o.in.get() + o.list[0].get() + o.list[1].get(); } void all(int x) { in.add(x); for (int k = 0; k < 2; k++) list[k].add(x); } void all(int x) device { in.add(x); for (int k = 0; k < 2; k++) list[k].add(x); } void all(int x) threadgroup { in.add(x); for (int k = 0; k < 2; k++) this->list[k].add(x); } };",
    code: "Out mine = {{0}, {{0}, {0}}}; threadgroup Out t; t = mine; device Out *d = (device Out *)out; mine.all(1); t.all(1); d->all(1); const int sums = Out::total(mine) + Out::total<Out>(t); out[3] = sums;",
    out: "int",
    threads: 1,
    expected: [10, 10, 10, 303],
  },
  {
    name: "pointers in structs, to every memory",
    before:
      "struct Refs { const device float *d; threadgroup float *t; constant int *c; thread int &n; float sum() const { return d[1] + t[0] + c[2] + n; } }; constant int kInts[] = {1, 2, 3};\nstruct List { const device float *p; uint n; float last() const { return p[n - 1]; } List from(uint k) const { return List{p + k, n - k}; } };",
    code: "threadgroup float s[2]; s[0] = 10; int n = 5; Refs r = {a, s, kInts, n}; r.n++; r.t[0] += 1; out[0] = r.sum(); out[1] = n; const List l{a, 4}; out[2] = l.last(); out[3] = l.from(2).p[0] + l.from(1).n;",
    out: "float",
    threads: 1,
    inputs: [floats([1.5, -2, 3.25, 8])],
    expected: [-2 + 11 + 3 + 6, 6, 8, 6.25],
  },
  {
    name: "structs with arrays of vectors and matrices in threadgroup memory, one a thread",
    before:
      "struct Tile { float4 v[2]; float2x2 m; packed_half3 h; bool on; }; static float4 mixed(threadgroup const Tile &t) { return t.on ? t.v[0] + t.v[1].wzyx : float4(t.m[0], t.m[1]); }",
    code: "threadgroup Tile tiles[4]; tiles[i].v[0] = float4(i); tiles[i].v[1] = float4(1, 2, 3, 4) * i; tiles[i].m = float2x2(i); tiles[i].h = half3(i, 1, 2); tiles[i].on = i & 1; threadgroup_barrier(mem_flags::mem_threadgroup); out[i] = mixed(tiles[3 - i]).x + float(tiles[3 - i].h.x);",
    out: "float",
    expected: [3, 2, 1, 0].map((k) => (k % 2 === 1 ? k + 4 * k : k) + k),
  },
  {
    name: "arrays of structs in threadgroup memory as a heap: pointers, swaps and sums",
    before:
      "struct Entry { float key; ushort id; }; static void swap(threadgroup Entry &x, threadgroup Entry &y) { const Entry t = x; x = y; y = t; } static bool less(const threadgroup Entry &x, const threadgroup Entry &y) { return x.key < y.key || (x.key == y.key && x.id < y.id); }",
    code: "threadgroup Entry heap[8]; heap[i] = {a[i], ushort(i)}; for (uint round = 0; round < 8; round++) { threadgroup_barrier(mem_flags::mem_threadgroup); const uint k = i * 2 + (round & 1); if (k + 1 < 8 && less(heap[k + 1], heap[k])) swap(heap[k], heap[k + 1]); } threadgroup_barrier(mem_flags::mem_threadgroup); const threadgroup Entry *e = heap + i; out[i] = e->key * 10 + e->id;",
    out: "float",
    inputs: [floats([5, 3, 8, 3, 1, 9, 2, 7])],
    expected: [5, 3, 8, 3, 1, 9, 2, 7]
      .map((key, id) => ({ key, id }))
      .sort((x, y) => x.key - y.key || x.id - y.id)
      .map(({ key, id }) => key * 10 + id),
  },
  {
    name: "threadgroup memory given by the encoder as structs and as several arrays",
    before: "struct P { float2 v; int n; };",
    code: "threadgroup P *p = (threadgroup P *)shared; threadgroup int *n = (threadgroup int *)(p + 4); p[i] = {float2(i, 1), int(i)}; n[i] = i * 10; threadgroup_barrier(mem_flags::mem_threadgroup); threadgroup P &r = p[3 - i]; out[i] = r.v.x * 100 + r.v.y + n[i] + r.n;",
    out: "float",
    shared: 256,
    expected: range(4, (i) => (3 - i) * 101 + 1 + 10 * i),
  },
]);

const bits = "struct Bits { uint a : 3; uint b : 13; int c : 6; uint : 2; uint d : 8; };";
const word = (a: number, b: number, c: number, d: number): number =>
  (a | (b << 3) | ((c & 63) << 16) | (d << 24)) >>> 0;
statementSuite("bitFields", [
  {
    name: "read from device and constant memory, signed and unsigned",
    before: `${bits}\nconstant Bits kBits = {1, 2, -3, 4};`,
    code: "const device Bits *p = (const device Bits *)a; out[0] = p[0].a; out[1] = p[0].b; out[2] = p[0].c; out[3] = p->d; const Bits m = p[1]; out[4] = m.c + m.d; out[5] = kBits.c * kBits.d; out[6] = sizeof(Bits);",
    out: "int",
    threads: 1,
    inputs: [uints([word(5, 8191, -32, 200), word(0, 1, 31, 2)])],
    expected: [5, 8191, -32, 200, 33, -12, 4],
  },
  {
    name: "written in device and threadgroup memory, whole and by field",
    before: bits,
    code: "device Bits *p = (device Bits *)out; p[0] = {1, 2, -1, 3}; p[1].d = 255; p[1].c -= 5; threadgroup Bits t; t = p[0]; t.b <<= 4; t.a = ~0u; p[2] = t; p[3].b = p[0].d + t.b; const Bits c = {.d = 9, .a = 7}; (void)c; p[4].a = c.a & 5;",
    out: "uint",
    threads: 1,
    expected: [word(1, 2, -1, 3), word(0, 0, -5, 255), word(7, 32, -1, 3), word(0, 35, 0, 0), word(5, 0, 0, 0)],
  },
  {
    name: "in unions, of bool and enumerations, and of eight and sixteen bits",
    before:
      "enum Color : uchar { red, green, blue }; union Float { float f; struct { uint mantissa : 23; uint exponent : 8; uint sign : 1; }; }; struct Flags { bool on : 1; bool off : 1; Color color : 2; }; struct Small { uchar lo : 4, hi : 4; ushort w : 10; };",
    code: "Float f; f.f = -6.5f; out[0] = f.exponent - 127; out[1] = f.sign; out[2] = f.mantissa >> 20; f.exponent++; out[3] = f.f == -13; Flags g = {}; g.on = 4; g.color = blue; out[4] = g.on + 10 * g.off + 100 * g.color; const device Small *s = (const device Small *)a; out[5] = s->hi * 16 + s->lo; out[6] = s->w; out[7] = sizeof(Small);",
    out: "uint",
    threads: 1,
    inputs: [uints([0x03ff00a7])],
    expected: [2, 1, 0b101, 1, 201, 0xa7, 0x3ff, 4],
  },
  {
    name: "in expressions: promotion, comparison, conditions, shifts, arguments",
    before:
      "struct S { uint a : 4; int b : 4; uint w : 32; }; static int type(int) { return 1; } static int type(uint) { return 2; } template <typename T> static int sized(T) { return sizeof(T); }",
    code: "S s = {15, -8, 7}; out[0] = s.a - 20 < 0; out[1] = s.b >> 1; out[2] = s.a ? s.b : 5; out[3] = type(+s.a) + 10 * type(s.w); out[4] = max(int(s.a), int(s.b)); out[5] = sized(s.a); out[6] = (s.a == 15 && s.b < 0) ? s.a << 4 : 0; out[7] = uint2(s.a, s.w).x;",
    out: "int",
    threads: 1,
    expected: [1, -4, -8, 21, 15, 4, 240, 15],
  },
]);

statementSuite("constMembers", [
  {
    name: "const vectors, arrays, pointers and references as members",
    before:
      "struct S { const float3 v; const int n[2]; const device float *const p; const thread float &r; float sum() const { return v.z + n[1] + p[1] + r; } }; struct Dims { const uint3 size; uint volume() const { return size.x * size.y * size.z; } };",
    code: "float x = 100; const S s = {float3(1, 2, 3), {4, 5}, a, x}; x = 200; out[0] = s.sum(); out[1] = Dims{{2, 3, 4}}.volume(); const Dims d{uint3(5)}; Dims e = d; out[2] = e.volume();",
    out: "float",
    threads: 1,
    inputs: [floats([1, 2])],
    expected: [210, 24, 125],
  },
  {
    name: "static constants of structs and templates, in lengths and in memory",
    before:
      "struct Config { static constant constexpr int kRows = 4; static constexpr constant float kScale = 0.5; static constant int kList[3]; enum { kColumns = kRows * 2 }; }; constant int Config::kList[3] = {7, 8, 9}; template <int R, int C> struct Shape { static constexpr constant int rows = R, columns = C, size = R * C; float v[size]; };",
    code: "threadgroup float s[Config::kRows][Config::kColumns]; s[1][7] = Config::kScale; Shape<Config::kRows, 3> h = {}; h.v[11] = 6; out[0] = sizeof(s); out[1] = s[1][7] + h.v[h.size - 1]; out[2] = Config::kList[2]; out[3] = Shape<2, 5>::columns;",
    out: "float",
    threads: 1,
    expected: [128, 6.5, 9, 5],
  },
  {
    name: "const objects and const methods, mutable ones beside them",
    before:
      "class Reader { const device int *p; int at; public: Reader(const device int *from, int k = 0) : p(from), at(k) {} int peek() const { return p[at]; } int next() { return p[at++]; } thread Reader &skip(int n) { at += n; return *this; } int position() const { return at; } };",
    code: "const Reader fixed(a, 2); Reader r(a); out[0] = fixed.peek(); out[1] = r.next() * 10 + r.next(); out[2] = r.skip(1).peek(); Reader copy = fixed; copy.next(); out[3] = copy.position() + fixed.position();",
    out: "int",
    threads: 1,
    inputs: [ints([4, 5, 6, 7])],
    expected: [6, 45, 7, 5],
  },
  {
    name: "unions in structs in every memory, with vectors and arrays",
    before:
      "struct Word { int kind; union { float4 v; uint w[4]; half2 h[2]; uchar4 c; }; uint first() const device { return w[0]; } uint first() const { return w[0] + 1; } };",
    code: "device Word *d = (device Word *)out; d->v = float4(1, 2, 0, 0); Word m = *d; m.h[0].y = 1.0h; threadgroup Word t; t = m; t.c.x = 5; const uint r[] = {d->first(), m.first(), t.w[0], m.w[1], sizeof(Word)}; for (int k = 0; k < 5; k++) out[8 + k] = r[k];",
    out: "uint",
    threads: 1,
    expected: [0, 0, 0, 0, 0x3f800000, 0x40000000, 0, 0, 0x3f800000, 0x3c000001, 0x3c000005, 0x40000000, 32],
  },
  {
    name: "a linked list by indices, and a ring of atomics, in threadgroup memory",
    before:
      "struct Node { int value; short next; }; struct Ring { atomic_uint head; Node nodes[4]; uint claim() threadgroup { return atomic_fetch_add_explicit(&head, 1u, memory_order_relaxed); } };",
    code: "threadgroup Ring ring; if (i == 0) atomic_store_explicit(&ring.head, 0u, memory_order_relaxed); threadgroup_barrier(mem_flags::mem_threadgroup); ring.nodes[i] = {a[i], short(i == 3 ? -1 : i + 1)}; ring.claim(); threadgroup_barrier(mem_flags::mem_threadgroup); int sum = 0; for (short k = i; k >= 0; k = ring.nodes[k].next) sum += ring.nodes[k].value; out[i] = sum + 100 * atomic_load_explicit(&ring.head, memory_order_relaxed);",
    out: "int",
    inputs: [ints([1, 2, 3, 4])],
    expected: [410, 409, 407, 404],
  },
]);
