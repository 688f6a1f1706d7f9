/**
 * The randomised Hadamard transform of a head vector, in float64.
 *
 * With B the largest power of two that divides D, S the diagonal of signs and
 * H the Sylvester-Hadamard matrix of order B, H[i][j] = (-1)^popcount(i & j),
 * each block of B coordinates becomes y = H S x / sqrt(B). H H = B I, so
 * x = S H y / sqrt(B) undoes it, and |y| = |x|.
 */

import { at } from "./at.ts";

/** Bit j & 7 of byte j >> 3 is the sign of coordinate j: 1 means -1. The 512 bits repeat. */
const signBytes = [
  0xa7, 0x3b, 0x91, 0xf4, 0x6d, 0xc2, 0x58, 0x0e, 0xb3, 0x7f, 0x24, 0xd6, 0x89, 0x45, 0xea, 0x1c, 0x63, 0xaf, 0xd8,
  0x52, 0x97, 0x0b, 0xe1, 0x3d, 0x76, 0xc4, 0x19, 0xfe, 0x4a, 0x85, 0x2c, 0xdb, 0xd3, 0x4e, 0xa8, 0x17, 0x9c, 0x5b,
  0xe6, 0x31, 0x72, 0xb9, 0x0d, 0xf5, 0x43, 0x8a, 0x6e, 0xc7, 0x58, 0x2f, 0x94, 0xe1, 0xb6, 0x3d, 0x0a, 0x7c, 0xc5,
  0x61, 0xd8, 0x4f, 0xa3, 0x97, 0x1e, 0x85,
];

/** The sign, 1 or -1, of coordinate `j` of a head vector of any size. */
export function hadamardSign(j: number): 1 | -1 {
  const bit = j % 512;
  return (at(signBytes, bit >> 3) >> (bit & 7)) & 1 ? -1 : 1;
}

/** The order of the transform for head vectors of `headDim` values: the largest power of two that divides it. */
export function hadamardBlock(headDim: number): number {
  let block = 1;
  while (headDim % (2 * block) === 0) block *= 2;
  return block;
}

/** `H v / sqrt(B)` for each block of B values. */
function transform(values: Float64Array): Float64Array {
  const result = values.slice();
  const block = hadamardBlock(values.length);
  for (let step = 1; step < block; step *= 2) {
    for (let i = 0; i < result.length; i++) {
      if (i & step) continue;
      const [low, high] = [at(result, i), at(result, i + step)];
      result[i] = low + high;
      result[i + step] = low - high;
    }
  }
  return result.map((value) => value / Math.sqrt(block));
}

const signed = (value: number, j: number): number => value * hadamardSign(j);

/** y = H S x / sqrt(B). `withSigns: false` leaves S out, for comparison. */
export function hadamardRotate(x: Float64Array, { withSigns = true } = {}): Float64Array {
  return transform(withSigns ? x.map(signed) : x);
}

/** x = S H y / sqrt(B): the inverse of {@link hadamardRotate}. */
export function hadamardRotateBack(y: Float64Array, { withSigns = true } = {}): Float64Array {
  const back = transform(y);
  return withSigns ? back.map(signed) : back;
}
