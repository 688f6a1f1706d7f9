import { checkLength, checkObject, display, refused } from "../../checks.ts";
import { dtypeSize, type FloatDType, floatDTypes } from "../../device/dtypes.ts";
import { OptionNames } from "../../optionNames.ts";
import {
  bytesPerRow,
  normsPerPosition,
  type QuantizedBits,
  type QuantizedPacking,
  useFormat,
} from "./quantizedFormat.ts";

/** Arguments of {@link kvCacheBytes}: a quantized cache by `bits`, or a plain one by `dtype`. */
export type KvCacheBytesArgs = {
  /** Values of a head vector. */
  readonly headDim: number;
  /** Heads of K, and as many of V. */
  readonly nKvHeads: number;
  /** Tokens that the cache holds. */
  readonly capacity: number;
  /** Layers with a cache each; 1 unless given. */
  readonly nLayers?: number | undefined;
} & (
  | { readonly bits: QuantizedBits; readonly packing?: QuantizedPacking | undefined; readonly dtype?: undefined }
  | { readonly dtype: FloatDType; readonly bits?: undefined; readonly packing?: undefined }
);

/** What a cache costs; bytes, of K and V together and of all layers, unless said otherwise. */
export interface KvCacheBytes {
  /** Bytes of one head vector's row of codes, or of its elements: the last axis of `packed`. */
  readonly bytesPerRow: number;
  /** Norms of one head vector, the last axis of `norms`; 0 for a plain cache. */
  readonly normsPerPos: number;
  /** Bytes of codes, or of elements. */
  readonly packed: number;
  /** Bytes of norms. */
  readonly norms: number;
  /** Bytes in all. */
  readonly total: number;
  /** Bytes of each token. */
  readonly perToken: number;
  /** Bits of each value, norms included. */
  readonly bitsPerValue: number;
}

const argNames = new OptionNames<KvCacheBytesArgs>("kvCacheBytes", {
  headDim: true,
  nKvHeads: true,
  capacity: true,
  nLayers: true,
  bits: true,
  packing: true,
  dtype: true,
});

/**
 * What a K and V cache costs, before anyone allocates it.
 *
 * Errors: `unsupported` for a width, packing or head size that no kernel
 * serves, or another dtype, with those that are; `invalid-argument` for bits
 * beside a dtype, or neither; `overflow` beyond 2^53 bytes.
 *
 * @example
 * const shape = { headDim: 128, nKvHeads: 8, capacity: 8192, nLayers: 32 };
 * kvCacheBytes({ ...shape, dtype: "f16" }).total; // 1073741824
 * kvCacheBytes({ ...shape, bits: 4 }).total;      //  285212672, 4.25 bits per value
 */
export function kvCacheBytes(args: KvCacheBytesArgs): KvCacheBytes {
  argNames.check(checkObject(args, "args"));
  const { headDim, nKvHeads, capacity, nLayers, bits, packing, dtype } = args;
  checkLength(headDim, "headDim");
  checkLength(nKvHeads, "nKvHeads");
  checkLength(capacity, "capacity");
  const layers = nLayers === undefined ? 1 : checkLength(nLayers, "nLayers");
  const row = dtype === undefined ? quantizedRow(headDim, bits, packing) : plainRow(headDim, dtype, bits, packing);

  const vectorsPerToken = 2 * nKvHeads * layers;
  const perToken = vectorsPerToken * (row.bytesPerRow + 4 * row.normsPerPos);
  const total = perToken * capacity;
  if (!Number.isSafeInteger(total)) {
    throw refused(
      "capacity",
      `${capacity} tokens of ${nKvHeads} heads of ${headDim} values in ${layers} layers take more than 2^53 bytes`,
      "overflow",
    );
  }
  return {
    ...row,
    packed: vectorsPerToken * capacity * row.bytesPerRow,
    norms: vectorsPerToken * capacity * 4 * row.normsPerPos,
    total,
    perToken,
    bitsPerValue: (8 * (row.bytesPerRow + 4 * row.normsPerPos)) / headDim,
  };
}

type Row = Pick<KvCacheBytes, "bytesPerRow" | "normsPerPos">;

function quantizedRow(headDim: number, bits: unknown, packing: unknown): Row {
  if (bits === undefined) throw refused("bits", "expected bits, or a dtype, got neither");
  const format = useFormat(bits, packing);
  return { bytesPerRow: bytesPerRow(headDim, format), normsPerPos: normsPerPosition(headDim) };
}

function plainRow(headDim: number, dtype: unknown, bits: unknown, packing: unknown): Row {
  if (bits !== undefined || packing !== undefined) {
    throw refused("dtype", "expected either bits, or a dtype, got both");
  }
  const known = floatDTypes.find((name) => name === dtype);
  if (known === undefined) {
    throw refused(
      "dtype",
      `${display(dtype)} is no dtype of a cache; supported: ${floatDTypes.join(", ")}`,
      "unsupported",
    );
  }
  if (headDim === 0) throw refused("headDim", "expected at least 1, got 0");
  return { bytesPerRow: headDim * dtypeSize(known), normsPerPos: 0 };
}
