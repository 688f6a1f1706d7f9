import { perSupport, type Support } from "../../ffi/support.ts";

/** Element types of q, k, v and out that have kernels. */
export type AttentionDType = Support["flashAttnPrefill"][number]["dtype"];

/** Without a mask, with one in the dtype of q that is added to the scores, or with one of bool. */
export type AttentionMaskKind = Support["flashAttnPrefill"][number]["mask"];

/**
 * A combination that {@link flashAttnPrefill} supports, with any batch, heads,
 * lengths and strides, causal or not, and with tile classes where it has a mask.
 */
export interface FlashAttnPrefillSupport {
  /** Element type of q, k, v and out. */
  readonly dtype: AttentionDType;
  readonly headDim: number;
  readonly mask: AttentionMaskKind;
  /** Entry point in `flash_attn_prefill.metal`. */
  readonly kernel: string;
  /** Query rows of a threadgroup. */
  readonly queryTile: number;
  /** Keys of a tile. */
  readonly keyTile: number;
  /** SIMD groups of a threadgroup, along its rows and the values of a head. */
  readonly simdgroups: number;
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

const table = perSupport(({ flashAttnPrefill }) =>
  Object.freeze(
    flashAttnPrefill.map((row) => Object.freeze({ ...row, maxErrorToPlain: 2, maxNmse: maxNmse[row.dtype] })),
  ),
);

/**
 * Every combination of dtype, head size and mask that {@link flashAttnPrefill}
 * supports, with its kernel, its tiles and its error contract.
 *
 * @example
 * const served = flashAttnPrefillSupport().some(({ dtype, headDim }) => dtype === "f16" && headDim === 96);
 */
export function flashAttnPrefillSupport(): readonly FlashAttnPrefillSupport[] {
  return table();
}
