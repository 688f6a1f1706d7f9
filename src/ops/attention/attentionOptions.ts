import { checkFlag, checkPositive, checkWindow, refused } from "../../checks.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { batchOf, checkAxis, checkI32, fromEnd, useBatched, useTensor } from "../shapes.ts";

/** What {@link flashAttnPrefill} takes beside queries, keys, values and a mask. */
export interface AttentionOptionArgs {
  /** Keys that a row sees, its own position the last of them; with `causal`. All up to its own unless given. */
  readonly window?: number;
  /** Makes of a score s softcap * tanh(s / softcap), before mask and ALiBi. */
  readonly softcap?: number;
  /** [H]: a logit a head that takes part in the softmax without a value. It is neither scaled nor capped. */
  readonly sinks?: Tensor<"f32">;
  /** [H]: adds slope * (j - p) to the score of key j for a row at position p. */
  readonly alibiSlopes?: Tensor<"f32">;
  /**
   * Written, of the shape of `out` without D: the natural logarithm of each row's sum of exponentials, the sink's among
   * them; -infinity where it has none.
   */
  readonly lse?: Tensor<"f32">;
  /**
   * [B]: the keys of each sequence, as the device has it when it runs, in place of `seqLenK`; the last query of a
   * sequence is at its last key. Values that the cache has no room for are taken for the nearest that it has.
   */
  readonly seqLens?: Tensor<"i32">;
  /**
   * [B + 1]: q and out are [total, H, D], in which sequence b has the rows seqOffsets[b] to seqOffsets[b + 1] - 1.
   * Keys and values are packed alike, [total, Hkv, D], or lie in a cache of B sequences with 4 axes, which `seqLens`,
   * `seqLenK` or pages go with. They are read as the device has them when it runs; those that do not ascend from 0 to
   * total are taken for the nearest that do.
   */
  readonly seqOffsets?: Tensor<"i32">;
  /** True for a ring: slot = position mod kvCapacity, with the last kvCapacity of seqLenK positions. */
  readonly isSliding?: boolean;
  /**
   * [B, maxPages]: the page of each pageTokens positions; `k` and `v` are pages, [nPages, Hkv, pageTokens, D]. Numbers
   * outside of the pool are taken for the nearest page.
   */
  readonly blockTable?: Tensor<"i32">;
}

/** @internal They, checked apart from other arguments. */
export interface AttentionOptions {
  readonly window: number;
  readonly softcap: number;
  readonly sinks: TensorRange | undefined;
  readonly alibiSlopes: TensorRange | undefined;
  readonly lse: TensorRange | undefined;
  readonly seqLens: TensorRange | undefined;
  readonly seqOffsets: TensorRange | undefined;
  readonly isSliding: 0 | 1;
  readonly blockTable: TensorRange | undefined;
}

const noOptions: AttentionOptions = {
  window: 0,
  softcap: 0,
  sinks: undefined,
  alibiSlopes: undefined,
  lse: undefined,
  seqLens: undefined,
  seqOffsets: undefined,
  isSliding: 0,
  blockTable: undefined,
};

/** @internal Reads and checks the options of a call. */
export function useOptions(args: AttentionOptionArgs, device: DeviceLifetime): AttentionOptions {
  const { window, softcap, sinks, alibiSlopes, lse, seqLens, seqOffsets, isSliding, blockTable } = args;
  const hasScores = window !== undefined || softcap !== undefined || sinks !== undefined || alibiSlopes !== undefined;
  const hasSequences = seqLens !== undefined || seqOffsets !== undefined || blockTable !== undefined;
  if (!hasScores && !hasSequences && lse === undefined && isSliding === undefined) return noOptions;
  const vector = (value: unknown, name: string, axes: string) =>
    value === undefined ? undefined : useTensor(value, device, name, 1, axes);
  return {
    window: window === undefined ? 0 : checkI32(checkWindow(window), "window", "the window"),
    softcap: softcap === undefined ? 0 : checkPositive(softcap, "softcap"),
    sinks: vector(sinks, "sinks", "[H]"),
    alibiSlopes: vector(alibiSlopes, "alibiSlopes", "[H]"),
    lse: lse === undefined ? undefined : Tensor.use(lse, device, "lse"),
    seqLens: vector(seqLens, "seqLens", "[B]"),
    seqOffsets: vector(seqOffsets, "seqOffsets", "[B + 1]"),
    isSliding: checkFlag(isSliding, "isSliding"),
    blockTable: blockTable === undefined ? undefined : useBatched(blockTable, device, "blockTable", 1, "[maxPages]"),
  };
}

/** @internal Refuses options whose shapes do not fit the heads and sequences of a call. */
export function checkOptionShapes(options: AttentionOptions, heads: number, sequences: number): void {
  const { sinks, alibiSlopes, seqLens, blockTable } = options;
  if (sinks !== undefined) checkAxis("sinks", "H", fromEnd(sinks, 1), heads, "q");
  if (alibiSlopes !== undefined) checkAxis("alibiSlopes", "H", fromEnd(alibiSlopes, 1), heads, "q");
  const where = options.seqOffsets === undefined ? "q" : "seqOffsets";
  if (seqLens !== undefined) checkAxis("seqLens", "B", fromEnd(seqLens, 1), sequences, where);
  if (blockTable !== undefined) checkAxis("blockTable", "B", batchOf(blockTable, 1), sequences, where);
}

/** @internal Refuses `lse` unless it has the shape `expected`, that of the output without D. */
export function checkLseShape({ shape }: TensorRange, expected: readonly number[]): void {
  if (shape.length !== expected.length || shape.some((extent, axis) => extent !== expected[axis])) {
    throw refused("lse", `expected shape [${expected}], that of out without D, got [${shape}]`);
  }
}
