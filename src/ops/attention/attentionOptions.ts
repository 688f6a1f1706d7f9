import { checkFlag, checkObject, checkPositive, checkU32, checkWindow } from "../../checks.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { OptionNames } from "../../optionNames.ts";
import { batchOf, checkAxis, checkI32, checkShapeIs, fromEnd, useBatched, useTensor } from "../shapes.ts";
import type { AttentionDType } from "./flashAttnPrefillSupport.ts";

/**
 * The newest tokens of a cache in full precision, before they go to it a block at a time. A row at position p sees the
 * keys from f(p) on here and those before in `k` and `v` of the call, with
 * f(p) = max(quantized, floor(max(0, p + 1 - tokens) / block) * block), p + 1 at most.
 */
export interface AttentionTail {
  /** [slots, Hkv, D] in the dtype of q: position p lies in slot p mod slots. */
  readonly k: Tensor<AttentionDType>;
  /** Of the same shape. */
  readonly v: Tensor<AttentionDType>;
  /** Keys that a row finds in it, and less than `block` more. */
  readonly tokens: number;
  /** Keys that leave it together. */
  readonly block: number;
  /** Keys, from position 0 on, that no row finds in it; 0 unless given. */
  readonly quantized?: number | undefined;
}

/** What {@link flashAttnPrefill} takes beside queries, keys, values and a mask. */
export interface AttentionOptionArgs {
  /** Keys that a row sees, its own position the last of them; with `causal`. All up to its own unless given. */
  readonly window?: number | undefined;
  /** Makes of a score s softcap * tanh(s / softcap), before mask and ALiBi. */
  readonly softcap?: number | undefined;
  /** [H]: one extra logit per head in the softmax, with no value; neither scaled nor soft-capped. */
  readonly sinks?: Tensor<"f32"> | undefined;
  /** [H]: adds slope * (j - p) to the score of key j for a row at position p. */
  readonly alibiSlopes?: Tensor<"f32"> | undefined;
  /**
   * Written, of the shape of `out` without D: the natural logarithm of each row's sum of exponentials, the sink's among
   * them; -infinity where it has none.
   */
  readonly lse?: Tensor<"f32"> | undefined;
  /**
   * [B]: the keys of each sequence, as the device has it when it runs, in place of `seqLenK`; the last query of a
   * sequence is at its last key. Values that the cache has no room for are clamped to those that it has.
   */
  readonly seqLens?: Tensor<"i32"> | undefined;
  /**
   * [B + 1]: q and out are [total, H, D], in which sequence b has the rows seqOffsets[b] to seqOffsets[b + 1] - 1.
   * Keys and values are packed alike, [total, Hkv, D], or lie in a cache of B sequences with 4 axes, which `seqLens`,
   * `seqLenK` or pages go with. They are read as the device has them when it runs; those that do not ascend from 0 to
   * total are taken for the nearest that do, and rows of no sequence stay unwritten.
   */
  readonly seqOffsets?: Tensor<"i32"> | undefined;
  /** True for a ring: slot = position mod kvCapacity, with the last kvCapacity of seqLenK positions. */
  readonly isSliding?: boolean | undefined;
  /**
   * [B, maxPages]: the page of each pageTokens positions; `k` and `v` are pages, [nPages, Hkv, pageTokens, D]. Numbers
   * outside the pool are clamped to it.
   */
  readonly blockTable?: Tensor<"i32"> | undefined;
  /** The newest tokens of one sequence, where they are not in `k` and `v`; with `causal`. */
  readonly tail?: AttentionTail | undefined;
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
  readonly tail: TailOption | undefined;
}

/** @internal A tail, checked apart from other arguments. */
export interface TailOption {
  readonly k: TensorRange;
  readonly v: TensorRange;
  readonly tokens: number;
  readonly block: number;
  readonly quantized: number;
}

const tailNames = new OptionNames<AttentionTail>("a tail", {
  k: true,
  v: true,
  tokens: true,
  block: true,
  quantized: true,
});

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
  tail: undefined,
};

/** @internal Reads and checks the options of a call. */
export function useOptions(args: AttentionOptionArgs, device: DeviceLifetime): AttentionOptions {
  const { window, softcap, sinks, alibiSlopes, lse, seqLens, seqOffsets, isSliding, blockTable, tail } = args;
  const hasScores = window !== undefined || softcap !== undefined || sinks !== undefined || alibiSlopes !== undefined;
  const hasSequences = seqLens !== undefined || seqOffsets !== undefined || blockTable !== undefined;
  const isPlain = !hasScores && !hasSequences && lse === undefined && isSliding === undefined && tail === undefined;
  if (isPlain) return noOptions;
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
    tail: tail === undefined ? undefined : useTail(tail, device),
  };
}

function useTail(given: AttentionTail, device: DeviceLifetime): TailOption {
  tailNames.check(checkObject(given, "tail"), "tail.");
  const { k, v, tokens, block, quantized } = given;
  const count = (value: unknown, name: string) => checkI32(checkU32(value, name), name, "the value");
  return {
    k: useTensor(k, device, "tail.k", 3, "[slots, Hkv, D]"),
    v: useTensor(v, device, "tail.v", 3, "[slots, Hkv, D]"),
    tokens: count(tokens, "tail.tokens"),
    block: count(block, "tail.block"),
    quantized: quantized === undefined ? 0 : count(quantized, "tail.quantized"),
  };
}

/** @internal Heads of a call, and what has as many. */
interface OptionAxes {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly sequences: number;
}

/** @internal Refuses options whose shapes do not fit the heads and sequences of a call. */
export function checkOptionShapes(options: AttentionOptions, axes: OptionAxes): void {
  const { sinks, alibiSlopes, seqLens, blockTable, tail } = options;
  const { heads, kvHeads, headDim, sequences } = axes;
  if (sinks !== undefined) checkAxis("sinks", "H", fromEnd(sinks, 1), heads, "q");
  if (alibiSlopes !== undefined) checkAxis("alibiSlopes", "H", fromEnd(alibiSlopes, 1), heads, "q");
  const where = options.seqOffsets === undefined ? "q" : "seqOffsets";
  if (seqLens !== undefined) checkAxis("seqLens", "B", fromEnd(seqLens, 1), sequences, where);
  if (blockTable !== undefined) checkAxis("blockTable", "B", batchOf(blockTable, 1), sequences, where);
  if (tail === undefined) return;
  for (const [name, range] of [["tail.k", tail.k] as const, ["tail.v", tail.v] as const]) {
    checkAxis(name, "Hkv", fromEnd(range, 2), kvHeads, "k");
    checkAxis(name, "D", fromEnd(range, 1), headDim, "q");
    checkAxis(name, "slots", fromEnd(range, 3), fromEnd(tail.k, 3), "tail.k");
  }
}

/** @internal Refuses `lse` unless it has the shape `expected`, that of the output without D. */
export function checkLseShape(lse: TensorRange, expected: readonly number[]): void {
  checkShapeIs("lse", lse, expected, ", that of out without D");
}
