/**
 * Oracle of the Hadamard-quantized KV cache, in float64.
 *
 * A head vector x of D values is rotated to y ({@link hadamardRotate}). For
 * D <= 256 its norm is |y| and its scaled coordinates are z = y sqrt(D) / norm.
 * Above, each group of 256 coordinates has a norm of its own, the root of their
 * mean square, and z = y scaleFactorD512 / norm. Each z becomes the code of its
 * cell. Reading back takes the cell's centroid for z and goes the same way back.
 *
 * A norm of 1e-10 or less is stored as 0, with z = 0, and reads as zeros. One
 * whose square is not a finite float32 is stored as NaN, with code 0 throughout, and reads as NaN.
 */

import { at } from "./at.ts";
import { hadamardRotate, hadamardRotateBack } from "./hadamard.ts";
import {
  boundariesOf,
  bytesPerRow,
  type CodeFormat,
  centroidsOf,
  codeOf,
  packCodes,
  unpackCodes,
} from "./quantizedCodes.ts";
import { roundTo } from "./rounding.ts";

/** Norms of this size and less count as 0. */
const smallestNorm = 1e-10;

/** Norms that are stored for a head vector. */
export function normsPerPos(headDim: number): number {
  return Math.max(1, headDim / 256);
}

/** How vectors are encoded. */
export interface QuantizeOptions extends CodeFormat {
  /** Factor of the coordinates of head vectors of more than 256 values; 1 unless given. */
  readonly scaleFactorD512?: number;
  /** Whether the transform is randomised; true unless given. */
  readonly withSigns?: boolean | undefined;
}

/** A head vector in the cache. */
export interface QuantizedVector {
  readonly codes: Uint8Array<ArrayBuffer>;
  /** As numbers, not rounded to float32. */
  readonly norms: readonly number[];
  /** The values z that the codes stand for. */
  readonly scaled: Float64Array;
}

/** Encodes one head vector. */
export function quantizeVector(x: ArrayLike<number>, options: QuantizeOptions): QuantizedVector {
  const headDim = x.length;
  const { scaleFactorD512 = 1, withSigns = true } = options;
  const y = hadamardRotate(Float64Array.from(x), { withSigns });
  const count = normsPerPos(headDim);
  const group = headDim / count;
  const norms: number[] = [];
  const scaled = new Float64Array(headDim);
  for (let n = 0; n < count; n++) {
    const values = y.subarray(n * group, (n + 1) * group);
    const squares = values.reduce((sum, value) => sum + value * value, 0);
    const overflows = !Number.isFinite(roundTo("f32", squares));
    const norm = overflows ? Number.NaN : Math.sqrt(headDim <= 256 ? squares : squares / 256);
    norms.push(norm <= smallestNorm ? 0 : norm);
    const unit = headDim <= 256 ? Math.sqrt(headDim) : scaleFactorD512;
    const factor = norm <= smallestNorm ? 0 : unit / norm;
    for (let i = 0; i < group; i++) scaled[n * group + i] = at(values, i) * factor;
  }
  const boundaries = boundariesOf(options.bits);
  return { codes: Uint8Array.from(scaled, (z) => codeOf(z, boundaries)), norms, scaled };
}

/** Decodes one head vector from its codes and norms. */
export function dequantizeVector(
  codes: ArrayLike<number>,
  norms: ArrayLike<number>,
  options: QuantizeOptions,
): Float64Array {
  const headDim = codes.length;
  const { scaleFactorD512 = 1, withSigns = true } = options;
  const group = headDim / normsPerPos(headDim);
  const centroids = centroidsOf(options.bits);
  const unit = headDim <= 256 ? Math.sqrt(headDim) : scaleFactorD512;
  const y = Float64Array.from(codes, (code, i) => (at(centroids, code) * at(norms, Math.floor(i / group))) / unit);
  return hadamardRotateBack(y, { withSigns });
}

/** A quantized cache: packed [nKvHeads, capacity, bytesPerRow], norms [nKvHeads, capacity, normsPerPos]. */
export interface QuantizedCache {
  readonly packed: Uint8Array;
  readonly norms: Float32Array;
}

/** Positions of a dispatch, and the extents of the cache. */
export interface CachePositions {
  readonly nKvHeads: number;
  readonly headDim: number;
  readonly capacity: number;
  /** First position, before wrapping. */
  readonly posStart: number;
  readonly nTokens: number;
  /** A ring: slot = position mod capacity. */
  readonly isSliding: boolean;
}

/** Index of the cache row of a head and token. */
function cacheRow({ capacity, posStart, isSliding }: CachePositions, head: number, token: number): number {
  const position = posStart + token;
  return head * capacity + (isSliding ? position % capacity : position);
}

/**
 * Writes tokens `srcTokOffset` and on of src [tokens, nKvHeads, headDim] into
 * `cache`. `probe`, [nTokens, nKvHeads, headDim], gets the scaled coordinates.
 */
export function referenceHadamardQuantizeKv(
  src: ArrayLike<number>,
  cache: QuantizedCache,
  positions: CachePositions & { readonly srcTokOffset: number },
  options: QuantizeOptions,
  probe?: Float64Array,
): void {
  const { nKvHeads, headDim, nTokens, srcTokOffset } = positions;
  const rowBytes = bytesPerRow(headDim, options);
  for (let token = 0; token < nTokens; token++) {
    for (let head = 0; head < nKvHeads; head++) {
      const first = ((srcTokOffset + token) * nKvHeads + head) * headDim;
      const x = Float64Array.from({ length: headDim }, (_, i) => at(src, first + i));
      const { codes, norms, scaled } = quantizeVector(x, options);
      const row = cacheRow(positions, head, token);
      cache.packed.set(packCodes(codes, options), row * rowBytes);
      cache.norms.set(norms, row * norms.length);
      probe?.set(scaled, (token * nKvHeads + head) * headDim);
    }
  }
}

/** Reads `nTokens` positions of `cache`: [nKvHeads, nTokens, headDim], not rounded. */
export function referenceDequantizeKv(
  cache: QuantizedCache,
  positions: CachePositions,
  options: QuantizeOptions,
): Float64Array {
  const { nKvHeads, headDim, nTokens } = positions;
  const rowBytes = bytesPerRow(headDim, options);
  const count = normsPerPos(headDim);
  const out = new Float64Array(nKvHeads * nTokens * headDim);
  for (let head = 0; head < nKvHeads; head++) {
    for (let token = 0; token < nTokens; token++) {
      const row = cacheRow(positions, head, token);
      const codes = unpackCodes(cache.packed.subarray(row * rowBytes, (row + 1) * rowBytes), headDim, options);
      const norms = cache.norms.subarray(row * count, (row + 1) * count);
      out.set(dequantizeVector(codes, norms, options), (head * nTokens + token) * headDim);
    }
  }
  return out;
}
