import { checkFlag, checkObject, checkU32, refused } from "../../checks.ts";
import type { DeviceLifetime, PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAKvCacheCopyBatchArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { batchOf, checkAxis, fromEnd } from "../shapes.ts";
import { isDual } from "../streams.ts";
import { type CopyStreams, copyStreamNames, useCache } from "./copyStreams.ts";

/**
 * Arguments of {@link kvCacheCopyBatch}. Each `src` is one token,
 * [nHeads, headDim], flat [nHeads * headDim], or [B, nHeads, headDim] for the
 * same token of every batch; each `cache` is [nHeads, capacity, headDim] or
 * [B, nHeads, capacity, headDim]. Dtypes, source to cache: f32 to f32, f16 or
 * bf16; bf16 to f32 or bf16; f16 to f16.
 */
export type KvCacheCopyBatchArgs = CopyStreams & {
  /** Position to write. */
  readonly seqPos: number;
  /** True for a ring: slot = position mod capacity. False (the default) for a linear cache: slot = position. */
  readonly isSliding?: boolean | undefined;
};

const argNames = new OptionNames<KvCacheCopyBatchArgs>("kvCacheCopyBatch", {
  src: true,
  cache: true,
  k: true,
  v: true,
  seqPos: true,
  isSliding: true,
});

const block = new Block(structSizes.MAKvCacheCopyBatchArgs);

/**
 * Writes one token of all heads into a head-major cache: the decode step.
 * With `k` and `v` both go in one dispatch. Widening and equal dtypes are
 * exact; narrowing rounds to nearest even.
 *
 * Errors: `overflow` when seqPos is not below the capacity of a linear cache;
 * `buffer-too-small` when a flat `src` has fewer than nHeads * headDim
 * elements; `invalid-argument` for shapes that disagree or tensors that
 * overlap; `unsupported` for another dtype pair.
 *
 * @example
 * kvCacheCopyBatch(pass, {
 *   k: { src: newK, cache: cacheK },
 *   v: { src: newV, cache: cacheV },
 *   seqPos: position,
 *   isSliding: true,
 * });
 */
export function kvCacheCopyBatch(pass: Pass, args: KvCacheCopyBatchArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: KvCacheCopyBatchArgs): void {
  argNames.check(checkObject(args, "args"));
  const seqPos = checkU32(args.seqPos, "seqPos");
  const isSliding = checkFlag(args.isSliding, "isSliding");
  // A field is read once, so that a getter can neither change it nor call in between.
  const { k, v, src, cache } = args;
  const dual = isDual(k, v, src !== undefined || cache !== undefined, "src", "src and cache");
  if (k !== undefined) copyStreamNames.check(k, "k.");
  const cacheK = useCache(k?.cache ?? cache, device, dual ? "k.cache" : "cache");
  const srcK = useToken(k?.src ?? src, device, dual ? "k.src" : "src", cacheK);
  let srcV: TensorRange | undefined;
  let cacheV: TensorRange | undefined;
  if (v !== undefined) {
    copyStreamNames.check(v, "v.");
    cacheV = useCache(v.cache, device, "v.cache");
    checkAxis("v.cache", "B", batchOf(cacheV, 3), batchOf(cacheK, 3), "k.cache");
    checkAxis("v.cache", "nHeads", fromEnd(cacheV, 3), fromEnd(cacheK, 3), "k.cache");
    checkAxis("v.cache", "capacity", fromEnd(cacheV, 2), fromEnd(cacheK, 2), "k.cache");
    checkAxis("v.cache", "headDim", fromEnd(cacheV, 1), fromEnd(cacheK, 1), "k.cache");
    srcV = useToken(v.src, device, "v.src", cacheV);
  }

  packMAKvCacheCopyBatchArgs(block, 0, {
    srcK,
    cacheK,
    srcV,
    cacheV,
    params: { nHeads: fromEnd(cacheK, 3), headDim: fromEnd(cacheK, 1), capacity: fromEnd(cacheK, 2), seqPos },
    isSliding,
    batch: batchOf(cacheK, 3),
  });
  checkStatus(native, native.ma_kv_cache_copy_batch(handle, block.address));
}

function useToken(value: unknown, device: DeviceLifetime, argument: string, cache: TensorRange): TensorRange {
  const src = Tensor.use(value, device, argument);
  const rank = src.shape.length;
  if (rank === 1) return src;
  if (rank > 3) {
    throw refused(argument, `expected shape [nHeads, headDim], or with a batch before it, or flat, got [${src.shape}]`);
  }
  checkAxis(argument, "B", batchOf(src, 2), batchOf(cache, 3), "its cache");
  checkAxis(argument, "nHeads", fromEnd(src, 2), fromEnd(cache, 3), "its cache");
  checkAxis(argument, "headDim", fromEnd(src, 1), fromEnd(cache, 1), "its cache");
  return src;
}
