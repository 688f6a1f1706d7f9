import { checkFlag, checkObject, checkOptionalU32, refused } from "../../checks.ts";
import type { DeviceLifetime, PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAKvCacheAppendArgs, structSizes } from "../../ffi/generated/structs.ts";
import { addressOf } from "../../ffi/memory.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { type AppendRope, useAppendRope } from "../rope/appendRope.ts";
import { usePositions } from "../rope/ropeAngles.ts";
import { batchOf, checkAxis, checkHeadAxis, fromEnd, slotsOfSequence, useBatched } from "../shapes.ts";
import { isDual } from "../streams.ts";
import { type CopyStreams, copyStreamNames } from "./copyStreams.ts";

/**
 * Arguments of {@link kvCacheAppend}. Each `src` is token-major [nTokens, nHeads, headDim]; each `cache`
 * [nHeads, capacity, headDim]; both may have a batch axis before these. With `blockTable` a cache is the pool of
 * pages [nPages, nHeads, pageTokens, headDim]. f32, f16 or bf16, source and cache each.
 */
export type KvCacheAppendArgs = CopyStreams & {
  /** Position of the first token, of all batches; 0 unless given. Not beside `positions`. */
  readonly start?: number | undefined;
  /**
   * Positions in device memory: i32 [nTokens], of all batches, or [B, nTokens]. A token at one below 0, or that the
   * cache does not have, is left out. No two of a sequence may share a slot.
   */
  readonly positions?: Tensor<"i32"> | undefined;
  /** K turns by its rotary positions, as {@link applyRope} turns it; as it is unless given. */
  readonly rope?: AppendRope | undefined;
  /** True for a ring: slot = position mod capacity. False (the default) for a linear cache: slot = position. */
  readonly isSliding?: boolean | undefined;
  /**
   * The pages of each sequence, i32 [B, maxPages] or [maxPages]; the capacity is maxPages * pageTokens. With
   * `isSliding` they are a ring, which attention does not read.
   */
  readonly blockTable?: Tensor<"i32"> | undefined;
};

const argNames = new OptionNames<KvCacheAppendArgs>("kvCacheAppend", {
  src: true,
  cache: true,
  k: true,
  v: true,
  start: true,
  positions: true,
  rope: true,
  isSliding: true,
  blockTable: true,
});
const block = new Block(structSizes.MAKvCacheAppendArgs);

/**
 * Appends tokens of all heads to dense head-major caches in one dispatch: K turned by its rotary positions, V (with
 * `k` and `v`) as it is, each rounded once to the cache's dtype. The bits are those of `applyRope` into the cache's
 * dtype and a copy of that. With `positions` a recorded step goes on wherever the sequences are by then.
 *
 * Appending no token does nothing.
 *
 * Errors: `overflow` when start + nTokens exceeds the capacity of a linear cache or 32 bits (wrap it first), nTokens
 * without `positions` the capacity of a ring, or a position that turns 2^24; `invalid-argument` when shapes disagree or
 * tensors overlap, for an odd headDim and a pool of no pages; `unsupported` for another dtype and more than 2,048
 * coordinates that turn.
 *
 * @example
 * kvCacheAppend(pass, {
 *   k: { src: k, cache: kCache },
 *   v: { src: v, cache: vCache },
 *   start: 17,
 *   rope: { theta: 500_000, pairing: "half" },
 * });
 */
export function kvCacheAppend(pass: Pass, args: KvCacheAppendArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: KvCacheAppendArgs): void {
  argNames.check(checkObject(args, "args"));
  const isSliding = checkFlag(args.isSliding, "isSliding");
  // A field is read once, so that a getter can neither change it nor call in between.
  const { k, v, src, cache, rope, positions: givenPositions, blockTable: givenTable, start: givenStart } = args;
  const dual = isDual(k, v, src !== undefined || cache !== undefined, "src", "src and cache");
  const hasPages = givenTable !== undefined;
  const streamK = useStream(k ?? { src, cache }, device, dual ? "k." : "", hasPages);
  const streamV = v === undefined ? undefined : useStream(v, device, "v.", hasPages);
  const batch = batchOf(streamK.src, 3);
  const [nTokens, nHeads, headDim] = [fromEnd(streamK.src, 3), fromEnd(streamK.src, 2), fromEnd(streamK.src, 1)];
  if (streamV !== undefined) {
    checkAxis("v.src", "B", batchOf(streamV.src, 3), batch, "k.src");
    checkAxis("v.src", "nTokens", fromEnd(streamV.src, 3), nTokens, "k.src");
    checkAxis("v.src", "nHeads", fromEnd(streamV.src, 2), nHeads, "k.src");
    checkAxis("v.src", "headDim", fromEnd(streamV.src, 1), headDim, "k.src");
    if (hasPages) checkAxis("v.cache", "nPages", batchOf(streamV.cache, 3), batchOf(streamK.cache, 3), "k.cache");
    const axis = hasPages ? "pageTokens" : "capacity";
    checkAxis("v.cache", axis, fromEnd(streamV.cache, 2), fromEnd(streamK.cache, 2), "k.cache");
  }
  const slots = fromEnd(streamK.cache, 2);
  const blockTable = hasPages ? useBatched(givenTable, device, "blockTable", 1, "[maxPages]") : undefined;
  if (blockTable !== undefined) checkAxis("blockTable", "B", batchOf(blockTable, 1), batch, "the source");
  if (givenStart !== undefined && givenPositions !== undefined) {
    throw refused("start", "positions say where the tokens are; leave it out");
  }
  const start = checkOptionalU32(givenStart, 0, "start");
  const positions = givenPositions === undefined ? undefined : usePositions(givenPositions, device, batch, nTokens);
  const angles = useAppendRope(rope, headDim);

  packMAKvCacheAppendArgs(block, 0, {
    srcK: streamK.src,
    cacheK: streamK.cache,
    srcV: streamV?.src,
    cacheV: streamV?.cache,
    positions,
    blockTable,
    params: {
      batch,
      nTokens,
      nHeads,
      headDim,
      capacity: slotsOfSequence(slots, blockTable),
      isSliding,
      pageTokens: hasPages ? slots : 0,
      nPages: hasPages ? batchOf(streamK.cache, 3) : 0,
      start,
      positionsPerBatch: positions?.shape.length === 2 ? 1 : 0,
      rotaryDim: angles.rotaryDim,
      ropeOffset: angles.offset,
      attentionScale: angles.attentionScale,
    },
    pairing: angles.pairing,
    invFreq: angles.invFreq === undefined ? 0 : addressOf(angles.invFreq),
    invFreqCount: angles.invFreq?.length ?? 0,
  });
  checkStatus(native, native.ma_kv_cache_append(handle, block.address));
}

/** A stream before it is checked. */
interface StreamFields {
  readonly src?: unknown | undefined;
  readonly cache?: unknown | undefined;
}

/** The tensors of a stream, whose heads agree; `prefix` is "", "k." or "v.". */
function useStream(
  stream: StreamFields,
  device: DeviceLifetime,
  prefix: string,
  hasPages: boolean,
): { src: TensorRange; cache: TensorRange } {
  if (prefix !== "") copyStreamNames.check(stream, prefix);
  const { src: givenSrc, cache: givenCache } = stream;
  const argument = `${prefix}cache`;
  const src = useBatched(givenSrc, device, `${prefix}src`, 3, "[nTokens, nHeads, headDim]");
  let cache: TensorRange;
  if (hasPages) {
    cache = Tensor.use(givenCache, device, argument);
    if (cache.shape.length !== 4) {
      throw refused(argument, `expected pages [nPages, nHeads, pageTokens, headDim], got [${cache.shape}]`);
    }
  } else {
    cache = useBatched(givenCache, device, argument, 3, "[nHeads, capacity, headDim]");
    checkAxis(argument, "B", batchOf(cache, 3), batchOf(src, 3), "its source");
  }
  checkHeadAxis(`${prefix}src`, src, 2, fromEnd(cache, 3), "[nTokens, nHeads, headDim]");
  checkAxis(argument, "nHeads", fromEnd(cache, 3), fromEnd(src, 2), "its source");
  checkAxis(argument, "headDim", fromEnd(cache, 1), fromEnd(src, 1), "its source");
  return { src, cache };
}
