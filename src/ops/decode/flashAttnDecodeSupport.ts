import { perSupport, type Support } from "../../ffi/support.ts";

/** How K or V is stored: in f32, f16 or bf16, or as codes in any format of the quantized cache. */
export type DecodeStorage = Support["flashAttnDecode"][number]["k"];

/**
 * A combination that {@link flashAttnDecode} supports, with any batch, heads, lengths and layout of the cache, with
 * any option, q and out in f32, f16 or bf16.
 */
export interface FlashAttnDecodeSupport {
  readonly k: DecodeStorage;
  readonly v: DecodeStorage;
  /** Of q and K. */
  readonly headDim: number;
  /** Of V and out: 512 where headDim is 576 and V a part of K, which is f16 or bf16; else as headDim. */
  readonly valueDim: number;
  /** Entry point in `flash_attn_decode.metal`, of devices without matrix units. */
  readonly kernel: string;
  /** Queries, of heads that share K and V and of rows, of a SIMD group: 1 where there are no more. */
  readonly queryTile: number;
  /** Keys of a block, which a SIMD group owns. */
  readonly keyTile: number;
  /** Bytes. */
  readonly threadgroupMemory: number;
  /**
   * Contract, for an f32 result: the largest error against float64 attention over what the cache holds, as a part of
   * the largest value in V. 16 bits round once more, and with `alibiDistance` each score by its own size: slope times
   * distance.
   */
  readonly maxErrorToValues: number;
  /** Contract, for an f32 result: the squared error summed over a result, at most this part of its squared values. */
  readonly maxNmse: number;
}

const table = perSupport(({ flashAttnDecode }) =>
  Object.freeze(flashAttnDecode.map((row) => Object.freeze({ ...row, maxErrorToValues: 1e-5, maxNmse: 4e-12 }))),
);

/**
 * Every combination of storage and head size that {@link flashAttnDecode} supports, with its error contract, and with
 * kernels and tiles of devices without matrix units. A device with them (an NVIDIA GPU) has the same combinations and
 * contracts; there `flash_attn_vec_*matrices_d*` attend at a D of 64 and 128, over blocks of 1,024 keys, where K and V
 * are both f16 or both bf16, or one or both are codes and none is f32.
 *
 * @example
 * const served = flashAttnDecodeSupport().some(({ headDim, k, v }) => headDim === 128 && k === "dense" && v === "codes");
 */
export function flashAttnDecodeSupport(): readonly FlashAttnDecodeSupport[] {
  return table();
}
