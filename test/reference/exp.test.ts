import { describe, expect, test } from "bun:test";
import { exp } from "../../src/reference/index.ts";
import { seededRandom } from "../helpers/random.ts";

/** e^x by exact integer arithmetic with 200 bits after the point, for |x| < 750. */
function exactExp(x: number): bigint {
  const bits = 1400n;
  // A float64 is an integer times 2^-1074.
  let [mantissa, exponent] = [x, 0n];
  while (!Number.isInteger(mantissa)) {
    mantissa *= 2;
    exponent += 1n;
  }
  const fixed = (BigInt(mantissa) << bits) >> exponent;
  // (e^(x / 2^12))^(2^12), the inner one by its series.
  const small = fixed >> 12n;
  let [term, sum] = [1n << bits, 1n << bits];
  for (let n = 1n; term !== 0n && n < 400n; n++) {
    term = ((term * small) >> bits) / n;
    sum += term;
  }
  for (let i = 0; i < 12; i++) sum = (sum * sum) >> bits;
  return sum;
}

/** Error of `value` for e^x, in units in the last place of `value`. */
function ulps(value: number, x: number): number {
  const bits = 1400n;
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const biased = (view.getUint32(0) >>> 20) & 0x7ff;
  const exponent = Math.max(biased, 1) - 1075;
  // value = mantissa * 2^exponent
  const mantissa = (view.getBigUint64(0) & 0xf_ffff_ffff_ffffn) + (biased === 0 ? 0n : 1n << 52n);
  const unit = bits + BigInt(exponent);
  const difference = exactExp(x) - (mantissa << unit);
  const scaled = (difference * 1000n) >> unit;
  return Math.abs(Number(scaled)) / 1000;
}

describe("exp", () => {
  test("is within one unit in the last place of e^x", () => {
    const random = seededRandom(3);
    const points = [0, 1, -1, 0.5, 2 ** -30, -(2 ** -60), 709.7, -708.3, -720.25, -744.5];
    for (let i = 0; i < 300; i++) points.push((random() - 0.5) * 2 ** (i % 11));
    for (const x of points) expect([x, ulps(exp(x), x) < 1]).toEqual([x, true]);
  });

  test("has exact values at its ends", () => {
    expect(exp(0)).toBe(1);
    expect(exp(-0)).toBe(1);
    expect(exp(Number.NEGATIVE_INFINITY)).toBe(0);
    expect(exp(-746)).toBe(0);
    expect(exp(Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY);
    expect(exp(710)).toBe(Number.POSITIVE_INFINITY);
    expect(exp(Number.NaN)).toBeNaN();
  });

  test("has the bits that the same formula has in another language", () => {
    const bits = (x: number) => new DataView(new Float64Array([exp(x)]).buffer).getBigUint64(0, true).toString(16);
    // Python's floats, math.ldexp for the power of two.
    expect([1, -0.1, -20.75, 88.5].map(bits)).toEqual([
      "4005bf0a8b14576a",
      "3fecf46d99d52b3a",
      "3e10ba06b3d9c887",
      "47e99b987155fe28",
    ]);
  });
});
