/** Literals without a suffix are single precision, wherever they stand: the language has no double. */

import { bfloat } from "./formats.ts";
import { encoded, floats, kernelSuite, languageSuite, range } from "./harness.ts";
import { both, kernel, refusalSuite } from "./refused.ts";

const list = [0.5, -1.25, 3, 7.75, 2, -6, 9.5, 10];

languageSuite(
  "singlePrecision",
  `
#define TENTH 0.1
#define SCALED(x) ((x) * 0.1 + 1.0e-3)
constant float kTenth = 0.1;
constant float kTable[] = {0.1, .5, 2., 1e-3, 0x1p-3, 1'000.25};
constant constexpr float kThird = 1.0 / 3.0;
static int kind(float) { return 1; }
static int kind(int) { return 2; }
static int kind(half) { return 3; }
template <typename T> static int bytes(T) { return sizeof(T); }
template <typename T> static T largest(T a, T b) { return a < b ? b : a; }
`,
  [
    {
      name: "a product with a literal is rounded once, to float",
      code: "out[i] = a[i] * 0.1;",
      out: "float",
      inputs: [floats(list)],
      expected: list.map((x) => Math.fround(x * Math.fround(0.1))),
    },
    {
      name: "min, max, clamp, pow, mix and step of a float and a literal",
      code: `float x = a[i];
        out[i] = max(0.0, x) + min(x, 100.0) * 1000.0 + clamp(x, 0.0, 1.0) + pow(abs(x), 2.0) + mix(x, 1.0, 0.0) + step(0.0, x);`,
      out: "float",
      inputs: [floats(list)],
      ulps: 2,
      expected: list.map((x) => Math.max(0, x) + x * 1000 + Math.min(1, Math.max(0, x)) + x * x + x + (x < 0 ? 0 : 1)),
    },
    {
      name: "the size of a literal and of expressions with one",
      code: `out[0] = sizeof(0.1); out[1] = sizeof(1.0 + 1); out[2] = bytes(1e3); out[3] = sizeof(a[0] * 2.0); out[4] = bytes(TENTH);
        out[5] = sizeof(0x1p4); out[6] = sizeof(.5);`,
      out: "int",
      inputs: [floats(list)],
      threads: 1,
      expected: [4, 4, 4, 4, 4, 4, 4],
    },
    {
      name: "overloads and templates take a literal for a float",
      code: "out[0] = kind(0.5); out[1] = kind(5); out[2] = kind(0.5h); out[3] = largest(a[0], 0.25) == 0.5f; auto x = 0.1; out[4] = kind(x);",
      out: "int",
      inputs: [floats(list)],
      threads: 1,
      expected: [1, 2, 3, 1, 1],
    },
    {
      name: "literals in macros and in constants of the program",
      code: `out[0] = SCALED(a[0]); out[1] = kTenth == 0.1f; out[2] = kThird == 1.0f / 3.0f; out[3] = TENTH == 0.1f;
        for (int k = 0; k < 6; k++) out[4 + k] = kTable[k];`,
      out: "float",
      inputs: [floats(list)],
      threads: 1,
      expected: [
        Math.fround(Math.fround(0.5 * Math.fround(0.1)) + Math.fround(1e-3)),
        1,
        1,
        1,
        ...[0.1, 0.5, 2, 1e-3, 0.125, 1000.25].map(Math.fround),
      ],
    },
    {
      name: "bfloat and half of a product with a literal",
      code: "float f = a[i]; out[i] = bfloat(f * 1.44) == bfloat(f * 1.44f) && half(f * 1.44) == half(f * 1.44f);",
      out: "int",
      inputs: [floats(list)],
      expected: list.map(() => 1),
    },
    {
      name: "a bfloat times a literal is computed in float",
      code: "out[i] = a[i] * 0.1;",
      out: "float",
      inputs: [encoded(bfloat, list)],
      expected: list.map((x) => Math.fround(x * Math.fround(0.1))),
    },
    {
      name: "vectors and matrices of literals",
      code: `float3 v = {0.1, 0.2, 0.3}; float4 w = float4(v, 1.0) * 2.0; float2x2 m = float2x2(0.1, 0.2, 0.3, 0.4); half2 h = half2(0.5, 0.25);
        out[0] = v.x + w.w; out[1] = m[1][0]; out[2] = h.y; out[3] = dot(v, float3(1.0)) > 0.5;`,
      out: "float",
      threads: 1,
      expected: [Math.fround(0.1) + 2, 0.3, 0.25, 1].map(Math.fround),
    },
    {
      name: "what ends in letters that are digits or suffixes",
      code: "out[0] = 0xbf; out[1] = 0x1E + 1; out[2] = 0xFeed; out[3] = 1e2f; out[4] = 1.5h; out[5] = 0x1.8p1; out[6] = 7u; out[7] = 2.5F; out[8] = 1.5bf;",
      out: "float",
      threads: 1,
      expected: [0xbf, 0x1e + 1, 0xfeed, 100, 1.5, 3, 7, 2.5, 1.5],
    },
  ],
);

const scaled = `#include <metal_stdlib>
using namespace metal;
constant float kFactor [[function_constant(0)]];
constant float kHalved = kFactor * 0.5;
constant float kOr = is_function_constant_defined(kFactor) ? kFactor : 0.1;
kernel void literal_constants(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = kHalved * 0.1 + max(kOr, 0.0);
}
`;
kernelSuite("literalConstants", scaled, [
  {
    name: "literals beside function constants",
    kernel: "literal_constants",
    out: "float",
    constants: [{ index: 0, dtype: "f32", value: 3 }],
    grid: 4,
    threads: 4,
    expected: range(4, () => Math.fround(Math.fround(1.5 * Math.fround(0.1)) + 3)),
  },
]);

refusalSuite("longDouble", [
  { name: "a long double literal", source: kernel("out[i] = §1.0L * in[i];"), says: /'long double' is not supported/ },
  { name: "a long double literal with an exponent", source: kernel("out[i] = in[i] + §1e3l;"), says: /'long double'/ },
  {
    name: "a long double literal in a macro",
    source: both("#define ONE 1.0L\nstatic float f(float x) { return x; }", "out[i] = in[i] * §ONE;"),
    says: /'long double'/,
  },
]);
