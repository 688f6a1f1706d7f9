import { checkObject, checkOptionalU32, checkU32 } from "../../checks.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import type { TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packKvCacheCopySeq, packStreams, structSizes } from "../../ffi/layout.ts";
import { checkAxis, checkTokens, useTensor } from "../shapes.ts";
import { type CopyStreams, copyError, isDual } from "./streams.ts";

/**
 * Arguments of {@link kvCacheCopySeq}. Each `src` is token-major
 * [nSrcTokens, nHeads, headDim]; each `cache` is [nHeads, capacity, headDim].
 * Dtypes, source to cache: f32 to f32, f16 or bf16; bf16 to f32 or bf16; f16 to f16.
 */
export type KvCacheCopySeqArgs = CopyStreams & {
  /** Position of the first token written, before wrapping: slot = position mod capacity. */
  readonly seqPosStart: number;
  /** Tokens to copy, at most capacity: all from srcTokOffset on unless given. */
  readonly nTokens?: number;
  /** First token read from the source; 0 unless given. */
  readonly srcTokOffset?: number;
};

const block = new Block(structSizes.MAKvCacheCopySeqArgs);

/**
 * Writes a run of tokens of all heads into a head-major cache, wrapping at its
 * capacity: the prefill step. With `k` and `v` both go in one dispatch.
 * Widening and equal dtypes are exact; narrowing rounds to nearest even.
 *
 * A prompt longer than a ring keeps its last `capacity` tokens: pass
 * srcTokOffset = seqPosStart = nSrcTokens - capacity and nTokens = capacity.
 * Copying no token does nothing.
 *
 * Errors: `overflow` when nTokens exceeds the capacity (the last write to a slot
 * would not be defined) or seqPosStart + nTokens leaves 32 bits (wrap it
 * first); `invalid-argument` when shapes disagree or tensors overlap;
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
  const { native, handle, device } = Pass.use(pass);
  checkObject(args, "args");
  const seqPosStart = checkU32(args.seqPosStart, "seqPosStart");
  const srcTokOffset = checkOptionalU32(args.srcTokOffset, 0, "srcTokOffset");
  const givenTokens = args.nTokens;
  // A field is read once, so that a getter can neither change it nor call in between.
  const { k, v, src, cache } = args;
  const dual = isDual(k, v, src !== undefined || cache !== undefined, "src", "src and cache");
  const srcK = useSource(k?.src ?? src, device, dual ? "k.src" : "src");
  const cacheK = useCache(k?.cache ?? cache, device, dual ? "k.cache" : "cache", srcK);
  let srcV: TensorRange | undefined;
  let cacheV: TensorRange | undefined;
  if (dual) {
    srcV = useSource(v?.src, device, "v.src");
    cacheV = useCache(v?.cache, device, "v.cache", srcV);
    checkAxis("v.src", "nSrcTokens", srcV.shape[0] as number, srcK.shape[0] as number, "k.src");
    checkAxis("v.src", "nHeads", srcV.shape[1] as number, srcK.shape[1] as number, "k.src");
    checkAxis("v.src", "headDim", srcV.shape[2] as number, srcK.shape[2] as number, "k.src");
    checkAxis("v.cache", "capacity", cacheV.shape[1] as number, cacheK.shape[1] as number, "k.cache");
  }
  const { shape } = srcK;
  const nTokens = checkTokens(givenTokens, shape[0] as number, srcTokOffset);

  packStreams(block, srcK, cacheK, srcV, cacheV);
  const capacity = cacheK.shape[1] as number;
  packKvCacheCopySeq(block, shape[1] as number, shape[2] as number, capacity, seqPosStart, nTokens, srcTokOffset);
  const status = native.ma_kv_cache_copy_seq(handle, block.address);
  if (status !== 0) throw copyError(native, status, dual);
}

function useSource(value: unknown, device: DeviceLifetime, argument: string): TensorRange {
  return useTensor(value, device, argument, 3, "[nSrcTokens, nHeads, headDim]");
}

function useCache(value: unknown, device: DeviceLifetime, argument: string, src: TensorRange): TensorRange {
  const cache = useTensor(value, device, argument, 3, "[nHeads, capacity, headDim]");
  checkAxis(argument, "nHeads", cache.shape[0] as number, src.shape[1] as number, "its source");
  checkAxis(argument, "headDim", cache.shape[2] as number, src.shape[2] as number, "its source");
  return cache;
}
