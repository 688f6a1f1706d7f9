/** half, bfloat and float in one expression: what is rounded, and when. */
import { bfloat, bitsOf, half, numberOf, rounded } from "./formats.ts";
import { encoded, floats, range } from "./harness.ts";
import { statementSuite } from "./separate.ts";

const list = [1.5, -2.25, 3.125, 1000, 0.1, -7.3, 2049, 65504].map(Math.fround);
const halves = rounded(half, list);
const small = [1.5, -2.25, 3.125, 100, 0.1, -7.3, 257, 3e38].map(Math.fround);
const bfloats = rounded(bfloat, small);
const h = encoded(half, list);
const b = encoded(bfloat, small);
const f = floats(list);
const f2 = Math.fround;

statementSuite("mixedHalves", [
  {
    name: "half by half is half, half by float is float",
    code: "out[i] = float(a[i] * a[i]) + sizeof(a[i] * a[i]) * 0; out[8 + i] = a[i] * 1.1f; out[16 + i] = sizeof(a[i] * 1.0f) + 10 * sizeof(a[i] + 1.0h) + 100 * sizeof(a[i] * 2);",
    out: "float",
    threads: 8,
    inputs: [h],
    expected: [
      ...halves.map((x) => numberOf(half, bitsOf(half, x * x))),
      ...halves.map((x) => f2(x * f2(1.1))),
      ...range(8, () => 4 + 20 + 200),
    ],
  },
  {
    name: "a half on the left of a compound assignment with a float",
    code: "half x = a[i]; x *= 1.1f; half y = a[i]; y += 0.001; half z = a[i]; z -= 1; out[i] = as_type<ushort>(x); out[8 + i] = as_type<ushort>(y); out[16 + i] = as_type<ushort>(z);",
    out: "ushort",
    threads: 8,
    inputs: [h],
    expected: [
      ...halves.map((x) => bitsOf(half, f2(x * f2(1.1)))),
      ...halves.map((x) => bitsOf(half, f2(x + f2(0.001)))),
      ...halves.map((x) => bitsOf(half, x - 1)),
    ],
  },
  {
    name: "vectors of half with numbers, and conversions of whole vectors",
    code: "const half4 v(a[0], a[1], a[2], a[3]); const half4 w = v * 0.5h + v; const float4 g = float4(v) * 1.1f; const half4 r = half4(g); const half4 s = v / 3; out[i] = as_type<ushort>(w[i]); out[4 + i] = as_type<ushort>(r[i]); out[8 + i] = as_type<ushort>(s[i]);",
    out: "ushort",
    threads: 4,
    inputs: [h],
    expected: [
      ...halves.slice(0, 4).map((x) => bitsOf(half, x * 1.5)),
      ...halves.slice(0, 4).map((x) => bitsOf(half, f2(x * f2(1.1)))),
      ...halves.slice(0, 4).map((x) => bitsOf(half, x / 3)),
    ],
  },
  {
    name: "library functions of half, and of half with a float",
    code: "const half x = a[i]; out[i] = float(max(x, 0.0h)) + float(abs(x)) + float(min(x, half(2))) + metal::max(float(x), 0.5f) + float(clamp(x, -1.0h, 1.0h)) + fmax(x, half(1));",
    out: "float",
    inputs: [h],
    ulps: 1,
    expected: halves.map((x) =>
      [
        Math.max(x, 0),
        Math.abs(x),
        Math.min(x, 2),
        Math.max(x, 0.5),
        Math.min(Math.max(x, -1), 1),
        Math.max(x, 1),
      ].reduce((s, y) => f2(s + y)),
    ),
  },
  {
    name: "half in conditions, comparisons, switches and as an index",
    code: "const half x = a[i]; const int n = x; out[i] = (x > 1.0f ? 1 : 0) + (x == half(1.5) ? 10 : 0) + (x ? 100 : 0) + (!x ? 1000 : 0) + (-x < 0 ? 10000 : 0) + (n == int(x) && x >= n - 1 ? 100000 : 0);",
    out: "int",
    inputs: [h],
    expected: halves.map((x) => Number(x > 1) + 10 * Number(x === 1.5) + 100 + 10000 * Number(-x < 0) + 100000),
  },
  {
    name: "sums of halves kept in float, and in half",
    code: "float s = 0; half t = 0; for (int k = 0; k < 8; k++) { s += a[k] * 0.25f; t += a[k] * 0.25h; } out[0] = s; out[1] = float(t);",
    out: "float",
    threads: 1,
    inputs: [h],
    expected: [
      halves.reduce((s, x) => f2(s + f2(x * 0.25)), 0),
      halves.reduce((s, x) => numberOf(half, bitsOf(half, s + numberOf(half, bitsOf(half, x * 0.25)))), 0),
    ],
  },
]);

statementSuite("mixedBfloats", [
  {
    name: "bfloat by float is float, bfloat by bfloat is bfloat",
    code: "out[i] = a[i] * 1.1f; out[8 + i] = float(a[i] * bfloat(3.0f)); out[16 + i] = sizeof(a[i] * a[i]) + 10 * sizeof(a[i] * 1.0f) + 100 * sizeof(a[i] + bfloat(1.0f));",
    out: "float",
    threads: 8,
    inputs: [b],
    expected: [
      ...bfloats.map((x) => f2(x * f2(1.1))),
      ...bfloats.map((x) => numberOf(bfloat, bitsOf(bfloat, f2(x * 3)))),
      ...range(8, () => 2 + 40 + 200),
    ],
  },
  {
    name: "conversions between bfloat, half, float and integers",
    code: "const bfloat x = a[i]; out[i] = as_type<ushort>(half(float(x))); out[8 + i] = as_type<ushort>(bfloat(i * 129)); out[16 + i] = ushort(short(clamp(float(x), -100.0f, 100.0f))); out[24 + i] = as_type<ushort>(static_cast<half>(x));",
    out: "ushort",
    threads: 8,
    inputs: [b],
    expected: [
      ...bfloats.map((x) => bitsOf(half, x)),
      ...range(8, (k) => bitsOf(bfloat, k * 129)),
      ...bfloats.map((x) => Math.trunc(Math.min(Math.max(x, -100), 100)) & 0xffff),
      ...bfloats.map((x) => bitsOf(half, x)),
    ],
  },
  {
    name: "vectors of bfloat: arithmetic, swizzles, conversions",
    code: "const bfloat4 v(a[0], a[1], a[2], a[3]); bfloat4 w = v * bfloat(2.0f); w.xy = w.yx; w.z += bfloat(1.0f); const float4 g = float4(w) * 1.1f; out[i] = as_type<ushort>(w[i]); out[4 + i] = as_type<ushort>(bfloat4(g)[i]); out[8 + i] = as_type<ushort>(bfloat4(half4(v))[i]);",
    out: "ushort",
    threads: 4,
    inputs: [b],
    expected: (() => {
      const [x = 0, y = 0, z = 0, u = 0] = bfloats.map((v) => 2 * v);
      const w = [y, x, numberOf(bfloat, bitsOf(bfloat, z + 1)), u];
      return [
        ...w.map((v) => bitsOf(bfloat, v)),
        ...w.map((v) => bitsOf(bfloat, f2(v * f2(1.1)))),
        ...rounded(half, bfloats.slice(0, 4)).map((v) => bitsOf(bfloat, v)),
      ];
    })(),
  },
  {
    name: "bfloat in templates beside half and float, accumulated in float",
    before:
      "template <typename T> static float sum(const device T *p, int n) { float s = 0; for (int k = 0; k < n; k++) s += static_cast<float>(p[k]) * T(0.5f); return s; } template <typename T, typename U> static U cast_to(T x) { return static_cast<U>(x); }",
    code: "out[0] = sum(a, 7); out[1] = sum(b, 7); out[2] = sum(c, 7); out[3] = cast_to<bfloat, int>(a[3]) + float(cast_to<float, bfloat>(2.5f)) + float(cast_to<half, bfloat>(0.25h));",
    out: "float",
    threads: 1,
    inputs: [b, h, f],
    expected: [bfloats, halves, list]
      .map((v) => v.slice(0, 7).reduce((s, x) => f2(s + f2(x * 0.5)), 0))
      .concat(100 + 2.75),
  },
  {
    name: "bfloat in structs, arrays, threadgroup memory, comparisons and conditions",
    before: "struct P { bfloat x; half y; bfloat4 v; };",
    code: "threadgroup P p[8]; p[i].x = a[i]; p[i].y = half(i); p[i].v = bfloat4(a[i]); threadgroup_barrier(mem_flags::mem_threadgroup); const P q = p[7 - i]; const bfloat big = q.x > a[0] ? q.x : a[0]; bfloat list[2] = {big, bfloat(i)}; out[i] = float(list[0]) * (q.v.w == q.x ? 1 : 0) + float(list[1]) + (q.x < bfloat(0.0f)) + (float(q.y) == 7 - i ? 2 : 0);",
    out: "float",
    inputs: [b],
    expected: range(8, (k) => {
      const x = bfloats[7 - k] ?? 0;
      return f2(f2(f2(Math.max(x, 1.5) + k) + Number(x < 0)) + 2);
    }),
  },
  {
    name: "literals and limits of bfloat and half",
    code: "out[0] = float(1.5bf + 0.25bf); out[1] = float(numeric_limits<bfloat>::max()); out[2] = float(numeric_limits<half>::max()); out[3] = float(bfloat(M_PI_F)); out[4] = float(M_PI_H); out[5] = HALF_MAX; out[6] = float(0.1h); out[7] = float(0.1bf);",
    out: "float",
    threads: 1,
    expected: [
      1.75,
      numberOf(bfloat, 0x7f7f),
      65504,
      numberOf(bfloat, bitsOf(bfloat, Math.PI)),
      numberOf(half, bitsOf(half, Math.PI)),
      65504,
      numberOf(half, bitsOf(half, 0.1)),
      numberOf(bfloat, bitsOf(bfloat, 0.1)),
    ],
  },
]);
