/** Rows of quantized blocks in the layouts of ggml, and the values that they stand for. */
import { bitsOf, half, numberOf } from "./formats.ts";
import { range } from "./harness.ts";

/** A row of weights: its bytes, and each weight as a number. */
export interface Row {
  readonly bytes: readonly number[];
  readonly values: readonly number[];
}

/** A row of `count` blocks, from random numbers in [0, 1). */
export type RowMaker = (count: number, random: () => number) => Row;

/** A random scale as half: its two bytes and its value. */
function scale(random: () => number): { bytes: number[]; value: number } {
  const bits = bitsOf(half, random() / 8);
  return { bytes: [bits & 255, bits >> 8], value: numberOf(half, bits) };
}

const rowOf =
  (block: (random: () => number) => Row): RowMaker =>
  (count, random) => {
    const blocks = range(count, () => block(random));
    return { bytes: blocks.flatMap(({ bytes }) => bytes), values: blocks.flatMap(({ values }) => values) };
  };
/** The low nibbles are the first half of the values, the high ones the second. */
const nibbles = (codes: readonly number[]): number[] =>
  range(codes.length / 2, (k) => (codes[k] ?? 0) | ((codes[k + codes.length / 2] ?? 0) << 4));

/** 32 values d (q - 8). */
export const q4_0 = rowOf((random) => {
  const d = scale(random);
  const codes = range(32, () => Math.floor(random() * 16));
  return { bytes: [...d.bytes, ...nibbles(codes)], values: codes.map((q) => d.value * (q - 8)) };
});

/** 32 values d q, q a signed byte. */
export const q8_0 = rowOf((random) => {
  const d = scale(random);
  const codes = range(32, () => Math.floor(random() * 255) - 127);
  return { bytes: [...d.bytes, ...codes.map((q) => q & 255)], values: codes.map((q) => d.value * q) };
});

const nonlinear = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/** 32 values d t[q] from a table. */
export const iq4_nl = rowOf((random) => {
  const d = scale(random);
  const codes = range(32, () => Math.floor(random() * 16));
  return { bytes: [...d.bytes, ...nibbles(codes)], values: codes.map((q) => d.value * (nonlinear[q] ?? 0)) };
});

/**
 * 256 values: for each 32 of them d s q - m l, with 6 bits for s and for l. Scales 0 to 3 and then minima 0 to 3 fill the
 * low 6 bits of 8 bytes; of scales and minima 4 to 7 the low 4 bits are in 4 more bytes, the others in the high 2 bits of
 * the first 8.
 */
export const q4_K = rowOf((random) => {
  const [d, m] = [scale(random), scale(random)];
  const [scales, minima] = [range(8, () => Math.floor(random() * 64)), range(8, () => Math.floor(random() * 64))];
  const codes = range(256, () => Math.floor(random() * 16));
  const high = (list: readonly number[], k: number): number => (list[k] ?? 0) | (((list[k + 4] ?? 0) >> 4) << 6);
  const low = (k: number): number => ((scales[k + 4] ?? 0) & 15) | (((minima[k + 4] ?? 0) & 15) << 4);
  const packed = [...range(4, (k) => high(scales, k)), ...range(4, (k) => high(minima, k)), ...range(4, low)];
  return {
    bytes: [...d.bytes, ...m.bytes, ...packed, ...range(4, (k) => nibbles(codes.slice(64 * k, 64 * k + 64))).flat()],
    values: codes.map((q, k) => d.value * (scales[k >> 5] ?? 0) * q - m.value * (minima[k >> 5] ?? 0)),
  };
});
