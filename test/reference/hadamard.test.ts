import { describe, expect, test } from "bun:test";
import {
  boundariesOf,
  bytesPerRow,
  centroidsOf,
  codeOf,
  dequantizeVector,
  hadamardBlock,
  hadamardRotate,
  hadamardRotateBack,
  hadamardSign,
  normsPerPos,
  packCodes,
  quantizeVector,
  referenceDequantizeKv,
  referenceHadamardQuantizeKv,
  unpackCodes,
} from "../../src/reference/index.ts";
import { promisedHeadSizes } from "../helpers/promised.ts";

describe("signs", () => {
  const first = (count: number, from = 0) => Array.from({ length: count }, (_, j) => hadamardSign(from + j));

  test("a7 = 1010 0111: the least significant bit is coordinate 0", () => {
    expect(first(8)).toEqual([-1, -1, -1, 1, 1, -1, 1, -1]);
  });

  test("3b = 0011 1011 follows", () => {
    expect(first(8, 8)).toEqual([-1, -1, 1, -1, -1, -1, 1, 1]);
  });

  test("coordinates 256 on have bytes of their own (d3), 512 on repeat", () => {
    expect(first(8, 256)).toEqual([-1, -1, 1, 1, -1, 1, -1, -1]);
    expect(first(512, 512)).toEqual(first(512));
    expect(first(8, 504)).toEqual([-1, 1, -1, 1, 1, 1, 1, -1]);
  });
});

describe("transform", () => {
  test("4 values by hand", () => {
    // Signs - - - +: [-1, -2, -3, 4], half of the rows + + + +, + - + -, + + - -, + - - +.
    expect([...hadamardRotate(Float64Array.of(1, 2, 3, 4))]).toEqual([-1, -3, -2, 4]);
    expect([...hadamardRotate(Float64Array.of(1, 2, 3, 4), { withSigns: false })]).toEqual([5, -1, -2, 0]);
  });

  test("blocks are the largest power of two that divides the size", () => {
    expect(promisedHeadSizes.map(hadamardBlock)).toEqual([64, 16, 32, 16, 128, 64, 256, 512]);
    // 6 = 3 blocks of 2, signs - - - + + -, over sqrt(2).
    const y = hadamardRotate(Float64Array.of(1, 0, 1, 0, 1, 1));
    expect([...y].map((value) => Math.round(value * Math.SQRT2))).toEqual([-1, -1, -1, -1, 0, 2]);
  });

  test("each row of H is the sign of popcount(i & j)", () => {
    for (const j of [0, 5, 77, 127]) {
      const unit = new Float64Array(128);
      unit[j] = 1;
      const column = hadamardRotate(unit, { withSigns: false });
      const signs = Array.from(column, (_, i) => ((i & j).toString(2).replaceAll("0", "").length % 2 === 0 ? 1 : -1));
      expect([...column].map((value) => Math.sign(value))).toEqual(signs);
    }
  });

  test("keeps lengths and is undone", () => {
    for (const size of [64, 80, 112, 512, 1024]) {
      const x = Float64Array.from({ length: size }, (_, i) => Math.sin(i * i) * (i + 1));
      const y = hadamardRotate(x);
      const length = (v: Float64Array) => Math.hypot(...v);
      expect(length(y) / length(x)).toBeCloseTo(1, 12);
      const back = hadamardRotateBack(y);
      expect(Math.max(...back.map((value, i) => Math.abs(value - (x[i] as number))))).toBeLessThan(1e-10);
    }
  });
});

describe("codes", () => {
  test("a value on a boundary takes the lower code", () => {
    for (const bits of [2, 3, 4, 5, 6, 8] as const) {
      const boundaries = boundariesOf(bits);
      for (const [code, boundary] of boundaries.entries()) {
        expect(codeOf(boundary, boundaries)).toBe(code);
        expect(codeOf(boundary + 1e-9, boundaries)).toBe(code + 1);
      }
      for (const [code, centroid] of centroidsOf(bits).entries()) expect(codeOf(centroid, boundaries)).toBe(code);
      expect(codeOf(1e9, boundaries)).toBe(2 ** bits - 1);
      expect(codeOf(Number.NaN, boundaries)).toBe(0);
    }
  });

  const rows: readonly [string, Parameters<typeof packCodes>[1], number[], number[]][] = [
    ["nibble: the even code in the low half", { bits: 4, packing: "nibble" }, [1, 2, 15, 8], [0x21, 0x8f]],
    ["byte", { bits: 6, packing: "byte" }, [63, 0, 33], [63, 0, 33]],
    ["dense, 2 bits", { bits: 2, packing: "dense" }, [3, 0, 1, 2], [0b10_01_00_11]],
    // 1 | 2 << 3 | 7 << 6 | 4 << 9 | 5 << 12 | 0 << 15 | 3 << 18 | 6 << 21 = 0xcc59d1
    ["dense, 3 bits", { bits: 3, packing: "dense" }, [1, 2, 7, 4, 5, 0, 3, 6], [0xd1, 0x59, 0xcc]],
    ["dense, 4 bits: the same as nibbles", { bits: 4, packing: "dense" }, [1, 2, 15, 8], [0x21, 0x8f]],
    // 31 | 0 << 5 | 1 << 10 | 16 << 15 | 0... : 0x1f, 0x04, 0x08 (bit 19), 0, 0x80 with 16 << 35 = bit 39
    ["dense, 5 bits", { bits: 5, packing: "dense" }, [31, 0, 1, 16, 0, 0, 0, 16], [0x1f, 0x04, 0x08, 0, 0x80]],
    // 1 | 2 << 6 | 3 << 12 | 63 << 18 = 0xfc3081
    ["dense, 6 bits", { bits: 6, packing: "dense" }, [1, 2, 3, 63], [0x81, 0x30, 0xfc]],
  ];
  test.each(rows)("%s", (_, format, codes, bytes) => {
    expect([...packCodes(codes, format)]).toEqual(bytes);
    expect([...unpackCodes(bytes, codes.length, format)]).toEqual(codes);
    expect(bytesPerRow(codes.length, format)).toBe(bytes.length);
  });

  test("codes that do not fill whole bytes are refused", () => {
    expect(() => bytesPerRow(4, { bits: 3, packing: "dense" })).toThrow("4 codes of 3 bits");
  });
});

describe("head vectors", () => {
  const nibbles = { bits: 4, packing: "nibble" } as const;
  const extreme = 2.732589570995164;

  test("a unit vector: all coordinates are +-1 after scaling", () => {
    const x = new Float64Array(64);
    x[0] = 3;
    const { codes, norms, scaled } = quantizeVector(x, nibbles);
    expect(norms[0]).toBeCloseTo(3, 12);
    // Column 0 of H is all ones, the sign of coordinate 0 is -1: each z is -1, between -1.0993 and -0.7995.
    expect([...scaled].every((z) => Math.abs(z + 1) < 1e-12)).toBe(true);
    expect(new Set(codes)).toEqual(new Set([4]));
    // All coordinates read as -0.9423 * 3 / 8, which the inverse gathers in coordinate 0.
    const back = dequantizeVector(codes, norms, nibbles);
    expect(back[0]).toBeCloseTo(3 * 0.942340456486113, 9);
    expect(Math.max(...back.slice(1).map(Math.abs))).toBeLessThan(1e-12);
  });

  test("4 values: everything in one coordinate after the transform", () => {
    // S x = [1, 1, 1, 1] gives y = [2, 0, 0, 0], norm 2, z = [2, 0, 0, 0].
    const { codes, norms, scaled } = quantizeVector(Float64Array.of(-1, -1, -1, 1), nibbles);
    expect([...scaled]).toEqual([2, 0, 0, 0]);
    expect(norms).toEqual([2]);
    expect([...codes]).toEqual([14, 7, 7, 7]);
  });

  test("more than 256 values: a norm per 256, the root of their mean square", () => {
    expect([64, 256, 512, 1024, 4096].map(normsPerPos)).toEqual([1, 1, 2, 4, 16]);
    // x[0] = -512 / sqrt(512), x[256] likewise by its sign: y is 2 in the first half, 0 in the second.
    const x = new Float64Array(512);
    x[0] = (hadamardSign(0) * 512) / Math.sqrt(512);
    x[256] = (hadamardSign(256) * 512) / Math.sqrt(512);
    const options = { ...nibbles, scaleFactorD512: 0.5 };
    const { norms, scaled } = quantizeVector(x, options);
    expect(norms.map((norm) => norm.toFixed(9))).toEqual(["2.000000000", "0.000000000"]);
    expect([...scaled.subarray(0, 256)].every((z) => Math.abs(z - 0.5) < 1e-12)).toBe(true);
    const back = dequantizeVector(new Uint8Array(512).fill(15), [1, 0], options);
    // 256 coordinates of extreme / 0.5, gathered in coordinates 0 and 256.
    const expected = (hadamardSign(0) * 256 * extreme) / 0.5 / Math.sqrt(512);
    expect(back[0]).toBeCloseTo(expected, 9);
    expect(Math.abs(back[256] as number)).toBeCloseTo(Math.abs(expected), 9);
    expect(Math.abs(back[1] as number)).toBeLessThan(1e-12);
  });

  test("zero, tiny, NaN, infinite and too large vectors", () => {
    const encode = (value: number) => quantizeVector(new Float64Array(64).fill(value), nibbles);
    expect(encode(0).norms).toEqual([0]);
    expect(encode(1e-11 / 8).norms).toEqual([0]);
    expect(encode(1e-9).norms[0]).toBeCloseTo(8e-9, 15);
    expect([...dequantizeVector(encode(0).codes, [0], nibbles)].every((value) => value === 0)).toBe(true);
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY, 1e30]) {
      const { codes, norms } = encode(value);
      expect(norms).toEqual([Number.NaN]);
      expect(new Set(codes)).toEqual(new Set([0]));
      expect([...dequantizeVector(codes, norms, nibbles)].every(Number.isNaN)).toBe(true);
    }
  });
});

describe("caches", () => {
  const format = { bits: 4, packing: "nibble" } as const;
  const positions = { nKvHeads: 2, headDim: 4, capacity: 3, posStart: 5, nTokens: 2, isSliding: true };

  test("tokens go to position mod capacity of each head, and come back in order", () => {
    const cache = { packed: new Uint8Array(2 * 3 * 2).fill(0xee), norms: new Float32Array(6).fill(-1) };
    // Token 0 is not written; of each row only the norm is looked at.
    const src = [9, 9, 9, 9, 9, 9, 9, 9, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0];
    referenceHadamardQuantizeKv(src, cache, { ...positions, srcTokOffset: 1 }, format);
    // Positions 5 and 6 are slots 2 and 0.
    expect([...cache.norms]).toEqual([3, -1, 1, 4, -1, 2]);
    expect([...cache.packed.subarray(2, 4), ...cache.packed.subarray(8, 10)]).toEqual([0xee, 0xee, 0xee, 0xee]);
    const out = referenceDequantizeKv(cache, positions, format);
    const heads = [0, 1, 2, 3].map((row) => Math.round((out[row * 4] as number) / 0.942340456486113));
    expect(heads).toEqual([1, 3, 2, 4]);
  });

  test("a place outside the source throws", () => {
    const cache = { packed: new Uint8Array(12), norms: new Float32Array(6) };
    expect(() => referenceHadamardQuantizeKv([1, 2], cache, { ...positions, srcTokOffset: 0 }, format)).toThrow(
      RangeError,
    );
  });
});
