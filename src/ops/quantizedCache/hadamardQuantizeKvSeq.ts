import { checkObject, checkOptionalU32, checkU32, refused } from "../../checks.ts";
import type { PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import type { Tensor } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAHadamardQuantizeKvSeqArgs, structSizes } from "../../ffi/generated/structs.ts";
import { addressOf } from "../../ffi/memory.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { Parameter } from "../../parameter.ts";
import { type AppendRope, useAppendRope } from "../rope/appendRope.ts";
import { usePositions } from "../rope/ropeAngles.ts";
import { batchOf, checkAxis, checkTokens, fromEnd, slotsOfSequence, useBatched } from "../shapes.ts";
import {
  cacheParams,
  encodedTensors,
  type QuantizedWalkArgs,
  type QuantizeRuns,
  quantizedNames,
  quantizeRunNames,
  useQuantizedCall,
  vectorsArgument,
} from "./quantizedStreams.ts";

/**
 * Arguments of {@link hadamardQuantizeKvSeq}. Each `src` is f32, f16 or bf16 [nSrcTokens, nKvHeads, headDim],
 * each `packed` u8 [nKvHeads, capacity, bytesPerRow], each `norms` f32 [nKvHeads, capacity, normsPerPos], or all
 * with a batch axis before these. With `blockTable` the caches are pools of pages, [nPages, nKvHeads, pageTokens, ...].
 */
export type HadamardQuantizeKvSeqArgs = QuantizeRuns &
  QuantizedWalkArgs & {
    /** Position of the first token written, before wrapping. Either this or `positions`. */
    readonly writePosStart?: number | undefined;
    /**
     * Positions in device memory: i32 [nTokens], of all batches, or [B, nTokens]. A token at one below 0, or that the
     * cache does not have, is left out. No two of a sequence may share a slot.
     */
    readonly positions?: Tensor<"i32"> | undefined;
    /**
     * The pages of each sequence, i32 [B, maxPages] or [maxPages]; the capacity is maxPages * pageTokens. With
     * `isSliding` they are a ring, which attention does not read.
     */
    readonly blockTable?: Tensor<"i32"> | undefined;
    /**
     * K (or the only stream) turns by its rotary positions, as {@link applyRope} turns it, before it is encoded, at a
     * headDim of 64, 80, 96, 112, 128, 192, 256 or 512; as it is unless given.
     */
    readonly rope?: AppendRope | undefined;
    /** Tokens to write, without `positions` at most capacity: all from srcTokOffset on unless given. */
    readonly nTokens?: number | undefined;
    /** First token read from the source; 0 unless given. */
    readonly srcTokOffset?: number | undefined;
  };

const argNames = new OptionNames<HadamardQuantizeKvSeqArgs>("hadamardQuantizeKvSeq", {
  src: true,
  writePosStart: true,
  positions: true,
  blockTable: true,
  rope: true,
  nTokens: true,
  srcTokOffset: true,
  ...quantizedNames,
});

const source = vectorsArgument("src", ["nSrcTokens", "nKvHeads", "headDim"], quantizeRunNames);
const block = new Block(structSizes.MAHadamardQuantizeKvSeqArgs);

/**
 * Writes a run of tokens of all heads into a Hadamard-quantized cache in one
 * dispatch, with `k` and `v` both in it, each in a format of its own where it says one: the prefill step. The bytes
 * are those of {@link hadamardQuantizeKv} called for each token, whose formats and method these are; with `rope` those of
 * {@link applyRope} of K into f32 before. A source of f16 or bf16 gives those of its values in f32.
 *
 * A prompt longer than a ring keeps its last `capacity` tokens: pass isSliding = true,
 * srcTokOffset = writePosStart = nSrcTokens - capacity and nTokens = capacity.
 * Writing no token does nothing.
 *
 * Errors: `unsupported` for a width, packing, head size or dtype that no kernel
 * serves, with those that are, and for sources of two dtypes; `overflow` when,
 * without `positions`, nTokens exceeds the capacity, a linear cache ends before writePosStart +
 * nTokens, that sum leaves 32 bits (wrap it first), or a token that turns is at a position beyond 2^24;
 * `buffer-too-small` when the source ends before srcTokOffset + nTokens; `invalid-argument` when shapes
 * disagree or tensors overlap, for a capacity of 0 and a pool of no pages. (The probe `rmsScratch`
 * is of one token: {@link hadamardQuantizeKv}.)
 *
 * @example
 * const cache = (bits: 4 | 8) => {
 *   const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads, capacity, bits });
 *   const packed = device.tensor("u8", [nKvHeads, capacity, bytesPerRow]);
 *   return { packed, norms: device.tensor("f32", [nKvHeads, capacity, normsPerPos]), bits };
 * };
 * const [cacheK, cacheV] = [cache(8), cache(4)];
 * hadamardQuantizeKvSeq(pass, {
 *   k: { src: promptK, ...cacheK },
 *   v: { src: promptV, ...cacheV },
 *   writePosStart: 0,
 * });
 */
export function hadamardQuantizeKvSeq(pass: Pass, args: HadamardQuantizeKvSeqArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: HadamardQuantizeKvSeqArgs): void {
  argNames.check(checkObject(args, "args"));
  const { writePosStart: givenStart, positions: givenPositions, blockTable: givenTable } = args;
  if (givenStart !== undefined && givenPositions !== undefined) {
    throw refused("writePosStart", "positions say where the tokens are; leave it out");
  }
  const position = givenPositions === undefined ? checkU32(givenStart, "writePosStart") : 0;
  const givenOffset = args.srcTokOffset;
  const srcTokOffset = checkOptionalU32(givenOffset, 0, "srcTokOffset");
  const givenTokens: unknown = args.nTokens;
  const hasPages = givenTable !== undefined;
  const call = useQuantizedCall(args, device, source, hasPages);
  const { k, v } = call;
  const nSrcTokens = fromEnd(k.vectors, 3);
  if (givenPositions !== undefined && givenTokens instanceof Parameter) {
    throw refused("nTokens", `parameter ${givenTokens.name} beside positions, of which there is one for each token`);
  }
  const nTokens = checkTokens(givenTokens, nSrcTokens, srcTokOffset, givenOffset);

  const positions =
    givenPositions === undefined ? undefined : usePositions(givenPositions, device, call.batch, nTokens);
  const blockTable = hasPages ? useBatched(givenTable, device, "blockTable", 1, "[maxPages]") : undefined;
  if (blockTable !== undefined) checkAxis("blockTable", "B", batchOf(blockTable, 1), call.batch, "the source");
  const slots = call.capacity;
  const angles = useAppendRope(args.rope, call.headDim);

  packMAHadamardQuantizeKvSeqArgs(block, 0, {
    ...encodedTensors(call),
    positions,
    blockTable,
    params: {
      ...cacheParams(call),
      cache_capacity: slotsOfSequence(slots, blockTable),
      positions_per_batch: positions?.shape.length === 2 ? 1 : 0,
      page_tokens: hasPages ? slots : 0,
      n_pages: hasPages ? batchOf(k.packed, 3) : 0,
      has_positions: 0,
      write_pos_start: position,
      codebook_bits: k.format.bits,
      n_tokens: nTokens,
      src_tok_offset: srcTokOffset,
      n_src_tokens: nSrcTokens,
      rotaryDim: angles.rotaryDim,
      ropeOffset: angles.offset,
      attentionScale: angles.attentionScale,
    },
    packing: k.format.packingCode,
    batch: call.batch,
    pairing: angles.pairing,
    packingV: v === undefined ? 0 : v.format.packingCode,
    bitsV: v === undefined ? 0 : v.format.bits,
    invFreq: angles.invFreq === undefined ? 0 : addressOf(angles.invFreq),
    invFreqCount: angles.invFreq?.length ?? 0,
  });
  checkStatus(native, native.ma_hadamard_quantize_kv_seq(handle, block.address));
}
