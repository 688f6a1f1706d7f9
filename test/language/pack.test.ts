/** `<metal_pack>`: normalised integers in the bits of an integer, worked out in float64; `uniform<T>`; direct initialisation. */
import { bitsOf, half, numberOf, roundToEven } from "./formats.ts";
import { type Case, floats, type Input, languageSuite, range, uints, words } from "./harness.ts";

/** The bits of `x` as a normalised integer of `bits` bits, signed or not. */
function quantized(x: number, bits: number, signed: boolean): number {
  const top = 2 ** (signed ? bits - 1 : bits) - 1;
  const clamped = Number.isNaN(x) ? 0 : Math.min(Math.max(x, signed ? -1 : 0), 1);
  // The product is rounded to float before it is rounded to an integer.
  return (roundToEven(Math.fround(clamped * top)) + 2 ** bits) % 2 ** bits;
}
function normalised(word: number, bits: number, signed: boolean): number {
  if (!signed) return word / (2 ** bits - 1);
  const value = word >= 2 ** (bits - 1) ? word - 2 ** bits : word;
  return Math.max(value / (2 ** (bits - 1) - 1), -1);
}
/** The transfer function of sRGB. */
const encodedSrgb = (x: number): number => (x < 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055);
const decodedSrgb = (x: number): number => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);

interface Packing {
  readonly name: string;
  /** Bits of each component, from the lowest on. */
  readonly bits: readonly number[];
  readonly signed?: boolean;
}
const packings: readonly Packing[] = [
  { name: "unorm4x8", bits: [8, 8, 8, 8] },
  { name: "snorm4x8", bits: [8, 8, 8, 8], signed: true },
  { name: "unorm2x16", bits: [16, 16] },
  { name: "snorm2x16", bits: [16, 16], signed: true },
  { name: "unorm10a2", bits: [10, 10, 10, 2] },
  { name: "unorm565", bits: [5, 6, 5] },
];
const values = [0, 1, -1, 0.5, 0.25, -0.25, 0.7, -0.003, 1.5, -7, 0.001, Number.NaN, 1 / 3, 2 / 3, 0.9999, -0.9];
const packed = [0, 0xffffffff, 0x80808080, 0x7f817f81, 0x12345678, 0xfedcba98, 0x80007fff, 0x40100401];

const cases: Case[] = packings.flatMap(({ name, bits, signed = false }): Case[] => {
  const n = bits.length;
  const word = (list: readonly number[]): number => {
    let shift = 0;
    return list.reduce((sum, x, k) => {
      const part = quantized(x, bits[k] ?? 0, signed) * 2 ** shift;
      shift += bits[k] ?? 0;
      return sum + part;
    }, 0);
  };
  const parts = (whole: number): number[] => {
    let rest = whole;
    return bits.map((count) => {
      const part = rest % 2 ** count;
      rest = (rest - part) / 2 ** count;
      return normalised(part, count, signed);
    });
  };
  const count = Math.floor(values.length / n);
  const groups = range(count, (k) => values.slice(k * n, k * n + n));
  const rounded = values.map((x) => bitsOf(half, x));
  const vector = (type: "float" | "half", from: Input): Case => ({
    name: `pack_${type}_to_${name}`,
    code: `${type}${n} v; for (uint k = 0; k < ${n}; ++k) { v[k] = a[${n} * i + k]; } out[i] = pack_${type}_to_${name}(v);`,
    out: "uint",
    inputs: [from],
    expected: (type === "float"
      ? groups
      : range(count, (k) => rounded.slice(k * n, k * n + n).map((x) => numberOf(half, x)))
    ).map(word),
  });
  return [
    vector("float", floats(values)),
    vector("half", words("half", rounded)),
    {
      name: `unpack_${name}_to_float`,
      code: `const float${n} v = unpack_${name}_to_float(a[i]); for (uint k = 0; k < ${n}; ++k) { out[${n} * i + k] = v[k]; }`,
      out: "float",
      threads: packed.length,
      inputs: [uints(packed)],
      expected: packed.flatMap(parts),
    },
    {
      name: `unpack_${name}_to_half`,
      code: `const half${n} v = unpack_${name}_to_half(a[i]); for (uint k = 0; k < ${n}; ++k) { out[${n} * i + k] = v[k]; }`,
      out: "half",
      threads: packed.length,
      inputs: [uints(packed)],
      expected: packed.flatMap(parts).map((x) => bitsOf(half, x)),
    },
  ];
});
cases.push(
  {
    name: "unpack_unorm4x8_srgb_to_float: alpha stays linear",
    code: "const float4 v = unpack_unorm4x8_srgb_to_float(a[i]); for (uint k = 0; k < 4; ++k) { out[4 * i + k] = v[k]; }",
    out: "float",
    threads: 256,
    inputs: [uints(range(256, (k) => k * 0x01010101))],
    ulps: 16,
    expected: range(256, (k) => k / 255).flatMap((x) => [decodedSrgb(x), decodedSrgb(x), decodedSrgb(x), x]),
  },
  {
    name: "pack_float_to_srgb_unorm4x8 gives every byte back",
    code: "const float x = a[i]; out[i] = pack_float_to_srgb_unorm4x8(float4(x, x, x, float(i) / 255.0f));",
    out: "uint",
    inputs: [floats(range(256, (k) => decodedSrgb(k / 255)))],
    expected: range(256, (k) => k * 0x01010101),
  },
  {
    name: "pack_half_to_srgb_unorm4x8 and back to half",
    code: "const half4 v = half4(0.0h, 0.5h, 1.0h, 0.5h); out[0] = pack_half_to_srgb_unorm4x8(v); out[1] = unpack_unorm4x8_srgb_to_half(out[0]).z == 1.0h;",
    out: "uint",
    threads: 1,
    expected: [((128 * 256 + 255) * 256 + Math.round(encodedSrgb(0.5) * 255)) * 256, 1],
  },
  {
    name: "uniform<T> reads as a T",
    code: "const uniform<uint> n = make_uniform(3u); uniform<float> f = 0.5f; out[i] = n + uint(f * 4.0f) + i;",
    out: "uint",
    expected: [5, 6],
  },
);
languageSuite("pack", "#include <metal_pack>\n#include <metal_uniform>", cases);

languageSuite(
  "direct_initialisation",
  `struct Plane { float4 both; half2 few; Plane(float3 n, float d) : both(n, d), few(d, 1.0h) {} };
float4 prototype(float3);
float4 prototype(float3 v) { return float4(v, 1); }
template <typename T> T last(T x) { T copy(x); vec<T, 4> v(x, x, x, copy); metal::vec<T, 2> w(v.zw); return v.w + w.y; }`,
  [
    {
      name: "vectors from parts in parentheses: locals, constants, several in one declaration, members, templates",
      code: `float3 q(1.0f), z(a[0], 2, 3); float4 x(q, 4.0f), y(z.xy, z.yx); const uint2 g(i, i + 7); half4 h(half3(z), 0.5h); int3 n(z); bool2 b(true, false), c(z.xy > 4.0f);
        const Plane plane(z, 9); float2 w(x.w, float(g.y)); uchar2 u(z.zy); const float4 p(prototype(z)); float f(2.5f);
        out[0] = x.x + x.w; out[1] = y.x; out[2] = y.w; out[3] = w.x + w.y; out[4] = float(h.w) + float(h.x); out[5] = n.z; out[6] = b.x * 2 + b.y; out[7] = plane.both.w + plane.both.x;
        out[8] = u.x; out[9] = p.w + p.x; out[10] = last(2.0f) + f; out[11] = float(plane.few.y) + float(plane.few.x); out[12] = c.x * 2 + c.y;`,
      out: "float",
      threads: 1,
      inputs: [floats([5])],
      expected: [5, 5, 5, 11, 5.5, 3, 2, 14, 3, 6, 6.5, 10, 2],
    },
  ],
);
