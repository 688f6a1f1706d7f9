/**
 * Floating-point functions against float64, within the error that the Metal
 * Shading Language specification allows (table of ULP values for single
 * precision, IEEE mode); functions it calls exact are compared bit by bit.
 */
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { type Case, floats, languageSuite } from "./harness.ts";

const wide = [
  0,
  -0,
  1,
  -1,
  0.5,
  -0.5,
  2,
  3,
  10,
  1e-3,
  -1e-3,
  0.1,
  0.7071,
  1.5,
  -1.5,
  2.5,
  -2.5,
  7.25,
  100.125,
  -100.125,
  1e-10,
  1e10,
  3.4e38,
  -3.4e38,
  1e-40,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  Number.NaN,
].map(Math.fround);
const moderate = wide.filter((x) => !(Math.abs(x) > 85));
const angles = [0, 0.1, -0.1, 0.5, 1, -1, 1.5, 2, 3, 3.14159, -3.14159, 4, 6.5, 10, -25.3, 100, 1000].map(Math.fround);
const unit = [0, -0, 0.1, -0.1, 0.25, 0.5, -0.5, 0.75, 0.9, -0.99, 1, -1, 1e-5].map(Math.fround);
const positive = wide.filter((x) => !(x < 0));

const roundEven = (x: number): number => {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest !== 0.5)
    return rest < 0.5 ? (floor === 0 && Object.is(Math.sign(x), -0) ? -0 : floor) : floor + 1 || -0 * -Math.sign(x);
  return floor % 2 === 0 ? floor : floor + 1;
};
const keepSign = (value: number, x: number): number => (value === 0 ? (Object.is(x, -0) || x < 0 ? -0 : 0) : value);
const sign = (x: number): number => (Number.isNaN(x) ? 0 : Math.sign(x));
const atLeast = (x: number, y: number): number => (Number.isNaN(x) ? y : Number.isNaN(y) ? x : Math.max(x, y));
const atMost = (x: number, y: number): number => (Number.isNaN(x) ? y : Number.isNaN(y) ? x : Math.min(x, y));

/** Name, function in float64, ULP allowed, inputs. */
type Unary = readonly [string, (x: number) => number, number, readonly number[]];
const unary: readonly Unary[] = [
  ["abs", Math.abs, 0, wide],
  ["fabs", Math.abs, 0, wide],
  ["exp", Math.exp, 4, moderate],
  ["exp2", (x) => 2 ** x, 4, [...moderate, 120, -120, 127.5, 128, -126, -140, -150, -200].map(Math.fround)],
  ["exp10", (x) => 10 ** x, 4, moderate.filter((x) => !(Math.abs(x) > 35))],
  ["log", Math.log, 4, positive],
  ["log2", Math.log2, 4, positive],
  ["log10", Math.log10, 4, positive],
  ["sqrt", Math.sqrt, 0, wide],
  ["rsqrt", (x) => 1 / Math.sqrt(x), 0, positive],
  ["sin", Math.sin, 4, angles],
  ["cos", Math.cos, 4, angles],
  ["tan", Math.tan, 6, angles],
  ["sinh", Math.sinh, 4, moderate.filter((x) => !(Math.abs(x) > 80))],
  ["cosh", Math.cosh, 4, moderate.filter((x) => !(Math.abs(x) > 80))],
  ["tanh", Math.tanh, 5, wide],
  ["asin", Math.asin, 4, [...unit, 2]],
  ["acos", Math.acos, 4, [...unit, 2]],
  ["atan", Math.atan, 5, wide],
  ["asinh", Math.asinh, 4, wide],
  ["acosh", Math.acosh, 4, [1, 1.5, 2, 10, 1e10, 0.5].map(Math.fround)],
  ["atanh", Math.atanh, 5, unit],
  ["sinpi", (x) => Math.sin(Math.PI * (x % 2)), 4, [0.1, 0.25, 0.5, 0.75, 1.25, -0.3, 5.5].map(Math.fround)],
  ["cospi", (x) => Math.cos(Math.PI * (x % 2)), 4, [0.1, 0.25, 0.75, 1.25, -0.3, 4].map(Math.fround)],
  ["floor", Math.floor, 0, wide],
  ["ceil", (x) => keepSign(Math.ceil(x), x), 0, wide],
  ["trunc", Math.trunc, 0, wide],
  ["round", (x) => (Number.isFinite(x) ? keepSign(Math.sign(x) * Math.floor(Math.abs(x) + 0.5), x) : x), 0, wide],
  ["rint", (x) => (Number.isFinite(x) ? keepSign(Math.sign(x) * roundEven(Math.abs(x)), x) : x), 0, wide],
  [
    "fract",
    (x) => Math.min(x - Math.floor(x), 1 - 2 ** -24),
    0,
    wide.filter((x) => Number.isFinite(x) && Math.abs(x) < 1e6),
  ],
  ["sign", sign, 0, wide],
  ["saturate", (x) => atMost(atLeast(x, 0), 1), 0, wide.filter((x) => !Object.is(x, -0))],
];

const pairs: readonly (readonly [number, number])[] = [
  [1, 2],
  [2, 1],
  [-1, 2],
  [0.5, -0.5],
  [7.5, 2],
  [-7.5, 2],
  [7.5, -2],
  [1e10, 3],
  [0.1, 0.3],
  [5, 5],
  [100, 7],
  [Number.NaN, 1],
  [1, Number.NaN],
  [Number.POSITIVE_INFINITY, 2],
  [3, Number.POSITIVE_INFINITY],
].map(([x, y]) => [Math.fround(x as number), Math.fround(y as number)] as const);
const powers = pairs.filter(([x, y]) => x > 0 && Number.isFinite(x) && Number.isFinite(y));

type Binary = readonly [string, (x: number, y: number) => number, number, typeof pairs];
const binary: readonly Binary[] = [
  ["min", atMost, 0, pairs],
  ["max", atLeast, 0, pairs],
  ["fmin", atMost, 0, pairs],
  ["fmax", atLeast, 0, pairs],
  ["pow", (x, y) => x ** y, 16, [...powers, [-2, 3], [-2, 2], [0, 3], [4, 0.5]]],
  ["powr", (x, y) => x ** y, 16, powers],
  ["fmod", (x, y) => x % y, 0, pairs],
  ["atan2", Math.atan2, 6, pairs.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y))],
  [
    "copysign",
    (x, y) => (y < 0 || Object.is(y, -0) ? -Math.abs(x) : Math.abs(x)),
    0,
    pairs.filter(([x, y]) => !Number.isNaN(x) && !Number.isNaN(y)),
  ],
  ["fdim", (x, y) => (Number.isNaN(x) || Number.isNaN(y) ? Number.NaN : x > y ? Math.fround(x - y) : 0), 0, pairs],
  ["step", (x, y) => (y < x ? 0 : 1), 0, pairs.filter(([x, y]) => !Number.isNaN(x) && !Number.isNaN(y))],
];

const triples: readonly (readonly [number, number, number])[] = [
  [1, 2, 3],
  [3, 2, 1],
  [-1, 0, 1],
  [0.1, 0.2, 0.3],
  [5, 5, 5],
  [1e10, -1e10, 0.5],
  [2, 8, 0.25],
].map(([x, y, z]) => [Math.fround(x as number), Math.fround(y as number), Math.fround(z as number)] as const);
const middle = (...values: number[]): number => values.sort((p, q) => p - q)[1] as number;
const f = Math.fround;
type Ternary = readonly [string, (x: number, y: number, z: number) => number, typeof triples];
const ternary: readonly Ternary[] = [
  ["min3", (x, y, z) => Math.min(x, y, z), triples],
  ["max3", (x, y, z) => Math.max(x, y, z), triples],
  ["median3", middle, triples],
  ["clamp", (x, y, z) => Math.min(Math.max(x, y), z), triples.filter(([, y, z]) => y <= z)],
  ["mix", (x, y, z) => f(x + f(f(y - x) * z)), triples],
  ["fma", (x, y, z) => x * y + z, triples.filter(([x]) => Math.abs(x) < 1e9)],
  [
    "smoothstep",
    (x, y, z) => {
      const t = Math.min(Math.max(f(f(z - x) / f(y - x)), 0), 1);
      return f(f(t * t) * f(3 - f(2 * t)));
    },
    [
      [0, 1, 0.25],
      [0, 1, 0.5],
      [0, 2, 1.5],
      [0, 1, -1],
      [0, 1, 4],
    ],
  ],
];

/** The instruction of an NVIDIA GPU has none. */
const withoutSubnormals =
  (of: (x: number) => number): ((x: number) => number) =>
  (x) =>
    isOtherGpu && Math.abs(of(x)) < 2 ** -126 ? 0 : of(x);

const cases: Case[] = [];
for (const prefix of ["", "fast::", "precise::"]) {
  for (const [name, of, ulps, inputs] of unary) {
    cases.push({
      name: `${prefix}${name}(float)`,
      code: `out[i] = ${prefix}${name}(a[i]);`,
      out: "float",
      inputs: [floats(inputs)],
      expected: inputs.map(prefix === "fast::" && name === "exp2" ? withoutSubnormals(of) : of),
      ulps,
    });
  }
  for (const [name, of, ulps, inputs] of binary) {
    cases.push({
      name: `${prefix}${name}(float, float)`,
      code: `out[i] = ${prefix}${name}(a[i], b[i]);`,
      out: "float",
      inputs: [floats(inputs.map(([x]) => x)), floats(inputs.map(([, y]) => y))],
      expected: inputs.map(([x, y]) => of(x, y)),
      ulps,
    });
  }
  for (const [name, of, inputs] of ternary) {
    cases.push({
      name: `${prefix}${name}(float, float, float)`,
      code: `out[i] = ${prefix}${name}(a[i], b[i], c[i]);`,
      out: "float",
      inputs: [0, 1, 2].map((k) => floats(inputs.map((each) => each[k] as number))),
      expected: inputs.map(([x, y, z]) => of(x, y, z)),
    });
  }
}

cases.push(
  {
    name: "frexp",
    code: "int e; const float m = frexp(a[i], e); out[2 * i] = m; out[2 * i + 1] = float(e);",
    out: "float",
    threads: 4,
    inputs: [floats([8, 0.75, -3, 1])],
    expected: [0.5, 4, 0.75, 0, -0.75, 2, 0.5, 1],
  },
  {
    name: "ldexp",
    code: "out[i] = ldexp(a[i], int(b[i]));",
    out: "float",
    inputs: [floats([1, 0.75, -3, 1]), floats([3, -2, 10, -140])],
    expected: [8, 0.1875, -3072, 2 ** -140],
  },
  {
    name: "modf",
    code: "float whole; const float rest = modf(a[i], whole); out[2 * i] = rest; out[2 * i + 1] = whole;",
    out: "float",
    threads: 3,
    inputs: [floats([2.75, -2.75, 4])],
    expected: [0.75, 2, -0.75, -2, 0, 4],
  },
  {
    name: "sincos",
    code: "float c; const float s = sincos(a[i], c); out[2 * i] = s; out[2 * i + 1] = c;",
    out: "float",
    threads: 2,
    inputs: [floats([0.5, 2])],
    expected: [Math.sin(0.5), Math.cos(0.5), Math.sin(2), Math.cos(2)],
    ulps: 4,
  },
);

for (const width of [2, 3, 4]) {
  const lanes = Array.from({ length: width }, (_, k) => f(0.3 + k));
  cases.push({
    name: `functions of float${width}, component by component`,
    code: `float${width} v = float${width}(a[0]); for (uint k = 0; k < ${width}; ++k) v[k] = a[k];
      const float${width} r = exp2(v) + sqrt(v) + max(v, float${width}(1.0f)) + clamp(v, 0.5f, 1.5f);
      for (uint k = 0; k < ${width}; ++k) out[k] = r[k];`,
    out: "float",
    threads: 1,
    inputs: [floats(lanes)],
    expected: lanes.map((x) => 2 ** x + Math.sqrt(x) + Math.max(x, 1) + Math.min(Math.max(x, 0.5), 1.5)),
    ulps: 4,
  });
}

languageSuite("math", "", cases);

languageSuite("scalars_beside_vectors", "", [
  {
    name: "a scalar beside vectors stands for a vector, in each place of a function's arguments",
    code: `const float4 v = float4(a[0], a[1], a[2], a[3]); const int3 n = int3(-2, 5, 9); const float4 r[] = {max(v, 0.5f), max(0.5f, v), min(v, 1), clamp(v, 0.0f, 1.0f),
        clamp(v, float4(0), 2.0f), mix(v, 2.0f, 0.5f), mix(1.0f, v, float4(0.25f)), step(0.5f, v), smoothstep(0.0f, 2.0f, v), fma(v, 2.0f, v), fma(0.5f, v, 1.0f), pow(v * v, 0.5f),
        copysign(1.0f, v), fmod(v, 1.0f), select(v, 9.0f, v > 0.5f), select(0.0f, v, v < 0.5f), max3(v, 0.0f, 1.5f), float4(float3(max(n, 4)), float(min(3, n).y)), powr(2.0f, v + 2.0f)};
      for (uint k = 0; k < 4; ++k) { out[4 * i + k] = r[i][k]; }`,
    out: "float",
    threads: 19,
    inputs: [floats([-1.5, 0.25, 1, 3])],
    ulps: 1,
    expected: [
      ...[(x: number) => Math.max(x, 0.5), (x: number) => Math.max(x, 0.5), (x: number) => Math.min(x, 1)],
      (x: number) => Math.min(Math.max(x, 0), 1),
      (x: number) => Math.min(Math.max(x, 0), 2),
      (x: number) => x + (2 - x) * 0.5,
      (x: number) => 1 + (x - 1) * 0.25,
      (x: number) => (x < 0.5 ? 0 : 1),
      (x: number) => {
        const t = Math.min(Math.max(x / 2, 0), 1);
        return t * t * (3 - 2 * t);
      },
      (x: number) => 3 * x,
      (x: number) => 0.5 * x + 1,
      Math.abs,
      Math.sign,
      (x: number) => x % 1,
      (x: number) => (x > 0.5 ? 9 : x),
      (x: number) => (x < 0.5 ? x : 0),
      (x: number) => Math.max(x, 1.5),
    ]
      .flatMap((f) => [-1.5, 0.25, 1, 3].map(f))
      .concat(
        [4, 5, 9, 3],
        [-1.5, 0.25, 1, 3].map((x) => 2 ** (x + 2)),
      ),
  },
  {
    name: "ldexp, frexp and modf of vectors",
    code: `const float3 v = float3(-2.75f, 6.0f, 0.1875f); int3 e; float3 whole; const float3 f = frexp(v, e), rest = modf(v, whole), up = ldexp(v, int3(1, -1, 4));
      const half2 h = ldexp(half2(1.5h), int2(2, 3)); const float r[] = {f.x, f.y, f.z, float(e.x), float(e.y), float(e.z), rest.x, rest.y, rest.z, whole.x, whole.y, whole.z, up.x, up.y, up.z, float(h.y)}; out[i] = r[i];`,
    out: "float",
    expected: [-0.6875, 0.75, 0.75, 2, 3, -2, -0.75, 0, 0.1875, -2, 6, 0, -5.5, 3, 3, 12],
  },
]);
