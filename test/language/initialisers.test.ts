/** Initialisation: auto, braces, designators, copies, and conditions between objects. */
import { floats, ints } from "./harness.ts";
import { statementSuite } from "./separate.ts";

const list = [1.5, -2, 3.25, 8];
const inputs = [floats(list)];

statementSuite("autos", [
  {
    name: "auto of vectors, components, swizzles and pointers",
    code: "auto p = a + 1; auto v = float4(p[0], p[1], p[2], 1); auto w = v.wz; auto x = v.y; const auto *q = &p[1]; auto &r = out[1]; r = x; out[0] = w.y + *q; auto n = 3u; out[2] = n - 4u > 0; out[3] = sizeof(w);",
    out: "float",
    threads: 1,
    inputs,
    expected: [11.25, 3.25, 1, 8],
  },
  {
    name: "auto with braces and parentheses, of half, bool and structs",
    before: "struct P { half h; int n; };",
    code: "auto h{1.5h}; auto b{h > 1}; auto p = P{h, 4}; auto c(p.h * 2); auto q{p}; q.n = 7; out[0] = sizeof(h); out[1] = b; out[2] = p.n; out[3] = int(c); out[4] = q.n; out[5] = sizeof(c);",
    out: "int",
    threads: 1,
    expected: [2, 1, 4, 3, 7, 2],
  },
  {
    name: "references to elements and objects in every memory",
    before: "struct P { int n; float4 v; };\nconstant P kP = {3, 4};",
    code: "threadgroup P t; t.n = 5; t.v = float4(6); threadgroup auto &r = t; r.n++; constant auto &c = kP; P mine = {1, 2}; thread auto &m = mine; m.v.x = 9; device auto &o = out[1]; o = r.n; const device auto &in = a[2]; out[0] = c.n; out[2] = mine.v.x; out[3] = int(in * 4);",
    out: "int",
    threads: 1,
    inputs,
    expected: [3, 6, 9, 13],
  },
  {
    name: "auto in loops over arrays, by value and by reference",
    code: "int list[3] = {1, 2, 3}; for (thread auto &x : list) x *= 2; auto sum = 0; for (auto x : list) sum += x; float2 pairs[2] = {{1, 2}, {3, 4}}; for (const auto p : pairs) sum += int(p.y); for (thread float2 &p : pairs) p.x = 10; out[0] = sum; out[1] = int(pairs[1].x); for (auto k = 0u; k < 2; ++k) out[2 + k] = list[k];",
    out: "int",
    threads: 1,
    expected: [18, 10, 2, 4],
  },
  {
    name: "auto as the result of functions, and decltype of expressions",
    before:
      "static auto half_of(float x) { return x / 2; }\ntemplate <typename T, typename U> static auto larger(T x, U y) -> decltype(x + y) { return x > y ? x : y; }\ntemplate <typename T> static auto first(T v) { return v.x; }\nstruct P { float2 v; auto sum() const { return v.x + v.y; } };",
    code: "out[0] = half_of(5); out[1] = larger(2, 3.5f); decltype(larger(1, 1u)) n = -1; out[2] = n > 5; out[3] = first(uchar2(7, 8)); decltype(a[0] + 0) x = 2.5; out[4] = x + P{{1, 2}}.sum();",
    out: "float",
    threads: 1,
    inputs,
    expected: [2.5, 3.5, 1, 7, 5.5],
  },
  {
    name: "structured bindings of structs, arrays and by reference",
    before: "struct P { float x; int2 n; }; static P made(float x) { return {x, {1, 2}}; }",
    code: "auto [x, n] = made(2.5f); float pair[2] = {3, 4}; auto [p, q] = pair; thread auto &[r, s] = pair; r = 9; out[0] = x; out[1] = n.y; out[2] = p + q; out[3] = pair[0] + s;",
    out: "float",
    threads: 1,
    expected: [2.5, 2, 7, 13],
  },
]);

statementSuite("braces", [
  {
    name: "constants that fit, and values of the same type, which do not narrow",
    before:
      "struct S { ushort a; half b; bool c; float2 v; uchar w[2]; }; constant int kN = 3; constexpr constant int kM = 4; constant float kF[2] = {0, kM}; constant uchar kC[] = {1, kM, 255}; enum E { A, B };",
    code: "const int n = 5; half h{1.5}, g = h; half p{h * g}, q{h * 2}, r{max(h, g)}; bfloat f{1.5f}; S s = {1, 2.5, i > 0, {1, n}, {kN, B}}; S t{}; t = {2, 0.1f, true, s.v, {200, sizeof(float)}}; uint u{n}; uchar z{kM}; float2 v{s.v.x, 1}; uint2 w = {u, i}; float x{0.1}, y[2] = {1, 2.5}; bool b{i > 3}; int m{b}; out[0] = p + q + r + half(f); out[1] = s.v.y + s.w[0] + s.w[1]; out[2] = t.w[0] + t.w[1] + t.a; out[3] = u + z + kF[1] + kC[2]; out[4] = v.x + w.x + y[1] + m; out[5] = x == 0.1f;",
    out: "float",
    threads: 1,
    expected: [8.25, 9, 206, 268, 8.5, 1],
  },
  {
    name: "nested aggregates with and without inner braces, and what is left out",
    before: "struct In { int a, b; float2 v; }; struct Out { In list[2]; int n; half4 h; };",
    code: "Out o = {{{1, 2, {3, 4}}, {5}}, 6}; Out p{{1, 2, float2(3), 4, 5, float2(6)}, 7, half4(8)}; Out z = {}; out[0] = o.list[0].v.y; out[1] = o.list[1].a + o.list[1].b; out[2] = o.n + float(o.h.w); out[3] = p.list[1].b; out[4] = p.n + float(p.h.z); out[5] = z.list[1].v.x + z.n;",
    out: "float",
    threads: 1,
    expected: [4, 5, 6, 5, 15, 0],
  },
  {
    name: "designators, in order, nested, and of unions",
    before:
      "union U { float f; uint u; }; struct In { int a; float2 v; }; struct S { In in; U u; int list[3]; bool on; };",
    code: "const S s = {.in = {.a = 1, .v = {2, 3}}, .u = {.f = 1}, .list = {4, 5}, .on = true}; const S t = {.list = {7}}; out[0] = s.in.v.y; out[1] = s.u.u >> 23; out[2] = s.list[1] + s.list[2] + s.on; out[3] = t.list[0] + t.in.a; const U w = {.u = 5}; out[4] = w.u;",
    out: "uint",
    threads: 1,
    expected: [3, 127, 6, 7, 5],
  },
  {
    name: "arrays of vectors, of arrays and of matrices",
    code: "const float3 v[] = {{1, 2, 3}, float3(4), {}}; int g[2][3] = {{1, 2}, {3}}; float2x2 m[2] = {float2x2(1), float2x2(float2(1, 2), float2(3, 4))}; half2 h[2]{{1, 2}, half2(3)}; out[0] = v[0].z + v[1].x + v[2].y; out[1] = sizeof(v) / sizeof(v[0]); out[2] = g[0][1] + g[1][0] + g[1][2]; out[3] = m[1][1].x + m[0][1][1]; out[4] = float(h[0].y + h[1].y);",
    out: "float",
    threads: 1,
    expected: [7, 3, 5, 4, 5],
  },
  {
    name: "defaults of members beside braces and constructors",
    before:
      "struct D { int a = 3; float2 v = {1, 2}; int list[2] = {4, 5}; }; struct E { D d; int n = 6; E() = default; E(int k) : n(k) { d.a = k; } }; struct F { int n{7}; float4 w{1, 2, 3, 4}; };",
    code: "D d; D e{9}; E f; E g(8); F h; const F m = {}; out[0] = d.a + d.list[1]; out[1] = e.a + e.v.y; out[2] = f.n + f.d.a; out[3] = g.n + g.d.a + g.d.v.x; out[4] = h.n + h.w.z + m.w.w;",
    out: "float",
    threads: 1,
    expected: [8, 11, 9, 17, 14],
  },
  {
    name: "braces for numbers, pointers, enumerations and results",
    before:
      "enum class E : uchar { a, b = 5 }; static E pick(bool x) { return x ? E{5} : E{}; } static int2 both(int x) { return {x, -x}; } static float none() { return {}; }",
    code: "int n{5}; const uint m = {7}; thread int *p{&n}; const device float *q{a}; *p += 1; float z{}; bool b{}; out[0] = n + m; out[1] = int(pick(true)) + int(pick(false)); out[2] = both(3).y; out[3] = int(q[0] * 2) + int(z) + b + int(none());",
    out: "int",
    threads: 1,
    inputs,
    expected: [13, 5, -3, 3],
  },
  {
    name: "vectors out of vectors, numbers and other types",
    code: "const int2 n(1, 2); const float4 v(1, float2(2, 3), 4); const float4 w = float4(float3(5), 6); float3 u = float3(n.x, v.zw); u = {u.z, u.y, u.x}; const uint3 s = uint3(float3(1.9f, 2.1f, 3)); half3 h(v.xyz); const float2 t(n); out[0] = v.z + w.w; out[1] = u.x; out[2] = s.x; out[3] = float(h.z); out[4] = t.y; out[5] = float4(v.xy, n.x, 0).z;",
    out: "float",
    threads: 1,
    expected: [9, 4, 1, 3, 2, 1],
  },
  {
    name: "assignment of braces to structs, elements and members in every memory",
    before: "struct P { int n; float2 v; };",
    code: "P p; p = {1, {2, 3}}; threadgroup P t; t = {4, {5, 6}}; t.v = {7, 8}; device P *d = (device P *)out; d[0] = {9, {10, 11}}; d->v = {p.v.y, t.v.y}; P list[2] = {p, t}; list[1] = {}; d[1] = {list[1].n, list[0].v}; d[1] = P{t.n, d[1].v};",
    out: "float",
    threads: 1,
    expected: [9 * 2 ** -149, 0, 3, 8, 4 * 2 ** -149, 0, 2, 3],
  },
  {
    name: "copies of structs with arrays, between memories, as values and results",
    before:
      "struct In { float v[3]; }; struct S { In in[2]; int n; }; static S changed(S s) { s.in[1].v[2] += 1; return s; }\nconstant S kS = {{{{1, 2, 3}}, {{4, 5, 6}}}, 7};",
    code: "S s = kS; s.n++; const S t = changed(s); threadgroup S g; g = t; g.in[0] = kS.in[1]; device S *d = (device S *)out; *d = g; d->in[1].v[0] = kS.in[0].v[1]; S back = *d; back = changed(back); d->in[1] = back.in[1]; out[6] = s.n + kS.n;",
    out: "float",
    threads: 1,
    expected: [4, 5, 6, 2, 5, 8, 15],
  },
]);

statementSuite("conditions", [
  {
    name: "structs of one memory and of several",
    before: "struct P { int n; float v; }; static P made(int n) { return {n, n * 0.5f}; }\nconstant P kP = {30, 3};",
    code: "const device P *d = (const device P *)a; threadgroup P t; t = {20, 2}; P mine = {10, 1}; const bool yes = d[0].n == 1, no = !yes; P r = yes ? mine : t; out[0] = r.n; r = no ? mine : d[0]; out[1] = r.n; const P c = yes ? kP : made(5); out[2] = c.n; out[3] = (no ? kP : t).n; out[4] = (yes ? d[1] : d[0]).n; out[5] = (no ? P{1, 1} : made(7)).n;",
    out: "int",
    threads: 1,
    inputs: [ints([1, 0, 2, 0])],
    expected: [10, 1, 30, 20, 2, 7],
  },
  {
    name: "structs with constructors and conversions",
    before:
      "struct C { float re, im; C(float r, float i = 0) : re(r), im(i) {} C operator*(C o) const { return C(re * o.re - im * o.im, re * o.im + im * o.re); } }; static C conj(C c) { return C(c.re, -c.im); }",
    code: "const C z(1, 2); const bool p = a[0] > 0; const C w = p ? z : C(9); const C u = !p ? z : conj(z); const C t = (p ? z * z : z) * u; out[0] = w.im; out[1] = u.im; out[2] = t.re; out[3] = t.im; out[4] = (p ? C(4) : conj(w)).re;",
    out: "float",
    threads: 1,
    inputs,
    // (1+2i)^2 (1-2i) = 5 (1+2i)
    expected: [2, -2, 5, 10, 4],
  },
  {
    name: "pointers, references and elements as arms and as targets",
    code: "int x = 1, y = 2; (i == 0 ? x : y) = 7; thread int *p = i == 0 ? &y : &x; *p += 10; device float *o = x > y ? out : out + 1; *o = x; const device float *q = i == 0 ? a + 2 : a; (x == 7 ? out[2] : out[3]) = *q; out[4] = y; int list[2] = {3, 4}; thread int &r = i ? list[0] : list[1]; r++; out[5] = list[1];",
    out: "float",
    threads: 1,
    inputs,
    expected: [0, 7, 3.25, 0, 12, 5],
  },
  {
    name: "vectors, swizzles, packed vectors and numbers of several types",
    code: "const float3 v(1, 2, 3); const packed_float3 p = packed_float3(4, 5, 6); const bool c = a[1] < 0; const float3 w = c ? v.zyx : float3(0); const float3 u = c ? float3(p) : v; const auto m = c ? 1 : 2.5f; const half h = c ? 1.5h : 2.0h; const float2 t = !c ? v.xy : 7.0f; out[0] = w.x; out[1] = u.y; out[2] = m; out[3] = float(h) + t.y; out[4] = (c ? v : w)[2]; out[5] = sizeof(c ? short(1) : char(2));",
    out: "float",
    threads: 1,
    inputs,
    expected: [3, 5, 1, 8.5, 3, 4],
  },
  {
    name: "chains, calls with effects and results of templates",
    before:
      "struct Item { int id; }; static Item bump(thread int &n, int id) { n++; return Item{id}; }\ntemplate <typename T> static T pick(bool c, T x, T y) { return c ? x : y; }\ntemplate <typename T> static T clamped(T x, T lo, T hi) { return x < lo ? lo : x > hi ? hi : x; }",
    code: "int n = 0; const Item r = i > 5 ? bump(n, 1) : i > 2 ? bump(n, 2) : bump(n, 3); out[0] = r.id; out[1] = n; out[2] = pick(n == 1, Item{5}, r).id; out[3] = pick(false, int3(1), int3(8)).y; out[4] = clamped(9, 1, 7); out[5] = clamped(-2.5f, -1.0f, 1.0f);",
    out: "int",
    threads: 1,
    expected: [3, 1, 5, 8, 7, -1],
  },
]);
