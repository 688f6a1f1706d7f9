import { describe, expect, test } from "bun:test";
import { convertBits, decode, encode, roundTo } from "../../src/reference/index.ts";

describe("roundTo", () => {
  test.each([
    // bf16 has 8 significant bits: steps of 2^-7 above 1.
    ["bf16", 1 + 2 ** -8, 1],
    ["bf16", 1 + 3 * 2 ** -8, 1 + 2 ** -6],
    ["bf16", 1 + 2 ** -8 + 2 ** -20, 1 + 2 ** -7],
    ["bf16", -(1 + 3 * 2 ** -8), -(1 + 2 ** -6)],
    ["bf16", 3.3961775292304601e38, Number.POSITIVE_INFINITY],
    // f16 has 11: steps of 2^-10 above 1, a largest value of 65504.
    ["f16", 1 + 2 ** -11, 1],
    ["f16", 1 + 3 * 2 ** -11, 1 + 2 ** -9],
    ["f16", 65519.996, 65504],
    ["f16", 65520, Number.POSITIVE_INFINITY],
    ["f16", -70000, Number.NEGATIVE_INFINITY],
    // Subnormal halves are multiples of 2^-24.
    ["f16", 2 ** -25, 0],
    ["f16", 3 * 2 ** -25, 2 ** -23],
    ["f16", 2 ** -25 + 2 ** -40, 2 ** -24],
    ["f32", 1 + 2 ** -24, 1],
    ["f32", 2 ** -149, 2 ** -149],
  ] as const)("%s of %p is %p", (format, value, expected) => {
    expect(roundTo(format, value)).toBe(expected);
  });

  test("zeros keep their sign, NaN and infinities stay", () => {
    expect(Object.is(roundTo("bf16", -0), -0)).toBe(true);
    expect(Object.is(roundTo("f16", -(2 ** -30)), -0)).toBe(true);
    expect(roundTo("f16", Number.NaN)).toBeNaN();
    expect(roundTo("bf16", Number.NEGATIVE_INFINITY)).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe("encode and decode", () => {
  test.each([
    ["bf16", 1, 0x3f80],
    ["bf16", -2, 0xc000],
    ["bf16", Number.POSITIVE_INFINITY, 0x7f80],
    ["bf16", 2 ** -133, 0x0001],
    ["f16", 1, 0x3c00],
    ["f16", 65504, 0x7bff],
    ["f16", Number.NEGATIVE_INFINITY, 0xfc00],
    ["f16", 2 ** -24, 0x0001],
    ["f16", -0, 0x8000],
    ["f32", 1, 0x3f800000],
    ["f32", -(2 ** -149), 0x80000001],
  ] as const)("%s: %p is %p", (format, value, bits) => {
    expect(encode(format, value)).toBe(bits);
    expect(decode(format, bits)).toBe(value);
  });

  test("every f16 that is a number survives both ways", () => {
    let numbers = 0;
    for (let bits = 0; bits < 0x10000; bits++) {
      const value = decode("f16", bits);
      if (Number.isNaN(value)) continue;
      if (encode("f16", value) !== bits) throw new Error(`bits ${bits} came back as ${encode("f16", value)}`);
      numbers++;
    }
    expect(numbers).toBe(0x10000 - 2 * 1023);
  });

  test("f32 agrees with Math.fround, f16 with Float16Array", () => {
    const halves = new Float16Array(1);
    let state = 1;
    for (let i = 0; i < 20_000; i++) {
      state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
      const value = (state / 2 ** 32 - 0.5) * 2 ** ((state % 61) - 30);
      halves[0] = value;
      expect(roundTo("f32", value)).toBe(Math.fround(value));
      expect(roundTo("f16", value)).toBe(halves[0]);
    }
  });
});

describe("convertBits", () => {
  test("the same format keeps NaN payloads", () => {
    expect(convertBits("bf16", "bf16", 0x7f81)).toBe(0x7f81);
    expect(convertBits("f16", "f16", 0xfdff)).toBe(0xfdff);
  });

  test("a wider format keeps NaN payloads", () => {
    expect(convertBits("bf16", "f32", 0xff90)).toBe(0xff900000);
    expect(convertBits("f16", "f32", 0x7c01)).toBe(0x7f802000);
  });

  test("a NaN stays a quiet NaN with its sign, whatever bits are cut off", () => {
    expect(convertBits("f32", "bf16", 0x7f800001)).toBe(0x7fc0);
    expect(convertBits("f32", "bf16", 0xffffffff)).toBe(0xffff);
    expect(convertBits("f32", "f16", 0x7f800001)).toBe(0x7e00);
    expect(convertBits("f32", "f16", 0xffc02000)).toBe(0xfe01);
  });

  test("f32 to bf16 cuts 16 bits and rounds to even", () => {
    expect(convertBits("f32", "bf16", 0x3f808000)).toBe(0x3f80);
    expect(convertBits("f32", "bf16", 0x3f818000)).toBe(0x3f82);
    expect(convertBits("f32", "bf16", 0x7f7fffff)).toBe(0x7f80);
  });

  test("bf16 to f32 is exact", () => {
    expect(convertBits("bf16", "f32", 0xc049)).toBe(0xc0490000);
  });
});
