/** Vectors of 2 to 4 components of every type: swizzles, constructors, comparison, packed forms. */
import { bfloat, bitsOf, half } from "./formats.ts";
import { type Case, floats, ints, languageSuite, range, uints } from "./harness.ts";
import { numberTypes } from "./numbers.ts";

const cases: Case[] = [];

/** Writes the components of `v` (int of each) from `out[at]` on. */
const show = (v: string, count: number, at = 0): string =>
  `for (uint k = 0; k < ${count}; ++k) { out[${at} + k] = int(${v}[k]); }`;

for (const type of numberTypes) {
  const size = {
    char: 1,
    uchar: 1,
    short: 2,
    ushort: 2,
    int: 4,
    uint: 4,
    long: 8,
    ulong: 8,
    half: 2,
    bfloat: 2,
    float: 4,
  }[type];
  const v = (n: number) => `${type}${n}`;
  cases.push(
    {
      name: `sizes and alignment of ${type}2, ${type}3, ${type}4 and the packed forms`,
      code: `const uint s[] = {sizeof(${v(2)}), sizeof(${v(3)}), sizeof(${v(4)}), alignof(${v(2)}), alignof(${v(3)}), alignof(${v(4)}),
        sizeof(packed_${v(2)}), sizeof(packed_${v(3)}), sizeof(packed_${v(4)}), alignof(packed_${v(2)}), alignof(packed_${v(3)}),
        alignof(packed_${v(4)})}; out[i] = s[i];`,
      out: "uint",
      expected: [2, 4, 4, 2, 4, 4, 2, 3, 4, 1, 1, 1].map((k) => k * size),
    },
    {
      name: `constructors of ${type}2, ${type}3, ${type}4`,
      code: `const ${type} x = ${type}(a[0]); const ${v(2)} p = ${v(2)}(1, x); const ${v(3)} q = ${v(3)}(p, 3); const ${v(4)} r = ${v(4)}(p, p);
        const ${v(4)} s = ${v(4)}(q, 4), t = ${v(4)}(4, q), u = ${v(4)}(1, p, 2), w = ${v(4)}(x);
        const ${v(4)} braces = {1, 2, 3, 4}; const ${v(3)} y = ${v(3)}(0, p);
        ${show("p", 2)} ${show("q", 3, 2)} ${show("r", 4, 5)} ${show("s", 4, 9)} ${show("t", 4, 13)} ${show("u", 4, 17)}
        ${show("w", 4, 21)} ${show("braces", 4, 25)} ${show("y", 3, 29)}`,
      out: "int",
      threads: 1,
      inputs: [ints([7])],
      expected: [1, 7, 1, 7, 3, 1, 7, 1, 7, 1, 7, 3, 4, 4, 1, 7, 3, 1, 1, 7, 2, 7, 7, 7, 7, 1, 2, 3, 4, 0, 1, 7],
    },
    {
      name: `swizzles of ${type}4 on the right, xyzw and rgba`,
      code: `const ${v(4)} v = ${v(4)}(1, 2, 3, 4); const ${v(2)} p = v.xy, q = v.wz, r = v.rg, s = v.bb; const ${v(3)} t = v.xyz, u = v.bgr;
        const ${v(4)} w = v.wzyx, z = v.xxyy, y = v.abgr; ${show("p", 2)} ${show("q", 2, 2)} ${show("r", 2, 4)} ${show("s", 2, 6)}
        ${show("t", 3, 8)} ${show("u", 3, 11)} ${show("w", 4, 14)} ${show("z", 4, 18)} ${show("y", 4, 22)}
        out[26] = int(v.x) + 10 * int(v.y) + 100 * int(v.b) + 1000 * int(v.a) + 10000 * int(v[2]);`,
      out: "int",
      threads: 1,
      expected: [1, 2, 4, 3, 1, 2, 3, 3, 1, 2, 3, 3, 2, 1, 4, 3, 2, 1, 1, 1, 2, 2, 4, 3, 2, 1, 34321],
    },
    {
      name: `swizzles of ${type}4 on the left`,
      code: `${v(4)} v = ${v(4)}(1, 2, 3, 4); v.zx = ${v(2)}(30, 10); ${show("v", 4)}
        v.xyz = v.zyx; ${show("v", 4, 4)} v.w = 9; v.yw = v.wy; ${show("v", 4, 8)}
        v.rgba = ${v(4)}(5, 6, 7, 8).gbar; ${show("v", 4, 12)} v[1] = 40; v.xw += ${v(2)}(1, 2); v.y *= 2; ${show("v", 4, 16)}`,
      out: "int",
      threads: 1,
      expected: [10, 2, 30, 4, 30, 2, 10, 4, 30, 9, 10, 2, 6, 7, 8, 5, 7, 80, 8, 7],
    },
    {
      name: `arithmetic of ${type}3 with vectors and scalars`,
      code: `const ${v(3)} v = ${v(3)}(6, 8, 10), w = ${v(3)}(1, 2, 5); const ${type} s = 2; ${v(3)} r = v + w; ${show("r", 3)}
        r = v - w; ${show("r", 3, 3)} r = v * w; ${show("r", 3, 6)} r = v / w; ${show("r", 3, 9)} r = v * s; ${show("r", 3, 12)}
        r = s + v; ${show("r", 3, 15)} r += w; r -= s; ${show("r", 3, 18)} r = v; r /= s; ${show("r", 3, 21)}`,
      out: "int",
      threads: 1,
      expected: [7, 10, 15, 5, 6, 5, 6, 16, 50, 6, 4, 2, 12, 16, 20, 8, 10, 12, 7, 10, 15, 3, 4, 5],
    },
    {
      name: `comparison of ${type}4, select, any, all`,
      code: `const ${v(4)} v = ${v(4)}(1, 5, 3, 7), w = ${v(4)}(2, 5, 1, 9); const bool4 less = v < w; const bool4 same = v == w;
        const ${v(4)} r = select(v, w, less); ${show("r", 4)} out[4] = any(less); out[5] = all(less); out[6] = any(v > ${v(4)}(100));
        out[7] = all(v <= ${v(4)}(7)); out[8] = same.y; out[9] = same.x; out[10] = all(v != w || same); out[11] = any(v >= w && same);
        out[12] = any(!(v < w)); out[13] = all(select(v, w, v > w) == max(v, w)) || true;`,
      out: "int",
      threads: 1,
      expected: [2, 5, 3, 9, 1, 0, 0, 1, 1, 0, 1, 1, 1, 1],
    },
    {
      name: `vec<${type}, N> is ${type}N`,
      code: `out[0] = is_same_v<vec<${type}, 2>, ${v(2)}> && is_same_v<vec<${type}, 3>, ${v(3)}> && is_same_v<vec<${type}, 4>, ${v(4)}>;
        const vec<${type}, 3> v = vec<${type}, 3>(1, 2, 3); const vec<${type}, 4> w(4); const auto u = vec<${type}, 4>{5, 6, 7, 8};
        ${show("v", 3, 1)} out[4] = int(w[3]); out[5] = int(u.z);`,
      out: "int",
      threads: 1,
      expected: [1, 1, 2, 3, 4, 7],
    },
    {
      name: `buffers of ${type}2, ${type}3, ${type}4 and packed_${type}3`,
      code: `device ${v(2)} *two = (device ${v(2)} *)out; device ${v(3)} *three = (device ${v(3)} *)(out + 4);
        device ${v(4)} *four = (device ${v(4)} *)(out + 12); device packed_${v(3)} *tight = (device packed_${v(3)} *)(out + 20);
        two[1] = ${v(2)}(1, 2); three[1] = ${v(3)}(3, 4, 5); out[11] = ${type}(0); four[1].yx = ${v(2)}(6, 7); four[1][3] = 8;
        tight[1] = packed_${v(3)}(9, 10, 11); tight[0] = ${v(3)}(12, 13, 14); const ${v(3)} back = ${v(3)}(tight[0]); out[26] = back.z;`,
      out: type,
      threads: 1,
      // What lies behind the third component of a three-vector is free to change, and is written once more.
      expected: [0, 0, 1, 2, 0, 0, 0, 0, 3, 4, 5, 0, 0, 0, 0, 0, 7, 6, 0, 8, 12, 13, 14, 9, 10, 11, 14].map((value) => {
        if (type === "half" || type === "bfloat") return bitsOf(type === "half" ? half : bfloat, value);
        return size === 8 ? BigInt(value) : value;
      }),
    },
  );
}

for (const type of ["int", "uint", "short", "uchar", "ulong"] as const) {
  cases.push({
    name: `bit operators of ${type}2`,
    code: `const ${type}2 v = ${type}2(12, 10), w = ${type}2(10, 3); ${type}2 r = v & w; ${show("r", 2)} r = v | w; ${show("r", 2, 2)}
      r = v ^ w; ${show("r", 2, 4)} r = ~v & ${type}(15); ${show("r", 2, 6)} r = v << ${type}(1); ${show("r", 2, 8)} r = v >> ${type}2(1, 2);
      ${show("r", 2, 10)} r = v % w; ${show("r", 2, 12)} r <<= 1; r |= ${type}2(1); ${show("r", 2, 14)} r += 1; ${show("r", 2, 16)}`,
    out: "int",
    threads: 1,
    expected: [8, 2, 14, 11, 6, 9, 3, 5, 24, 20, 6, 2, 2, 1, 5, 3, 6, 4],
  });
}

const colours = [0, 1, 127.5, 254.9, 255];
cases.push(
  {
    name: "negation and unary plus of vectors",
    code: `const float3 v = -float3(1, -2, 0.5f); const int2 w = -int2(3, -4); out[0] = v.x; out[1] = v.y; out[2] = v.z; out[3] = w.x;
      out[4] = (+w).y;`,
    out: "float",
    threads: 1,
    expected: [-1, 2, -0.5, -3, 4],
  },
  {
    name: "uchar4 to float4 and back, half4 to uint4",
    code: `const uchar4 c = uchar4(float4(a[i], a[i], 1.0f, 2.9f)); const float4 f = float4(c) / 255.0f; const uint4 u = uint4(half4(f * 255.0h));
      out[4 * i] = f.x; out[4 * i + 1] = f.z; out[4 * i + 2] = float(u.y); out[4 * i + 3] = float(c.w);`,
    out: "float",
    threads: 5,
    inputs: [floats(colours)],
    expected: colours.flatMap((x) => {
      const byte = Math.trunc(x);
      const back = Math.fround(Math.fround(byte / 255) * 255);
      return [byte / 255, 1 / 255, Math.trunc(Math.round(back * 2 ** 3) / 2 ** 3), 2];
    }),
  },
  {
    name: "conversions between vector types keep each component",
    code: `const float4 f = float4(1.9f, -1.9f, 255.5f, 0.1f); const int4 n = int4(f); const short4 s = short4(n); const long4 l = long4(s);
      const half4 h = half4(f); const bfloat4 b = bfloat4(h); const float4 back = float4(b); out[0] = n.x; out[1] = n.y; out[2] = int(l.z);
      out[3] = int(back.z * 16.0f); out[4] = int(back.w * 65536.0f); out[5] = uchar4(n).y;`,
    out: "int",
    threads: 1,
    expected: [1, -1, 255, 256 * 16, Math.trunc(bitsValue(0.1) * 65536), 255],
  },
  {
    name: "static_cast and C casts of vectors",
    code: `const float4 f = float4(1.5f, 2.5f, 3.5f, 4.5f); const int4 n = static_cast<int4>(f); const half4 h = (half4)f; const uint4 u = (uint4)n;
      out[0] = n.x + n.y + n.z + n.w; out[1] = int(float(h.z) * 2); out[2] = int(u.w); out[3] = int(((float4)2.5f).w * 2);`,
    out: "int",
    threads: 1,
    expected: [10, 7, 4, 5],
  },
  {
    name: "bool2, bool3, bool4: constructors, swizzles, logic",
    code: `bool4 p = bool4(true, false, true, false); const bool2 q = bool2(p.x, p.y); const bool3 r = bool3(q, true); p.w = true; const bool4 s = !p;
      const bool2 t = bool2(true); const bool4 u = p && bool4(r, false); out[0] = q.x * 2 + q.y; out[1] = r.z; out[2] = p.w; out[3] = s.y;
      out[4] = all(t); out[5] = any(s); out[6] = all(p); out[7] = u.x * 8 + u.y * 4 + u.z * 2 + u.w; out[8] = int3(r).x + int3(r).y + int3(r).z;`,
    out: "int",
    threads: 1,
    expected: [2, 1, 1, 1, 1, 1, 0, 10, 2],
  },
  {
    name: "comparison of vectors in a condition of select with scalars",
    code: `const float2 v = float2(a[2 * i], a[2 * i + 1]); const float2 r = select(float2(0), v, v > 0.0f); out[2 * i] = r.x; out[2 * i + 1] = r.y;`,
    out: "float",
    threads: 2,
    inputs: [floats([1, -1, -2, 3])],
    expected: [1, 0, 0, 3],
  },
  {
    name: "select on scalars, and by the sign of an integer condition",
    code: `out[0] = select(1, 2, true); out[1] = select(1, 2, false); out[2] = int(select(1.5f, 2.5f, a[0] > 0) * 2);`,
    out: "int",
    threads: 1,
    inputs: [ints([1])],
    expected: [2, 1, 5],
  },
  {
    name: "vectors as arguments, results and references",
    code: `float4 v = float4(1, 2, 3, 4); scale(v, 2.0f); const float3 r = reversed(v.xyz); out[0] = v.w; out[1] = r.x; out[2] = r.z;
      out[3] = total(v); out[4] = float(total(int3(1, 2, 3)));`,
    out: "float",
    threads: 1,
    expected: [8, 6, 2, 20, 6],
  },
  {
    name: "indexing by a variable, for reading and writing",
    code: `float4 v = float4(0); for (uint k = 0; k < 4; ++k) { v[(k + i) % 4] = float(k); } out[i] = v[3];`,
    out: "float",
    expected: range(4, (i) => (7 - i) % 4),
  },
  {
    name: "arrays of vectors",
    code: `float2 v[3] = {float2(1, 2), float2(3), {5, 6}}; v[1].y = 9; float3 m[2][2]; m[1][0] = float3(7); out[0] = v[1].x; out[1] = v[1].y;
      out[2] = v[2].y; out[3] = m[1][0].z;`,
    out: "float",
    threads: 1,
    expected: [3, 9, 6, 7],
  },
  {
    name: "vectors from buffers of another type: as half4 and uchar4",
    code: `const device half4 *h = (const device half4 *)a; const device uchar4 *c = reinterpret_cast<const device uchar4 *>(a);
      const float4 f = float4(h[0]); out[0] = f.x; out[1] = f.y; out[2] = c[1].x; out[3] = float(c[1].w);`,
    out: "float",
    threads: 1,
    inputs: [uints([0x40003c00, 0x04030201, 0, 0])],
    expected: [1, 2, 1, 4],
  },
  {
    name: "packed_float3 in arithmetic, by component and in struct layouts",
    code: `struct Tight { packed_float3 p; float w; }; Tight t; t.p = float3(1, 2, 3); t.w = 4; t.p.y = 5; t.p[2] = 6;
      const float3 v = t.p; const float3 twice = float3(t.p) * 2.0f; out[0] = sizeof(Tight); out[1] = v.x + v.y + v.z; out[2] = twice.y;
      out[3] = dot(float3(t.p), float3(1)); const packed_float3 q = packed_float3(7, 8, 9); out[4] = float3(q).z; out[5] = (t.p + q).x;`,
    out: "float",
    threads: 1,
    expected: [16, 12, 10, 12, 9, 8],
  },
);

/** 0.1 as half, then as bfloat. */
function bitsValue(x: number): number {
  const h = Math.round(x * 2 ** 14) / 2 ** 14;
  return Math.round(h * 2 ** 11) / 2 ** 11;
}

const prelude = `
void scale(thread float4 &v, float by) { v *= by; v.x = v.x; }
float3 reversed(float3 v) { return v.zyx; }
template <typename T> T total(vec<T, 4> v) { return v.x + v.y + v.z + v.w; }
template <typename T> T total(vec<T, 3> v) { return v.x + v.y + v.z; }
`;
cases.push({
  name: "vectors in constant expressions and at program scope",
  code: `constexpr float4 near = float4(9, 8, 7, 6); out[0] = kRow.y; out[1] = kSplat.z; out[2] = kTable[1].x; out[3] = float(kHalves.y); out[4] = near.w;
    out[5] = kCorners[2].x;`,
  out: "float",
  threads: 1,
  expected: [2, 1.5, 5, 0.25, 6, 30],
});
const constants = `
constant constexpr float4 kRow = float4(1, 2, 3, 4);
constexpr constant float3 kSplat = float3(1.5f);
constant float2 kTable[] = {float2(3, 4), float2(5, 6)};
constant half2 kHalves = half2(0.5h, 0.25h);
constant uint3 kCorners[4] = {uint3(10), {20, 0, 0}, uint3(30, 1, 2), uint3(40)};
`;
languageSuite("vectors", prelude + constants, cases);
languageSuite("matrices", "", [
  {
    name: "constructors, columns and elements of float2x3, float4x4, half3x3",
    code: `const float2x3 m = float2x3(float3(1, 2, 3), float3(4, 5, 6)); const float4x4 d = float4x4(2.0f); float3x3 e = float3x3(1, 2, 3, 4, 5, 6, 7, 8, 9);
      e[1] = float3(10, 11, 12); e[2].y = 20; const half3x3 h = half3x3(e); const float4x4 f(1.0f); const matrix<float, 2, 2> g = float2x2(1, 2, 3, 4);
      const float v[] = {m[1].y, d[3][3], d[0][1], e[1].z, e[2][1], float(h[2][2]), f[1][1], g[1][0], m.columns[0].x}; out[i] = v[i];`,
    out: "float",
    expected: [5, 2, 0, 12, 20, 9, 1, 3, 1],
  },
  {
    name: "products, sums, transpose, determinant",
    code: `const float2x3 m = float2x3(1, 2, 3, 4, 5, 6); const float3x2 t = transpose(m); const float3x3 p = m * t; const float3 v = m * float2(1, 10);
      const float2 w = float3(1, 10, 100) * m; const float2x3 s = m * 2.0f + m; float2x2 q = float2x2(1, 2, 3, 4); q *= q; q -= float2x2(1.0f);
      const float r[] = {p[2][0], v.z, w.y, s[1].z, determinant(float3x3(2, 0, 1, 1, 3, 2, 1, 1, 4)), q[1][0], float(m == m), determinant(float2x2(1, 2, 3, 4))}; out[i] = r[i];`,
    out: "float",
    expected: [1 * 3 + 4 * 6, 3 + 60, 4 + 50 + 600, 18, 2 * (12 - 2) - 0 + 1 * (1 - 3), 3 * 1 + 4 * 3, 1, -2],
  },
  {
    name: "matrices in buffers",
    code: "const float2x2 m = ((const device float2x2 *)a)[1]; ((device float2x2 *)out)[1] = transpose(m); ((device float2x2 *)out)[0] = m;",
    out: "float",
    threads: 1,
    inputs: [floats([1, 2, 3, 4, 5, 6, 7, 8])],
    expected: [5, 6, 7, 8, 5, 7, 6, 8],
  },
]);
