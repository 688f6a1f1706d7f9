/** What the tool calls ok loads and runs in Bun, and what it refuses Bun refuses in the same words. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device } from "../../src/index.ts";
import { thrownBy } from "../helpers/errors.ts";

const tool = join(import.meta.dir, "../../build/bin/metal-attention-tool");
const folder = mkdtempSync(join(tmpdir(), "metal-attention-loads-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A kernel `k` of these statements; `x` holds 7, 3, -2 and 0.5. */
const source = (body: string, before = "") => `#include <metal_stdlib>
using namespace metal;
${before}
kernel void k(device float *out [[buffer(0)]], const device float *x [[buffer(1)]]) {
  const long a = long(x[0]) << 40, b = long(x[1]);
  (void)a; (void)b;
  ${body}
}
`;

function compiled(text: string) {
  const path = join(folder, "k.metal");
  writeFileSync(path, text);
  const { exitCode, stdout } = Bun.spawnSync([tool, "compile", path]);
  return { exitCode, stdout: stdout.toString() };
}

const three = Math.fround(3);
const a = 7n << 40n;
/** What `x[0] * by` is as an integer. */
const far = (by: number): bigint => BigInt(Math.fround(7 * Math.fround(by)));

test.each([
  ["a literal without a suffix", "out[0] = x[1] * 2.0;", 6],
  ["constants that are folded", "constexpr float c = 1.0 / 3.0 * 3.0; out[0] = c * x[1] + (0.1 + 0.2 > 0.3);", 3],
  ["a constant of the program", "out[0] = kHalfPi * x[1];", Math.fround(three * Math.fround(1.5707963267948966))],
  ["a division of longs", "out[0] = float(a / b);", a / 3n],
  ["a division of longs by zero", "out[0] = b == 3 ? 1.0 : float(a / (b - 3));", 1],
  ["a remainder of longs", "out[0] = float(a % (b * 1000003));", a % 3000009n],
  ["a division of ulongs", "out[0] = float(ulong(a) / ulong(b));", a / 3n],
  ["a long of a float, and back", "out[0] = float(long(x[0] * 1e12) / 999999999999);", far(1e12) / 999999999999n],
  ["a ulong of a float, and back", "out[0] = float(ulong(x[0] * 1e18) >> 40);", far(1e18) >> 40n],
  [
    "the high half of a product of longs",
    "out[0] = float(mulhi(a << 10, b << 20));",
    ((a << 10n) * (3n << 20n)) >> 64n,
  ],
  [
    "the high half of a product of ulongs",
    "out[0] = float(mulhi(ulong(a) << 20, ulong(b) << 30));",
    ((a << 20n) * (3n << 30n)) >> 64n,
  ],
  ["a half of a long", "out[0] = float(half(b * 100));", 300],
  ["a bfloat of a long", "out[0] = float(bfloat(b * 100));", 300],
  ["fma of three floats", "out[0] = fma(x[0], x[1], x[2]);", 19],
  ["fma with literals", "out[0] = fma(x[0], 2.0, 0.5);", 14.5],
  ["precise functions", "out[0] = precise::sqrt(x[1] * 3) + precise::exp(x[1] - 3.0);", 4],
  ["a power of literals", "out[0] = rint(pow(2.0, 10.0)) + rint(powr(x[1], 2.0));", 1033],
  [
    "an array that is copied",
    "struct S { float v[300]; }; S s = {}; s.v[int(x[1])] = 5; S t = s; out[0] = t.v[3] + t.v[4];",
    5,
  ],
  ["an array that is filled", "float v[4096] = {}; v[int(x[1])] += 4; out[0] = v[3] + v[2];", 4],
  ["counts of bits", "out[0] = popcount(ulong(a)) + clz(ulong(b)) + ctz(ulong(a));", 3 + 62 + 40],
  ["remainders of floats", "out[0] = fmod(x[0], x[1]) + fract(x[3]);", 1.5],
] as const)("what the tool calls ok runs: %s", (_name, body, expected) => {
  const text = source(body, "constant float kHalfPi = 1.57079632679489661923132169163975144;");
  const { exitCode, stdout } = compiled(text);
  expect(stdout).toMatch(/^ {2}ok {6}k: /m);
  expect(exitCode).toBe(0);
  using device = Device.open();
  device.registerSource("k.metal", text);
  using pipeline = device.pipeline("k");
  using x = device.tensor("f32", [4]).set([7, 3, -2, 0.5]);
  using out = device.tensor("f32", [1]);
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: [out, x], grid: 1, threads: 1 });
  pass.commitAndWait();
  expect(out.toFloat32Array()[0]).toBe(Math.fround(Number(expected)));
});

test.each([
  ["double", "double d = x[0]; out[0] = float(d);", "double"],
  ["fma of doubles", "out[0] = float(fma((double)x[0], (double)x[1], 1.0));", "double"],
  ["a sum in double by auto", "auto d = static_cast<double>(x[0]) + x[1]; out[0] = d;", "double"],
  ["128 bits", "__int128 wide = a; out[0] = float(wide * b);", "__int128"],
  ["unsigned 128 bits by division", "unsigned __int128 wide = ulong(a); out[0] = float(wide / ulong(b));", "__int128"],
  ["128 bits by their other name", "__uint128_t wide = ulong(a); out[0] = float(wide / 3);", "__uint128_t"],
  ["a function that is declared only", "out[0] = missing(x[0]);", "missing"],
  ["a function of C's library", "out[0] = tgamma(x[0]);", "tgamma"],
  ["a builtin of clang's", "out[0] = __builtin_fma(x[0], x[1], 1.0f);", "__builtin_fma"],
  ["a long double", "out[0] = float(1.0L * x[0]);", "long double"],
  ["_Float64x", "_Float64x d = x[0]; out[0] = d;", "_Float64x"],
  ["__float128", "__float128 d = x[0]; out[0] = d;", "__float128"],
  ["a complex number", "_Complex float z = x[0]; out[0] = __real__ (z * z);", "_Complex"],
] as const)("what the tool refuses Bun refuses, as the source's fault: %s", (_name, body, word) => {
  const text = source(body, "float missing(float);");
  const { exitCode, stdout } = compiled(text);
  expect(exitCode).toBe(1);
  expect(stdout).toContain(word);
  using device = Device.open();
  device.registerSource("k.metal", text);
  const error = thrownBy(() => device.pipeline("k"));
  expect(error.code).toBe("shader-compilation");
  expect(error.message).toContain(word);
});
