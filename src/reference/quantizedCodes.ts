/**
 * Codes of quantized coordinates and their bytes. A code of b bits is the index
 * of a centroid among the 2^b of the Lloyd-Max quantizer of N(0, 1), ascending.
 */

import { at } from "./at.ts";
import { CODEBOOKS } from "./codebooks.ts";

/** Bits of a code. */
export type CodeBits = keyof typeof CODEBOOKS;

/**
 * How codes lie in a row. `nibble`: 4 bits, two to a byte, the even index in the
 * low half. `byte`: 5, 6 or 8 bits, one to a byte. `dense`: without gaps, code i
 * in the bits from i * bits on, least significant first, the row's bit k being bit
 * k & 7 of its byte k >> 3.
 */
export type CodePacking = "nibble" | "byte" | "dense";

/** Bits and packing of a quantized cache. */
export interface CodeFormat {
  readonly bits: CodeBits;
  readonly packing: CodePacking;
}

/** Bits of a row that one code takes. */
function widthOf({ bits, packing }: CodeFormat): number {
  return { nibble: 4, byte: 8, dense: bits }[packing];
}

/** Bytes of a row of `headDim` codes; throws where they are not whole. */
export function bytesPerRow(headDim: number, format: CodeFormat): number {
  const bytes = (headDim * widthOf(format)) / 8;
  if (!Number.isInteger(bytes)) {
    throw new RangeError(`${headDim} codes of ${widthOf(format)} bits do not fill whole bytes`);
  }
  return bytes;
}

/** All centroids, ascending. */
export function centroidsOf(bits: CodeBits): readonly number[] {
  const { centroids } = CODEBOOKS[bits];
  return [...centroids.map((centroid) => -centroid).reverse(), ...centroids];
}

/** The 2^bits - 1 midpoints between them, ascending. */
export function boundariesOf(bits: CodeBits): readonly number[] {
  const centroids = centroidsOf(bits);
  return centroids.slice(1).map((centroid, i) => (centroid + at(centroids, i)) / 2);
}

/** The code of `value`: boundaries below it, so that a value on one takes the lower code. NaN has code 0. */
export function codeOf(value: number, boundaries: readonly number[]): number {
  let [low, high] = [0, boundaries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value > at(boundaries, middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The row of bytes that holds `codes`. */
export function packCodes(codes: ArrayLike<number>, format: CodeFormat): Uint8Array<ArrayBuffer> {
  const width = widthOf(format);
  const row = new Uint8Array(bytesPerRow(codes.length, format));
  for (let i = 0; i < codes.length; i++) {
    for (let bit = 0; bit < width; bit++) {
      const place = i * width + bit;
      if ((at(codes, i) >> bit) & 1) row[place >> 3] = at(row, place >> 3) | (1 << (place & 7));
    }
  }
  return row;
}

/** The codes in a row of bytes: the inverse of {@link packCodes}. Bits of a byte above the code's are left out. */
export function unpackCodes(row: ArrayLike<number>, headDim: number, format: CodeFormat): Uint8Array<ArrayBuffer> {
  const width = widthOf(format);
  const codes = new Uint8Array(headDim);
  for (let i = 0; i < headDim; i++) {
    for (let bit = 0; bit < format.bits; bit++) {
      const place = i * width + bit;
      codes[i] = at(codes, i) | (((at(row, place >> 3) >> (place & 7)) & 1) << bit);
    }
  }
  return codes;
}
