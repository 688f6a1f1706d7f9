/** Components of vectors as places: swizzles on the left, packed vectors, references to vectors, indices. */
import { floats, ints, range } from "./harness.ts";
import { statementSuite } from "./separate.ts";

const list = [1.5, -2, 3.25, 8];
const inputs = [floats(list)];

statementSuite("swizzles", [
  {
    name: "targets of assignment and compound assignment, of two to four components",
    code: "float4 v(1, 2, 3, 4); v.zx = float2(5, 6); v.wyx += float3(1, 2, 3); v.xyzw = v.wzyx; v.yw *= 2; out[i] = v[i];",
    out: "float",
    // (6, 2, 5, 4), then (9, 4, 5, 5), reversed (5, 5, 4, 9), then y and w doubled.
    expected: [5, 10, 4, 18],
  },
  {
    name: "swizzles of swizzles, and a single component of one",
    code: "float4 v(1, 2, 3, 4); v.wzyx.xy = float2(10, 20); v.yz.y += 1; v.xyz.zy.x *= 2; out[0] = v.z; out[1] = v.w; out[2] = v.wz.yx.x; out[3] = v.yyyy.zw.y;",
    out: "float",
    threads: 1,
    expected: [42, 10, 42, 2],
  },
  {
    name: "in device and threadgroup memory, by element, pointer and reference",
    code: "threadgroup float4 box[2]; device float4 *o = (device float4 *)out; box[0] = float4(1, 2, 3, 4); box[1].wzyx = box[0]; o[0].xz = box[1].xy; o->yw = box[0].yx; threadgroup float4 &r = box[1]; r.xy -= r.zw; o[1] = r; o[1].zw = o[0].wz; (*(o + 1)).x += 0.5;",
    out: "float",
    threads: 1,
    expected: [4, 2, 3, 1, 2.5, 2, 1, 3],
  },
  {
    name: "members of structs in arrays of every memory",
    before: "struct P { float3 at; half4 color; }; struct Q { P p[2]; };",
    code: "Q q = {}; q.p[1].at.xz = float2(1, 2); q.p[1].color.rgb = half3(3, 4, 5); q.p[0] = q.p[1]; q.p[0].color.ga += half2(1); threadgroup Q t; t = q; t.p[0].at.zyx = t.p[1].at; const half4 c = t.p[0].color.bgra; out[0] = t.p[0].at.x; out[1] = t.p[0].at.z; out[2] = float(c.x); out[3] = float(c.y + c.w);",
    out: "float",
    threads: 1,
    expected: [2, 1, 5, 6],
  },
  {
    name: "exchange of components in one statement, from itself",
    code: "int4 v(1, 2, 3, 4); v.xy = v.yx; v = v.zwxy; v.xyz = v.yzx; out[i] = v[i];",
    out: "int",
    // (2, 1, 3, 4), (3, 4, 2, 1), (4, 2, 3, 1).
    expected: [4, 2, 3, 1],
  },
  {
    name: "bit operations, shifts and increments of swizzles",
    code: "uint4 v(1, 2, 4, 8); v.xy <<= uint2(4, 3); v.zw |= 1; v.xw ^= 16; v.yz++; --v.wx; v.xyz &= 0xff; out[i] = v[i];",
    out: "uint",
    expected: [255, 17, 6, 24],
  },
  {
    name: "results of functions, of constructors and of matrices",
    before: "static float4 made(float x) { return float4(x, x + 1, x + 2, x + 3); }",
    code: "float3x3 m(1); m[1].xz = made(5).yw; m[2].y = made(1).zyx.x; out[0] = m[1].x + m[1].z; out[1] = m[2].yy.y; out[2] = float4(made(2).xy, made(7).zw).w; out[3] = (m * float3(1, 2, 3)).zyx.x;",
    out: "float",
    threads: 1,
    expected: [14, 3, 10, 2 * 8 + 3],
  },
  {
    name: "r, g, b, a beside x, y, z, w in templates over vectors",
    before:
      "template <typename V> static V flipped(V v) { V r = v; r.xy = v.yx; return r; } template <typename T> static void clear(thread vec<T, 4> &v) { v.rb = 0; }",
    code: "half4 h(1, 2, 3, 4); clear(h); out[0] = float(flipped(h).x); out[1] = flipped(short2(5, 6)).x; uchar4 c(255); clear(c); out[2] = c.a - c.b; out[3] = flipped(float3(7, 8, 9)).rg.y;",
    out: "float",
    threads: 1,
    expected: [2, 6, 255, 7],
  },
]);

statementSuite("vectorPlaces", [
  {
    name: "references to vectors, in arrays and in structs, that functions change",
    before:
      "struct S { float4 v[2]; }; static void add(thread float4 &v, float x) { v += x; v[1] = 0; } static void add(device float4 &v, float x) { v -= x; } static thread float4 &pick(thread S &s, int k) { return s.v[k]; }",
    code: "S s = {{float4(1), float4(2)}}; add(s.v[1], 5); pick(s, 0).z = 9; add(pick(s, 0), 1); device float4 &o = *(device float4 *)out; o = s.v[0]; add(o, 1); out[4] = s.v[1].x; out[5] = s.v[1].y;",
    out: "float",
    threads: 1,
    expected: [1, -1, 9, 1, 7, 0],
  },
  {
    name: "const references to components, and to what has to be converted",
    before:
      "static float next(const thread float &x) { return x + 1; } static int next(const thread short &x) { return x * 2; } template <typename T> static T twice(const thread T &x) { return x + x; }",
    code: "float4 v(1, 2, 3, 4); const thread float &x = v.z; out[0] = next(v.x) + next(v[3]); out[1] = twice(v.y) + x; out[2] = twice(v.xy).y; const short s = 7; out[3] = next(s); out[4] = next(2.5f); out[5] = twice(half2(1, 2)).y;",
    out: "float",
    threads: 1,
    expected: [7, 7, 4, 14, 3.5, 4],
  },
  {
    name: "components by an index that varies, on both sides",
    code: "float4 v(0); int3 n(1, 2, 3); v[i] = a[i]; v[(i + 1) & 3] += 1; n[i % 3] <<= 2; n[2 - i % 3] -= 1; v[i]++; out[i] = v[i] * 100 + v[(i + 1) & 3] + n[i % 3] + n[2 - i % 3];",
    out: "float",
    inputs,
    expected: list.map((x, i) => {
      const n = [1, 2, 3];
      n[i % 3] = (n[i % 3] ?? 0) * 4;
      n[2 - (i % 3)] = (n[2 - (i % 3)] ?? 0) - 1;
      return (x + 1) * 100 + 1 + (n[i % 3] ?? 0) + (n[2 - (i % 3)] ?? 0);
    }),
  },
  {
    name: "rows of memory as vectors of another width, and vectors as arrays of components",
    code: "const device float2 *p = (const device float2 *)a; float4 v(p[1], p[0]); thread float *c = (thread float *)&v; c[1] = 9; device float *o = (device float *)((device float4 *)out); o[0] = v.y; out[1] = c[3]; threadgroup float4 t[1]; threadgroup float *q = (threadgroup float *)t; q[2] = 7; out[2] = t[0].z; out[3] = reinterpret_cast<thread float2 *>(&v)[1].x;",
    out: "float",
    threads: 1,
    inputs,
    expected: [9, -2, 7, 1.5],
  },
  {
    name: "columns and elements of matrices as places",
    code: "float3x2 m(0); m[1] = float2(1, 2); m[2][0] = 3; m[0].yx = m[1]; m[1] += 10; m[2].xy++; device float2x2 *o = (device float2x2 *)out; o[0] = float2x2(m[0], m[1]); (*o)[1][1] -= 2; o[0][0].x *= 3; out[4] = m[2].x; thread float2 &c = m[2]; c = 8; out[5] = m[2][1];",
    out: "float",
    threads: 1,
    expected: [6, 1, 11, 10, 4, 8],
  },
]);

statementSuite("packedPlaces", [
  {
    name: "components, compound assignment and swizzles of packed vectors in memory",
    code: "device packed_float3 *p = (device packed_float3 *)out; p[0] = float3(1, 2, 3); p[1] = p[0] * 2; p[1].y += 5; p[0][2] = p[1].z; p[0].x = p[1].xyz.y; p[1] -= float3(1);",
    out: "float",
    threads: 1,
    expected: [9, 2, 6, 1, 8, 5],
  },
  {
    name: "packed vectors in structs of bytes, shorts and halves",
    before: "struct V { packed_uchar3 c; uchar n; packed_short3 s; packed_half4 h; };",
    code: "V v = {packed_uchar3(1, 2, 255), 4, short3(-5), half4(1, 2, 3, 4)}; v.c.z++; v.s.y *= 2; v.h = v.h.wzyx; const V w = v; device V *d = (device V *)(out + 4); d[0] = w; d->h[1] += 1; out[0] = sizeof(V); out[1] = d->c.z + d->n; out[2] = d->s[1]; out[3] = int(d->h.y + w.h.x);",
    out: "int",
    threads: 1,
    // The struct itself behind them: bytes, shorts of -5, -10 and -5, halves of 4, 4, 2 and 1.
    expected: [18, 4, -10, 8, 0x04000201, 0xfff6fffb | 0, 0x4400fffb, 0x40004400, 0x3c00],
  },
  {
    name: "packed vectors as arguments, results, in functions of the library and mixed with others",
    before:
      "static float3 unit(packed_float3 p) { return float3(p) / length(float3(p)); } static packed_float3 made(float3 v) { return packed_float3(v.zyx); } template <typename T> static float total(T v) { return v.x + v.y + v.z; }",
    code: "const packed_float3 p(0, 3, 4), q = made(float3(1, 2, 3)); out[0] = unit(p).z; out[1] = q.x; out[2] = dot(float3(p), float3(q)); out[3] = (float3(p) + q).y; out[4] = total(q); out[5] = total(float3(p) * 2 - q); float3 v = p; v += q; out[6] = v.x; const packed_float2 t = float2(a[0]); out[7] = t.y;",
    out: "float",
    threads: 1,
    inputs,
    ulps: 1,
    expected: [0.8, 3, 10, 5, 6, 8, 3, 1.5],
  },
  {
    name: "arrays of packed vectors by index and pointer in constant and threadgroup memory",
    before:
      "constant packed_float3 kCorners[] = {packed_float3(0, 1, 2), packed_float3(3, 4, 5)}; struct T { packed_int3 a[2]; };\nconstant T kT = {{packed_int3(1, 2, 3), packed_int3(4, 5, 6)}};",
    code: "threadgroup packed_int3 t[4]; t[i] = kT.a[i & 1]; t[i].y = i; threadgroup_barrier(mem_flags::mem_threadgroup); const threadgroup packed_int3 *p = t + (3 - i); constant packed_float3 *c = kCorners; out[i] = p->y * 100 + p->z + int(c[1].y + float3(kCorners[0]).z);",
    out: "int",
    expected: range(4, (i) => (3 - i) * 100 + ((3 - i) % 2 === 1 ? 6 : 3) + 6),
  },
  {
    name: "casts and comparisons of packed vectors",
    code: "const packed_int3 p(1, -2, 3); const packed_float3 f = packed_float3(float3(int3(p))); out[0] = int(f.y); out[1] = all(int3(p) == int3(1, -2, 3)); out[2] = any(float3(f) < 0); out[3] = as_type<uint>(float3(f).x) >> 23; out[4] = abs(int3(p)).y; const packed_uchar4 u(1, 2, 3, 4); out[5] = as_type<uint>(uchar4(u)) == 0x04030201u; out[6] = sizeof(p) + alignof(packed_float3);",
    out: "int",
    threads: 1,
    inputs: [ints([0])],
    expected: [-2, 1, 1, 127, 2, 1, 16],
  },
]);
