/** Relational and geometric functions. */
import { bfloat, bitsOf, half } from "./formats.ts";
import { type Case, floats, languageSuite, words } from "./harness.ts";

const { POSITIVE_INFINITY: infinity, NEGATIVE_INFINITY: minusInfinity, NaN: nan } = Number;
const cases: Case[] = [];

const least = { float: 2 ** -126, half: 2 ** -14, bfloat: 2 ** -126 };
for (const type of ["float", "half", "bfloat"] as const) {
  const values = [0, -0, 1, -1.5, least[type], least[type] / 2, -least[type] / 4, infinity, minusInfinity, nan];
  const input =
    type === "float"
      ? floats(values)
      : words(
          type,
          values.map((x) => bitsOf(type === "half" ? half : bfloat, x)),
        );
  const negative = (x: number) => x < 0 || Object.is(x, -0);
  const functions: readonly (readonly [string, (x: number) => boolean])[] = [
    ["isnan", Number.isNaN],
    ["isinf", (x) => Math.abs(x) === infinity],
    ["isfinite", Number.isFinite],
    ["isnormal", (x) => Number.isFinite(x) && Math.abs(x) >= least[type]],
    ["signbit", negative],
  ];
  for (const [name, of] of functions) {
    cases.push({
      name: `${name} of ${type}, ${type}2, ${type}3, ${type}4`,
      code: `const bool r = ${name}(a[i]); const bool2 v = ${name}(${type}2(a[i], 1)); const bool3 u = ${name}(${type}3(1, 1, a[i]));
        const bool4 w = ${name}(${type}4(1, a[i], 1, a[i])); out[i] = int(r) + 2 * int(v.x) + 4 * int(u.z) + 8 * int(w.w) + 16 * int(v.y == ${name}(${type}(1)));`,
      out: "int",
      inputs: [input],
      expected: values.map((x) => (of(x) ? 15 : 0) + 16),
    });
  }
  const pairs = [
    [1, 2],
    [nan, 1],
    [1, nan],
    [infinity, 0],
  ] as const;
  const encode = (list: readonly number[]) =>
    type === "float"
      ? floats(list)
      : words(
          type,
          list.map((x) => bitsOf(type === "half" ? half : bfloat, x)),
        );
  cases.push(
    {
      name: `isordered and isunordered of ${type} and ${type}2`,
      code: `out[i] = int(isordered(a[i], b[i])) + 2 * int(isunordered(a[i], b[i])) + 4 * int(isordered(${type}2(a[i], 1), ${type}2(b[i], 1)).x)
        + 8 * int(isunordered(${type}2(1, a[i]), ${type}2(1, b[i])).y);`,
      out: "int",
      inputs: [encode(pairs.map(([x]) => x)), encode(pairs.map(([, y]) => y))],
      expected: pairs.map(([x, y]) => (Number.isNaN(x) || Number.isNaN(y) ? 2 + 8 : 1 + 4)),
    },
    {
      name: `select of ${type}4 by bool4, of ${type} by bool`,
      code: `const ${type}4 r = select(${type}4(1, 2, 3, 4), ${type}4(5, 6, 7, 8), bool4(true, false, false, true));
        const float v[] = {float(r.x), float(r.y), float(r.z), float(r.w), float(select(${type}(1), ${type}(2), true))}; out[i] = v[i];`,
      out: "float",
      expected: [5, 2, 3, 8, 2],
    },
  );
}

cases.push(
  {
    name: "all and any of bool, bool2, bool3, bool4",
    code: `const bool t = true; out[0] = all(t) + 2 * any(!t); out[1] = all(bool2(true, false)) + 2 * any(bool2(true, false));
      out[2] = all(bool3(true)) + 2 * any(bool3(false)); out[3] = all(bool4(true, true, true, false)) + 2 * any(bool4(false, false, false, true));`,
    out: "int",
    threads: 1,
    expected: [1, 2, 1, 2],
  },
  {
    name: "comparisons with NaN are false but for !=",
    code: `out[i] = (a[i] < b[i]) + 2 * (a[i] > b[i]) + 4 * (a[i] == b[i]) + 8 * (a[i] != b[i]) + 16 * (a[i] <= b[i]) + 32 * (a[i] >= b[i])
      + 64 * any(float2(a[i]) == float2(b[i])) + 128 * all(float2(a[i]) != float2(b[i]));`,
    out: "int",
    inputs: [floats([nan, 1, nan, 0]), floats([nan, nan, 1, -0])],
    expected: [8 + 128, 8 + 128, 8 + 128, 4 + 16 + 32 + 64],
  },
);

const x = [1.5, -2, 3, 0.25];
const y = [-1, 0.5, 2, 8];
const dot = (n: number, p = x, q = y): number => p.slice(0, n).reduce((sum, value, k) => sum + value * (q[k] ?? 0), 0);
const difference = x.map((value, k) => value - (y[k] ?? 0));
for (const n of [2, 3, 4]) {
  const v = `float${n}(${x.slice(0, n).join(", ")})`;
  const w = `float${n}(${y.slice(0, n).join(", ")})`;
  cases.push({
    name: `dot, length, length_squared, distance, distance_squared, normalize of float${n}`,
    code: `const float${n} v = ${v}, w = ${w}; const float${n} u = normalize(v); out[0] = dot(v, w); out[1] = length(v); out[2] = length_squared(v);
      out[3] = distance(v, w); out[4] = distance_squared(v, w); for (uint k = 0; k < ${n}; ++k) { out[5 + k] = u[k]; }
      out[5 + ${n}] = fast::length(v); out[6 + ${n}] = precise::normalize(v).x; out[7 + ${n}] = fast::distance(v, w);`,
    out: "float",
    threads: 1,
    ulps: 4,
    expected: [
      dot(n),
      Math.sqrt(dot(n, x, x)),
      dot(n, x, x),
      Math.sqrt(dot(n, difference, difference)),
      dot(n, difference, difference),
      ...x.slice(0, n).map((value) => value / Math.sqrt(dot(n, x, x))),
      Math.sqrt(dot(n, x, x)),
      1.5 / Math.sqrt(dot(n, x, x)),
      Math.sqrt(dot(n, difference, difference)),
    ],
  });
}
cases.push(
  {
    name: "cross of float3 and half3",
    code: `const float3 r = cross(float3(1, 2, 3), float3(-4, 5, 0.5f)); const half3 s = cross(half3(1, 0, 0), half3(0, 1, 0));
      const float v[] = {r.x, r.y, r.z, float(s.x), float(s.y), float(s.z)}; out[i] = v[i];`,
    out: "float",
    expected: [2 * 0.5 - 3 * 5, 3 * -4 - 1 * 0.5, 1 * 5 - 2 * -4, 0, 0, 1],
  },
  {
    name: "dot of half4 and bfloat2",
    code: "out[0] = float(dot(half4(1, 2, 3, 4), half4(2, 2, 2, 2))); out[1] = float(dot(bfloat2(1.5f, 2), bfloat2(2, 4)));",
    out: "float",
    threads: 1,
    expected: [20, 11],
  },
  {
    name: "reflect, refract and faceforward",
    code: `const float3 r = reflect(float3(1, -1, 0), float3(0, 1, 0)); const float3 f = faceforward(float3(0, 1, 0), float3(0, 1, 0), float3(0, 1, 0));
      const float3 t = refract(float3(0, -1, 0), float3(0, 1, 0), 0.5f); const float v[] = {r.x, r.y, f.y, t.x, t.y}; out[i] = v[i];`,
    out: "float",
    expected: [1, 1, -1, 0, -1],
  },
);

languageSuite("relational", "", cases);
