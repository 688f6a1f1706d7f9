import { checkFlag, checkObject, checkOptionalU32, checkU32 } from "../../checks.ts";
import type { DeviceLifetime, PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import type { TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAKvCacheCopySeqArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { batchOf, checkAxis, checkHeadAxis, checkTokens, fromEnd, useBatched } from "../shapes.ts";
import { isDual } from "../streams.ts";
import { type CopyStreams, copyStreamNames, useCache } from "./copyStreams.ts";

/**
 * Arguments of {@link kvCacheCopySeq}. Each `src` is token-major
 * [nSrcTokens, nHeads, headDim]; each `cache` is [nHeads, capacity, headDim];
 * both may have a batch axis before these. Dtypes, source to cache: f32 to f32,
 * f16 or bf16; bf16 to f32 or bf16; f16 to f16.
 */
export type KvCacheCopySeqArgs = CopyStreams & {
  /** Position of the first token written, before wrapping. */
  readonly seqPosStart: number;
  /** Tokens to copy, at most capacity: all from srcTokOffset on unless given. */
  readonly nTokens?: number | undefined;
  /** First token read from the source; 0 unless given. */
  readonly srcTokOffset?: number | undefined;
  /** True for a ring: slot = position mod capacity. False (the default) for a linear cache: slot = position. */
  readonly isSliding?: boolean | undefined;
};

const argNames = new OptionNames<KvCacheCopySeqArgs>("kvCacheCopySeq", {
  src: true,
  cache: true,
  k: true,
  v: true,
  seqPosStart: true,
  nTokens: true,
  srcTokOffset: true,
  isSliding: true,
});

const block = new Block(structSizes.MAKvCacheCopySeqArgs);

/**
 * Writes a run of tokens of all heads into a head-major cache: the prefill
 * step. With `k` and `v` both go in one dispatch. Widening and equal dtypes are
 * exact; narrowing rounds to nearest even.
 *
 * A prompt longer than a ring keeps its last `capacity` tokens: pass
 * isSliding: true, srcTokOffset = seqPosStart = nSrcTokens - capacity and
 * nTokens = capacity. Copying no token does nothing.
 *
 * Errors: `overflow` when seqPosStart + nTokens exceeds the capacity of a linear
 * cache, nTokens that of a ring (the last write to a slot would not be
 * defined), or seqPosStart + nTokens leaves 32 bits (wrap it first);
 * `invalid-argument` when shapes disagree or tensors overlap;
 * `buffer-too-small` when the source ends before srcTokOffset + nTokens;
 * `unsupported` for another dtype pair, with those supported.
 *
 * @example
 * kvCacheCopySeq(pass, {
 *   k: { src: promptK, cache: cacheK },
 *   v: { src: promptV, cache: cacheV },
 *   seqPosStart: 0,
 * });
 */
export function kvCacheCopySeq(pass: Pass, args: KvCacheCopySeqArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: KvCacheCopySeqArgs): void {
  argNames.check(checkObject(args, "args"));
  const seqPosStart = checkU32(args.seqPosStart, "seqPosStart");
  const givenOffset = args.srcTokOffset;
  const srcTokOffset = checkOptionalU32(givenOffset, 0, "srcTokOffset");
  const isSliding = checkFlag(args.isSliding, "isSliding");
  const givenTokens = args.nTokens;
  // A field is read once, so that a getter can neither change it nor call in between.
  const { k, v, src, cache } = args;
  const dual = isDual(k, v, src !== undefined || cache !== undefined, "src", "src and cache");
  if (k !== undefined) copyStreamNames.check(k, "k.");
  const srcK = useSource(k?.src ?? src, device, dual ? "k.src" : "src");
  const cacheK = useCacheOf(srcK, k?.cache ?? cache, device, dual ? "k." : "");
  let srcV: TensorRange | undefined;
  let cacheV: TensorRange | undefined;
  if (v !== undefined) {
    copyStreamNames.check(v, "v.");
    srcV = useSource(v.src, device, "v.src");
    cacheV = useCacheOf(srcV, v.cache, device, "v.");
    checkAxis("v.src", "B", batchOf(srcV, 3), batchOf(srcK, 3), "k.src");
    checkAxis("v.src", "nSrcTokens", fromEnd(srcV, 3), fromEnd(srcK, 3), "k.src");
    checkAxis("v.src", "nHeads", fromEnd(srcV, 2), fromEnd(srcK, 2), "k.src");
    checkAxis("v.src", "headDim", fromEnd(srcV, 1), fromEnd(srcK, 1), "k.src");
    checkAxis("v.cache", "capacity", fromEnd(cacheV, 2), fromEnd(cacheK, 2), "k.cache");
  }
  const nSrcTokens = fromEnd(srcK, 3);
  const nHeads = fromEnd(srcK, 2);
  const headDim = fromEnd(srcK, 1);
  const capacity = fromEnd(cacheK, 2);
  const nTokens = checkTokens(givenTokens, nSrcTokens, srcTokOffset, givenOffset);

  const params = { nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset, nSrcTokens };
  packMAKvCacheCopySeqArgs(block, 0, { srcK, cacheK, srcV, cacheV, params, isSliding, batch: batchOf(srcK, 3) });
  checkStatus(native, native.ma_kv_cache_copy_seq(handle, block.address));
}

function useSource(value: unknown, device: DeviceLifetime, argument: string): TensorRange {
  return useBatched(value, device, argument, 3, "[nSrcTokens, nHeads, headDim]");
}

/** The cache that a source goes to. */
function useCacheOf(src: TensorRange, value: unknown, device: DeviceLifetime, prefix: string): TensorRange {
  const argument = `${prefix}cache`;
  const cache = useCache(value, device, argument);
  const nHeads = fromEnd(cache, 3);
  const other = "; kvCacheCopyHeadMajor takes that order";
  checkHeadAxis(`${prefix}src`, src, 2, nHeads, "[nSrcTokens, nHeads, headDim]", other);
  checkAxis(argument, "B", batchOf(cache, 3), batchOf(src, 3), "its source");
  checkAxis(argument, "nHeads", nHeads, fromEnd(src, 2), "its source");
  checkAxis(argument, "headDim", fromEnd(cache, 1), fromEnd(src, 1), "its source");
  return cache;
}
