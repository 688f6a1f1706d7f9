import type { Block } from "./block.ts";
import { packTensor, type TensorRecord } from "./layout.ts";

// Packers of the quantised cache's argument structs (metal_attention.h), by
// 32-bit word. The layout tests compare each with the compiled library's own layout.

/** Values of `MA_PACKING_*`. */
export const packingCodes = { nibble: 1, byte: 2, dense: 3 } as const;

/** What the parameter structs of all kernels begin with, in their order. */
export interface HadamardCacheRecord {
  headDim: number;
  nKvHeads: number;
  /** First position in the cache, before wrapping. */
  position: number;
  capacity: number;
  isSliding: number;
  scaleFactorD512: number;
}

/**
 * Packs the six tensors that each argument struct begins with: of K and of V,
 * in the order of the kernel's buffers.
 */
export function packQuantizedStreams(
  { u32 }: Block,
  firstK: TensorRecord,
  secondK: TensorRecord,
  thirdK: TensorRecord,
  firstV: TensorRecord | undefined,
  secondV: TensorRecord | undefined,
  thirdV: TensorRecord | undefined,
): void {
  packTensor(u32, 0, firstK);
  packTensor(u32, 6, secondK);
  packTensor(u32, 12, thirdK);
  packTensor(u32, 18, firstV);
  packTensor(u32, 24, secondV);
  packTensor(u32, 30, thirdV);
}

function packCache({ u32, f32 }: Block, at: number, cache: HadamardCacheRecord): void {
  u32[at] = cache.headDim;
  u32[at + 1] = cache.nKvHeads;
  u32[at + 2] = cache.position;
  u32[at + 3] = cache.capacity;
  u32[at + 4] = cache.isSliding;
  f32[at + 5] = cache.scaleFactorD512;
}

/**
 * Packs the rest of `MAHadamardQuantizeKvArgs`: `HadamardQuantizeParams` for
 * nibbles, `HadamardQuantizeHbParams` for other packings, and zeros for the one not read.
 */
export function packHadamardQuantizeKv(
  block: Block,
  rmsScratch: TensorRecord | undefined,
  cache: HadamardCacheRecord,
  bits: number,
  packing: number,
): void {
  const { u32 } = block;
  packTensor(u32, 36, rmsScratch);
  const isNibble = packing === packingCodes.nibble;
  u32.fill(0, 42, 56);
  packCache(block, isNibble ? 42 : 49, cache);
  if (isNibble) u32[48] = rmsScratch === undefined ? 0 : 1;
  else u32[55] = bits;
  u32[56] = packing;
}

/**
 * Packs the rest of `MAHadamardQuantizeKvSeqArgs` or of `MAHadamardDequantizeKvArgs`,
 * which differ in one word: `last` is src_tok_offset of the one and out_dtype of the other.
 */
export function packHadamardRun(
  block: Block,
  cache: HadamardCacheRecord,
  bits: number,
  nTokens: number,
  last: number,
  packing: number,
): void {
  const { u32 } = block;
  packCache(block, 36, cache);
  u32[42] = bits;
  u32[43] = nTokens;
  u32[44] = last;
  u32[45] = packing;
}
