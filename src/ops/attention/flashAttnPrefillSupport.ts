import { attentionTiles, threadgroupMemory } from "./attentionTiles.ts";

const dtypes = ["bf16", "f16"] as const;
const headDims = [64, 80, 96, 112, 128, 192, 256, 512] as const;
const masks = ["none", "additive", "bool"] as const;

/** Element types of q, k, v and out that have kernels. */
export type AttentionDType = (typeof dtypes)[number];

/** Head sizes that have kernels. */
export type AttentionHeadDim = (typeof headDims)[number];

/** Without a mask, with one in the dtype of q that is added to the scores, or with one of bool. */
export type AttentionMaskKind = (typeof masks)[number];

/**
 * A combination that {@link flashAttnPrefill} supports, with any batch, heads,
 * lengths and strides, causal or not, and with tile classes where it has a mask.
 */
export interface FlashAttnPrefillSupport {
  /** Element type of q, k, v and out. */
  readonly dtype: AttentionDType;
  readonly headDim: AttentionHeadDim;
  readonly mask: AttentionMaskKind;
  /** Entry point in `flash_attn_prefill.metal`. */
  readonly kernel: string;
  /** Query rows of a threadgroup. */
  readonly queryTile: number;
  /** Keys of a tile. */
  readonly keyTile: number;
  /** Bytes. */
  readonly threadgroupMemory: number;
  /**
   * Contract: the largest error against the float64 result, as a multiple of
   * the one of a plain evaluation (products and sums in f32, the result rounded
   * to `dtype`).
   */
  readonly maxErrorToPlain: number;
  /** Contract: the squared error summed over a result, at most this part of its squared values. */
  readonly maxNmse: number;
}

const maxNmse: Readonly<Record<AttentionDType, number>> = { bf16: 1e-5, f16: 1e-6 };

const table: readonly FlashAttnPrefillSupport[] = Object.freeze(
  dtypes.flatMap((dtype) => headDims.flatMap((headDim) => masks.map((mask) => supportOf(dtype, headDim, mask)))),
);

function supportOf(dtype: AttentionDType, headDim: AttentionHeadDim, mask: AttentionMaskKind): FlashAttnPrefillSupport {
  const { queryTile, keyTile } = attentionTiles(headDim);
  return Object.freeze({
    dtype,
    headDim,
    mask,
    kernel: `flash_attn_prefill_${dtype}_d${headDim}${mask === "bool" ? "_boolmask" : ""}`,
    queryTile,
    keyTile,
    threadgroupMemory: threadgroupMemory(headDim),
    maxErrorToPlain: 2,
    maxNmse: maxNmse[dtype],
  });
}

/**
 * Every combination of dtype, head size and mask that {@link flashAttnPrefill}
 * supports, with its kernel, its tiles and its error contract.
 *
 * @example
 * const served = flashAttnPrefillSupport().some(({ dtype, headDim }) => dtype === "f16" && headDim === 96);
 */
export function flashAttnPrefillSupport(): readonly FlashAttnPrefillSupport[] {
  return table;
}
