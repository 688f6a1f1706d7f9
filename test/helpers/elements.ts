import type { Device, Tensor } from "../../src/index.ts";
import { type ElementBits, encode, type FloatName } from "../../src/reference/index.ts";
import { seededRandom } from "./random.ts";

/** The bits of a tensor's elements, without a copy. */
export function bitsOf(tensor: Tensor): ElementBits {
  const { buffer, byteOffset } = tensor.bytes;
  const Bits = tensor.dtype === "f32" ? Uint32Array : Uint16Array;
  return new Bits(buffer, byteOffset, tensor.length);
}

/** Storage for the bits of `length` elements. */
export function newBits(dtype: FloatName, length: number): ElementBits {
  return dtype === "f32" ? new Uint32Array(length) : new Uint16Array(length);
}

/** A tensor inside a larger one, whose elements before and after it must survive. */
export interface PlacedTensor {
  readonly whole: Tensor;
  readonly part: Tensor;
  /** Elements of `whole` before `part`. */
  readonly offset: number;
}

const tail = 7;

/** A tensor that begins `offset` elements into a larger one: unless a multiple of 4, no 4-element vector is aligned. */
export function placeTensor(device: Device, dtype: FloatName, shape: readonly number[], offset: number): PlacedTensor {
  const length = shape.reduce((product, extent) => product * extent, 1);
  const whole: Tensor = device.tensor(dtype, [offset + length + tail]);
  return { whole, part: whole.slice(offset, offset + length).reshape(shape), offset };
}

/** A pattern that no copy of ordinary values produces by chance, different from element to element. */
export function fillPattern(bits: ElementBits, seed: number): void {
  for (let i = 0; i < bits.length; i++) bits[i] = Math.imul(i + 1, 0x9e3779b1) ^ (seed * 0x01000193);
}

const bothSigns = (values: readonly number[]): number[] => values.flatMap((value) => [value, -value]);

/** Values at which a conversion from f32 to f16 or bf16 goes wrong first. */
const edgesOfF32: readonly number[] = bothSigns([
  0,
  1,
  2 ** -149, // the smallest subnormal float
  2 ** -126 - 2 ** -149, // the largest
  2 ** -126,
  2 ** -133, // the smallest subnormal bfloat
  2 ** -134, // a tie with 0
  2 ** -134 + 2 ** -149,
  3 * 2 ** -134, // a tie, upwards
  2 ** -24, // the smallest subnormal half
  2 ** -25, // a tie with 0
  2 ** -25 + 2 ** -48,
  3 * 2 ** -25, // a tie, upwards
  2 ** -14 - 2 ** -24, // the largest subnormal half
  2 ** -14 - 2 ** -25, // a tie with the smallest normal half
  2 ** -14,
  1 + 2 ** -11, // a tie, downwards, of halves
  1 + 3 * 2 ** -11, // a tie, upwards
  1 + 2 ** -11 + 2 ** -23,
  1 + 3 * 2 ** -11 - 2 ** -23,
  1 + 2 ** -8, // a tie, downwards, of bfloats
  1 + 3 * 2 ** -8, // a tie, upwards
  1 + 2 ** -8 + 2 ** -23,
  1 + 3 * 2 ** -8 - 2 ** -23,
  2 - 2 ** -23, // carries into the exponent
  65504,
  65520 - 2 ** -8,
  65520, // a tie with infinity
  2 ** 16,
  2 ** 127 * (2 - 2 ** -7), // the largest bfloat
  2 ** 127 * (2 - 2 ** -8), // a tie with infinity
  2 ** 127 * (2 - 2 ** -8 - 2 ** -23),
  2 ** 127 * (2 - 2 ** -23),
  Number.POSITIVE_INFINITY,
]);

/** NaNs: quiet and signalling, of both signs, with payloads in high and in low bits. */
const nans: Readonly<Record<FloatName, readonly number[]>> = {
  f32: [0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7f80ffff, 0x7fa5a5a5, 0xffffffff, 0x7fbfffff],
  f16: [0x7e00, 0xfe00, 0x7c01, 0xfc01, 0x7d55, 0xffff, 0x7dff],
  bf16: [0x7fc0, 0xffc0, 0x7f81, 0xff81, 0x7fa5, 0xffff, 0x7fbf],
};

/** The edges of a format: signed zeros, subnormals, ties, infinities, NaNs. */
export function edgeBits(dtype: FloatName): number[] {
  return [...edgesOfF32.map((value) => encode(dtype, value)), ...nans[dtype]];
}

/** Edges, arbitrary bits and values near 1, in turn and from a seeded generator. */
export function fillEdgesAndNoise(bits: ElementBits, dtype: FloatName, seed: number): void {
  const random = seededRandom(seed);
  const edges = edgeBits(dtype);
  const patterns = 2 ** (8 * bits.BYTES_PER_ELEMENT);
  for (let i = 0; i < bits.length; i++) {
    const kind = (i + seed) % 3;
    if (kind === 0) bits[i] = edges[Math.floor(random() * edges.length)] as number;
    else if (kind === 1) bits[i] = Math.floor(random() * patterns);
    else bits[i] = encode(dtype, (random() - 0.5) * 4);
  }
}

/** Whether the bits are a NaN. */
export function isNaNBits(dtype: FloatName, bits: number): boolean {
  if (dtype === "f32") return (bits & 0x7fffffff) >>> 0 > 0x7f800000;
  return (bits & 0x7fff) > (dtype === "f16" ? 0x7c00 : 0x7f80);
}

/**
 * The first few elements whose bits differ, as text; empty when none do. With
 * `anyNaN` a NaN equals every other NaN, since a conversion may choose its bits.
 */
export function bitDifferences(
  dtype: FloatName,
  actual: ElementBits,
  expected: ElementBits,
  anyNaN = false,
): readonly string[] {
  if (actual.length !== expected.length) return [`${actual.length} elements instead of ${expected.length}`];
  const found: string[] = [];
  for (let i = 0; i < actual.length && found.length < 5; i++) {
    const a = actual[i] as number;
    const e = expected[i] as number;
    if (a === e || (anyNaN && isNaNBits(dtype, a) && isNaNBits(dtype, e))) continue;
    found.push(`element ${i}: 0x${a.toString(16)} instead of 0x${e.toString(16)}`);
  }
  return found;
}
