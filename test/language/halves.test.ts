/** half and bfloat: conversions at every boundary, arithmetic that rounds once, literals. */
import { bfloat, bitsOf, type Format, half, numberOf, roundToEven } from "./formats.ts";
import { type Case, floats, ints, languageSuite, range, words } from "./harness.ts";

const { POSITIVE_INFINITY: infinity, NaN: nan } = Number;
const cases: Case[] = [];

/** every kind of value that a rounding to `format` may be given. */
function boundaries(format: Format): number[] {
  const { mantissa, minExponent, maxExponent } = format;
  const ulp = 2 ** -mantissa;
  const largest = (2 - ulp) * 2 ** maxExponent;
  const least = 2 ** (minExponent - mantissa);
  const tie = [1 + ulp / 2, 1 + 1.5 * ulp, 2 - ulp / 2, 2 ** minExponent * (1 + ulp / 2), 3 * (1 + ulp / 2)];
  const near = tie.flatMap((x) => [x, x * (1 + 2 ** -22), x * (1 - 2 ** -22)]);
  const subnormal = [
    least,
    least / 2,
    least * 0.501,
    least * 0.499,
    least * 1.5,
    least * 2.5,
    2 ** minExponent - least,
  ];
  const carry = [2 ** minExponent - least / 2, 2 ** minExponent - least * 0.75];
  const overflow = [largest, largest + 2 ** (maxExponent - mantissa - 1), largest * (1 + ulp / 8), largest * 1.5];
  const plain = [0, 1, 0.1, 1 / 3, 1000.5, 3.14159, infinity];
  return [...plain, ...near, ...subnormal, ...carry, ...overflow]
    .flatMap((x) => [x, -x])
    .map(Math.fround)
    .filter((x, k, all) => all.findIndex((y) => Object.is(x, y)) === k)
    .concat(nan);
}

for (const format of [half, bfloat]) {
  const type = format.name;
  const values = boundaries(format);
  const encode = (x: number) => bitsOf(format, x);
  const decode = (bits: number) => numberOf(format, bits);
  const all = range(512, (k) => (k * 131) & 0xffff).filter((bits) => !Number.isNaN(decode(bits)));
  const pairs = range(64, (k) => [
    decode(all[(k * 37) % all.length] ?? 0),
    decode(all[(k * 91 + 5) % all.length] ?? 0),
  ]);
  const left = words(
    type,
    pairs.map(([x = 0]) => encode(x)),
  );
  const right = words(
    type,
    pairs.map(([, y = 0]) => encode(y)),
  );
  const binary = (name: string, operator: string, of: (x: number, y: number) => number): Case => ({
    name: `${type} ${name} rounds once`,
    code: `const ${type} r = a[i] ${operator} b[i]; out[i] = isnan(float(r)) ? ushort(0x7fff) : as_type<ushort>(r);`,
    out: "ushort",
    inputs: [left, right],
    expected: pairs.map(([x = 0, y = 0]) => (Number.isNaN(of(x, y)) ? 0x7fff : encode(Math.fround(of(x, y))))),
  });
  cases.push(
    {
      name: `float to ${type}: nearest even at every kind of boundary`,
      // Which of the NaNs is the hardware's to choose.
      code: `const ${type} h = ${type}(a[i]); out[i] = isnan(float(h)) ? ushort(${encode(nan)}) : as_type<ushort>(h);`,
      out: "ushort",
      inputs: [floats(values)],
      expected: values.map(encode),
    },
    {
      name: `float to ${type} by assignment, static_cast and braces`,
      code: `${type} x; x = a[i]; const ${type} y = static_cast<${type}>(a[i]); const ${type} z = a[i];
        out[i] = as_type<ushort>(x) == as_type<ushort>(y) && as_type<ushort>(y) == as_type<ushort>(z) ? as_type<ushort>(z) : ushort(1);`,
      out: "ushort",
      inputs: [floats(values.filter((x) => !Number.isNaN(x)))],
      expected: values.filter((x) => !Number.isNaN(x)).map(encode),
    },
    {
      name: `${type} to float is exact, subnormals and infinities too`,
      code: "out[i] = float(a[i]);",
      out: "float",
      inputs: [words(type, [...all, 1, 0x8001, encode(infinity), encode(-infinity), encode(nan)])],
      expected: [...all.map(decode), decode(1), decode(0x8001), infinity, -infinity, nan],
    },
    {
      name: `vectors of float to ${type}4`,
      code: `const ${type}4 h = ${type}4(float4(a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3]));
        for (uint k = 0; k < 4; ++k) { out[4 * i + k] = as_type<ushort>(h[k]); }`,
      out: "ushort",
      threads: Math.floor((values.length - 1) / 4),
      inputs: [floats(values)],
      expected: values.slice(0, Math.floor((values.length - 1) / 4) * 4).map(encode),
    },
    binary("addition", "+", (x, y) => x + y),
    binary("subtraction", "-", (x, y) => x - y),
    binary("multiplication", "*", (x, y) => x * y),
    binary("division", "/", (x, y) => x / y),
    {
      name: `${type} from int and to int`,
      code: `out[i] = int(${type}(a[i]));`,
      out: "int",
      inputs: [ints([0, 1, -1, 255, 257, 2049, 2051, -4099])],
      expected: [0, 1, -1, 255, 257, 2049, 2051, -4099].map((x) => decode(encode(x))),
    },
    {
      name: `${type} comparisons`,
      code: "out[i] = (a[i] < b[i]) + 2 * (a[i] <= b[i]) + 4 * (a[i] == b[i]) + 8 * (a[i] != b[i]) + 16 * (a[i] > b[i]);",
      out: "int",
      inputs: [words(type, [1, 2, 2, -1, nan].map(encode)), words(type, [2, 1, 2, 1, 1].map(encode))],
      expected: [1 + 2 + 8, 8 + 16, 2 + 4, 1 + 2 + 8, 8],
    },
    {
      name: `numeric_limits<${type}>`,
      code: `typedef numeric_limits<${type}> L; const ${type} v[] = {L::max(), L::min(), L::lowest(), L::epsilon(), L::infinity(),
        L::denorm_min()}; out[i] = as_type<ushort>(v[i]);`,
      out: "ushort",
      expected: [
        (2 - 2 ** -format.mantissa) * 2 ** format.maxExponent,
        2 ** format.minExponent,
        -(2 - 2 ** -format.mantissa) * 2 ** format.maxExponent,
        2 ** -format.mantissa,
        infinity,
        2 ** (format.minExponent - format.mantissa),
      ].map(encode),
    },
    {
      name: `rint of ${type}`,
      code: "out[i] = float(rint(a[i]));",
      out: "float",
      inputs: [words(type, [0.5, 1.5, 2.5, 3.25, 7.75].map(encode))],
      expected: [0.5, 1.5, 2.5, 3.25, 7.75].map(roundToEven),
    },
    {
      name: `sqrt, fma, exp2, max and clamp of ${type}`,
      code: `out[5 * i] = float(sqrt(a[i])); out[5 * i + 1] = float(fma(a[i], a[i], a[i])); out[5 * i + 2] = float(exp2(a[i]));
        out[5 * i + 3] = float(max(a[i], ${type}(3.0f))); out[5 * i + 4] = float(clamp(a[i], ${type}(0.5f), ${type}(2.0f)));`,
      out: "float",
      threads: 3,
      inputs: [words(type, [0.25, 4, 9].map(encode))],
      expected: [0.25, 4, 9].flatMap((x) => [
        Math.sqrt(x),
        decode(encode(x * x + x)),
        decode(encode(Math.fround(2 ** x))),
        Math.max(x, 3),
        Math.min(Math.max(x, 0.5), 2),
      ]),
    },
  );
}

const wholes = [0, 1, -1, 2047, 2049, 2051, 4098, 4102, -8196, 65504, 65519, 65520, -65535, 2 ** 31 - 1, -(2 ** 31)];
cases.push({
  name: "half from int rounds to nearest even, to infinity from 65,520 on",
  code: "out[i] = as_type<ushort>(half(a[i]));",
  out: "ushort",
  inputs: [ints(wholes)],
  expected: wholes.map((x) => bitsOf(half, x)),
});
cases.push({
  name: "half and float mix to float, bfloat and float to float",
  code: `const half h = 1.0h / 3.0h; const bfloat b = bfloat(1.0f / 3.0f); const float f = 0.1f;
      out[0] = h + f; out[1] = b * f; out[2] = is_same_v<decltype(h + f), float>; out[3] = is_same_v<decltype(h * h), half>;
      out[4] = is_same_v<decltype(b + f), float>; out[5] = is_same_v<decltype(b * b), bfloat>; out[6] = is_same_v<decltype(h + 1), half>;`,
  out: "float",
  threads: 1,
  expected: [
    numberOf(half, bitsOf(half, 1 / 3)) + Math.fround(0.1),
    numberOf(bfloat, bitsOf(bfloat, Math.fround(1 / 3))) * Math.fround(0.1),
    1,
    1,
    1,
    1,
    1,
  ],
});

languageSuite("halves", "", cases);
languageSuite("literals", "#define QUARTER 0.25H\n", [
  {
    name: "1.5H, 1.5bf, 1.5BF, 0x1p-3bf, and 0xbf, which is a number",
    code: `out[0] = float(1.5H + QUARTER); out[1] = float(1.5bf) + float(2.BF); out[2] = float(0.1bf); out[3] = float(0xbf);
      out[4] = is_same_v<decltype(1.5bf), bfloat> && is_same_v<decltype(1.5H), half>;`,
    out: "float",
    threads: 1,
    expected: [1.75, 3.5, numberOf(bfloat, bitsOf(bfloat, 0.1)), 191, 1],
  },
]);
