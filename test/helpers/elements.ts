import { edgeBits } from "../../scripts/lib/edges.ts";
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
export interface PlacedTensor<T extends FloatName = FloatName> {
  readonly whole: Tensor<T>;
  readonly part: Tensor<T>;
  /** Elements of `whole` before `part`. */
  readonly offset: number;
}

const tail = 7;

/** A tensor that begins `offset` elements into a larger one: unless a multiple of 4, no 4-element vector is aligned. */
export function placeTensor<T extends FloatName>(
  device: Device,
  dtype: T,
  shape: readonly number[],
  offset: number,
): PlacedTensor<T> {
  const length = shape.reduce((product, extent) => product * extent, 1);
  const whole = device.tensor(dtype, [offset + length + tail]);
  return { whole, part: whole.slice(offset, offset + length).reshape(shape), offset };
}

/** A pattern that no copy of ordinary values produces by chance, different from element to element. */
export function fillPattern(bits: ElementBits, seed: number): void {
  for (let i = 0; i < bits.length; i++) bits[i] = Math.imul(i + 1, 0x9e3779b1) ^ (seed * 0x01000193);
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
function isNaNBits(dtype: FloatName, bits: number): boolean {
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
