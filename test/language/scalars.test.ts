/** Scalar types: sizes, arithmetic that wraps, conversions, `as_type`, limits. */
import { bfloat, bitsOf, half, numberOf } from "./formats.ts";
import { type Case, type Element, floats, ints, languageSuite, range, uints } from "./harness.ts";

const { POSITIVE_INFINITY: infinity, NaN: nan } = Number;

/** Integer types by their width and sign. */
const integers: readonly (readonly [Element, number, boolean])[] = [
  ["char", 8, true],
  ["uchar", 8, false],
  ["short", 16, true],
  ["ushort", 16, false],
  ["int", 32, true],
  ["uint", 32, false],
  ["long", 64, true],
  ["ulong", 64, false],
];
const wrap = (bits: number, signed: boolean, x: bigint): bigint =>
  signed ? BigInt.asIntN(bits, x) : BigInt.asUintN(bits, x);
/** As an element of a buffer: 64-bit types hold bigint, the others number. */
const element = (bits: number, x: bigint): number | bigint => (bits === 64 ? x : Number(x));

const cases: Case[] = [
  {
    name: "sizes of the scalar types",
    code: `const uint sizes[] = {sizeof(bool), sizeof(char), sizeof(uchar), sizeof(short), sizeof(ushort), sizeof(int),
      sizeof(uint), sizeof(long), sizeof(ulong), sizeof(half), sizeof(bfloat), sizeof(float), sizeof(size_t),
      sizeof(ptrdiff_t), sizeof(int8_t), sizeof(uint8_t), sizeof(int16_t), sizeof(uint16_t), sizeof(int32_t),
      sizeof(uint32_t), sizeof(int64_t), sizeof(uint64_t)};
      out[i] = sizes[i];`,
    out: "uint",
    expected: [1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 1, 1, 2, 2, 4, 4, 8, 8],
  },
  {
    name: "unsigned char, unsigned short, unsigned int and unsigned long",
    code: `const unsigned char c = 255; const unsigned short s = 65535; const unsigned int n = 7; unsigned u = 9;
      const unsigned long l = 1ul << 40; out[i] = c + s + n + u + uint(l >> 40);`,
    out: "uint",
    expected: [255 + 65535 + 7 + 9 + 1],
  },
  {
    name: "literals: 1.5h, 1.5f, 0x1p-3f, 10u, 'a', true",
    code: `const half h = 1.5h; const half g = 0.25h; const float f = 1.5f + 0x1p-3f + 2.F;
      out[i] = float(h) + float(g) + f + float(10u) + float('a') + float(true);`,
    out: "float",
    expected: [1.5 + 0.25 + 1.5 + 0.125 + 2 + 10 + 97 + 1],
  },
  {
    name: "bool from numbers and back",
    code: "const bool p = a[i]; const bool q = bool(b[i]); out[i] = int(p) * 2 + q;",
    out: "int",
    inputs: [floats([0, -0, 0.5, nan, infinity]), ints([0, 1, -1, 256, 0])],
    expected: [0, 1, 3, 3, 2],
  },
  {
    name: "float to int truncates",
    code: "out[i] = int(a[i]);",
    out: "int",
    inputs: [floats([1.9, -1.9, 0.5, -0.5, 2147483520, -2147483648, 16777217])],
    expected: [1, -1, 0, 0, 2147483520, -2147483648, 16777216],
  },
  {
    name: "float to uchar, short, ushort, uint and long truncates",
    code: `out[i] = i == 0 ? long(uchar(a[i])) : i == 1 ? long(short(a[i])) : i == 2 ? long(ushort(a[i]))
      : i == 3 ? long(uint(a[i])) : long(a[i]);`,
    out: "long",
    inputs: [floats([255.9, -32768.5, 65535.5, 4294967040, -(2 ** 62)])],
    expected: [255n, -32768n, 65535n, 4294967040n, -(2n ** 62n)],
  },
  {
    name: "int, uint and long to float rounds to nearest even",
    code: "out[i] = i < 4 ? float(int(a[i])) : i < 6 ? float(uint(a[i])) : float(a[i]);",
    out: "float",
    inputs: [
      {
        type: "long",
        values: [16777217n, 16777219n, -16777217n, 2147483647n, 4294967295n, 4294967167n, 9007199791611905n],
      },
    ],
    expected: [16777216, 16777220, -16777216, 2147483648, 4294967296, 4294967040, 2 ** 53 + 2 ** 30],
  },
  {
    name: "as_type between float, int and uint",
    code: "out[i] = as_type<uint>(a[i]) ^ uint(as_type<int>(a[i])) ^ as_type<uint>(as_type<float>(as_type<uint>(a[i])));",
    out: "uint",
    inputs: [floats([1, -0, infinity, 0.1])],
    expected: [0x3f800000, 0x80000000, 0x7f800000, 0x3dcccccd],
  },
  {
    name: "as_type of vectors: half2 and uint, uchar4 and uint, float2 and ulong",
    code: `const uint u = as_type<uint>(half2(1.0h, -2.0h)); const uchar4 c = as_type<uchar4>(0x04030201u);
      const ulong l = as_type<ulong>(float2(1.0f, 2.0f)); const ushort s = as_type<ushort>(bfloat(1.0f));
      out[0] = u; out[1] = c.x + 10 * c.y + 100 * c.z + 1000 * c.w; out[2] = uint(l >> 32); out[3] = s;
      out[4] = as_type<uint>(short2(1, -1)); out[5] = uint(as_type<half2>(0x40003c00u).y);`,
    out: "uint",
    threads: 1,
    expected: [0xc0003c00, 4321, 0x40000000, 0x3f80, 0xffff0001, 2],
  },
  {
    name: "shifts of negative numbers keep the sign, of unsigned ones do not",
    code: "out[0] = a[0] >> 3; out[1] = int(uint(a[0]) >> 28); out[2] = short(a[0]) >> 1; out[3] = 1 << 31;",
    out: "int",
    threads: 1,
    inputs: [ints([-64])],
    expected: [-8, 15, -32, -2147483648],
  },
  {
    name: "integer division and remainder truncate toward zero",
    code: "out[2 * i] = a[i] / b[i]; out[2 * i + 1] = a[i] % b[i];",
    out: "int",
    threads: 4,
    inputs: [ints([7, -7, 7, -7]), ints([2, 2, -2, -2])],
    expected: [3, 1, -3, -1, -3, 1, 3, -1],
  },
  {
    name: "small integers promote to int in arithmetic",
    code: "const uchar x = uchar(a[i]); const uchar y = 200; out[i] = x + y; ",
    out: "int",
    inputs: [uints([100, 255])],
    expected: [300, 455],
  },
  {
    name: "comparison of int with uint is unsigned",
    code: "const int x = a[i]; const uint y = 1u; out[i] = uint(x) < y;",
    out: "int",
    inputs: [ints([-1, 0, 1])],
    expected: [0, 1, 0],
  },
  {
    name: "subnormal floats keep their values",
    code: "out[i] = a[i] * b[i];",
    out: "float",
    inputs: [floats([2 ** -149, 2 ** -127, 2 ** -126, -(2 ** -149)]), floats([1, 2, 0.5, 3])],
    expected: [2 ** -149, 2 ** -126, 2 ** -127, -3 * 2 ** -149],
  },
  {
    name: "float arithmetic rounds every operation (no contraction)",
    code: "const float p = a[i] * b[i]; out[i] = p + c[i];",
    out: "float",
    inputs: [floats([1 + 2 ** -23, 3]), floats([1 - 2 ** -23, 1 / 3]), floats([-1, -1])],
    expected: [0, Math.fround(Math.fround(3 * Math.fround(1 / 3)) - 1)],
  },
  {
    name: "division of floats is correctly rounded, by zero too",
    code: "out[i] = a[i] / b[i];",
    out: "float",
    inputs: [floats([1, 2, 1, -1, 0, infinity]), floats([3, 7, 0, 0, 0, infinity])],
    expected: [1 / 3, 2 / 7, infinity, -infinity, nan, nan],
  },
  {
    name: "char is signed",
    code: "const char x = char(a[i]); out[i] = int(x);",
    out: "int",
    inputs: [uints([127, 128, 255])],
    expected: [127, -128, -1],
  },
  {
    name: "ternary, comma, compound assignment, increments",
    code: `int x = a[i]; x += 3; x -= 1; x *= 2; x /= 3; x %= 7; x <<= 3; x >>= 1; x |= 8; x &= 13; x ^= 2;
      const int y = x++; const int z = --x; out[i] = (x = z, y == z) ? x : -1;`,
    out: "int",
    inputs: [ints([5, 100])],
    expected: [5, 100].map((start) => {
      let x = Math.trunc(((start + 3 - 1) * 2) / 3) % 7;
      x = ((x << 3) >> 1) | 8;
      return (x & 13) ^ 2;
    }),
  },
  {
    name: "switch, do, while, break, continue",
    code: `int x = 0; do { ++x; } while (x < int(i)); while (true) { if (x > 10) break; x += 4; if (x % 2) continue; x += 1; }
      switch (i) { case 0: x += 100; break; case 1: x += 200; default: x += 1000; } out[i] = x;`,
    out: "int",
    expected: range(3, (i) => {
      let x = Math.max(1, i);
      while (x <= 10) {
        x += 4;
        if (x % 2 === 0) x += 1;
      }
      return x + (i === 0 ? 100 : i === 1 ? 1200 : 1000);
    }),
  },
];

for (const [type, bits, signed] of integers) {
  const top = wrap(bits, signed, signed ? 2n ** BigInt(bits - 1) - 1n : 2n ** BigInt(bits) - 1n);
  const low = signed ? -(2n ** BigInt(bits - 1)) : 0n;
  const at = (x: bigint) => element(bits, wrap(bits, signed, x));
  const unsigned = (bits === 64 ? "ulong" : bits === 32 ? "uint" : bits === 16 ? "ushort" : "uchar") satisfies Element;
  cases.push(
    {
      name: `${type} wraps in unsigned arithmetic`,
      code: `const ${unsigned} x = ${unsigned}(a[0]), y = ${unsigned}(a[1]);
        out[0] = ${type}(${unsigned}(x + 1)); out[1] = ${type}(${unsigned}(y - 1)); out[2] = ${type}(${unsigned}(x * 3u));
        out[3] = ${type}(~x); out[4] = ${type}(${unsigned}(0) - x);`,
      out: type,
      threads: 1,
      inputs: [{ type, values: [element(bits, top), element(bits, low)] }],
      expected: [at(top + 1n), at(low - 1n), at(top * 3n), at(~top), at(-top)],
    },
    {
      name: `long to ${type} keeps the low bits`,
      code: `out[i] = ${type}(a[i]);`,
      out: type,
      inputs: [{ type: "long", values: [-1n, 0x123456789abcdefn, -0x7edcba9876543211n, 128n, 65535n] }],
      expected: [-1n, 0x123456789abcdefn, -0x7edcba9876543211n, 128n, 65535n].map(at),
    },
    {
      name: `numeric_limits<${type}>`,
      code: `typedef numeric_limits<${type}> L; out[0] = L::max(); out[1] = L::min(); out[2] = L::lowest();
        out[3] = L::is_signed * 4 + L::is_integer * 2 + L::is_specialized; out[4] = L::digits;`,
      out: type,
      threads: 1,
      expected: [top, low, low, BigInt((signed ? 4 : 0) + 3), BigInt(bits - (signed ? 1 : 0))].map(at),
    },
  );
}

cases.push(
  {
    name: "numeric_limits<float> and the constants of <metal_math>",
    code: `const float v[] = {numeric_limits<float>::max(), numeric_limits<float>::min(), numeric_limits<float>::epsilon(),
      numeric_limits<float>::infinity(), numeric_limits<float>::lowest(), numeric_limits<float>::denorm_min(), MAXFLOAT, INFINITY,
      HUGE_VALF, M_PI_F, M_E_F, M_LOG2E_F, M_LOG10E_F, M_LN2_F, M_LN10_F, M_PI_2_F, M_PI_4_F, M_1_PI_F, M_2_PI_F, M_2_SQRTPI_F,
      M_SQRT2_F, M_SQRT1_2_F, FLT_MAX, FLT_MIN, FLT_EPSILON, float(FLT_DIG), float(FLT_MANT_DIG), float(FLT_RADIX)};
      out[i] = v[i];`,
    out: "float",
    expected: [
      (2 - 2 ** -23) * 2 ** 127,
      2 ** -126,
      2 ** -23,
      infinity,
      -(2 - 2 ** -23) * 2 ** 127,
      2 ** -149,
      (2 - 2 ** -23) * 2 ** 127,
      infinity,
      infinity,
      Math.PI,
      Math.E,
      Math.LOG2E,
      Math.LOG10E,
      Math.LN2,
      Math.LN10,
      Math.PI / 2,
      Math.PI / 4,
      1 / Math.PI,
      2 / Math.PI,
      2 / Math.sqrt(Math.PI),
      Math.SQRT2,
      Math.SQRT1_2,
      (2 - 2 ** -23) * 2 ** 127,
      2 ** -126,
      2 ** -23,
      6,
      24,
      2,
    ],
  },
  {
    name: "the constants of half and bfloat",
    code: `const float v[] = {float(M_PI_H), float(M_E_H), float(M_LOG2E_H), float(M_SQRT2_H), float(HALF_MAX), float(HALF_MIN),
      float(HALF_EPSILON), float(MAXHALF), float(HUGE_VALH), float(M_PI_BF), float(M_LOG2E_BF)}; out[i] = v[i];`,
    out: "float",
    expected: [
      ...[Math.PI, Math.E, Math.LOG2E, Math.SQRT2].map((x) => numberOf(half, bitsOf(half, x))),
      65504,
      2 ** -14,
      2 ** -10,
      65504,
      infinity,
      ...[Math.PI, Math.LOG2E].map((x) => numberOf(bfloat, bitsOf(bfloat, x))),
    ],
  },
  {
    name: "INT_MAX and its kin",
    code: `const long v[] = {CHAR_BIT, SCHAR_MAX, SCHAR_MIN, UCHAR_MAX, CHAR_MAX, CHAR_MIN, SHRT_MAX, SHRT_MIN, USHRT_MAX, INT_MAX, INT_MIN,
      UINT_MAX, LONG_MAX, LONG_MIN}; out[i] = v[i];`,
    out: "long",
    expected: [
      8n,
      127n,
      -128n,
      255n,
      127n,
      -128n,
      32767n,
      -32768n,
      65535n,
      2147483647n,
      -2147483648n,
      4294967295n,
      2n ** 63n - 1n,
      -(2n ** 63n),
    ],
  },
);

languageSuite("scalars", "", cases);
