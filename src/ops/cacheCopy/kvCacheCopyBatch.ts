import { checkObject, checkU32, refused } from "../../checks.ts";
import type { DeviceLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packKvCacheCopyBatch, packStreams, structSizes } from "../../ffi/layout.ts";
import { checkAxis, useTensor } from "../shapes.ts";
import { type CopyStreams, copyError, isDual } from "./streams.ts";

/**
 * Arguments of {@link kvCacheCopyBatch}. Each `src` is one token,
 * [nHeads, headDim] or flat [nHeads * headDim]; each `cache` is
 * [nHeads, capacity, headDim]. f32 to f32, f16 or bf16; bf16 to f32 or bf16;
 * f16 to f16.
 */
export type KvCacheCopyBatchArgs = CopyStreams & {
  /** Slot to write, already wrapped: less than capacity. */
  readonly seqPos: number;
};

const block = new Block(structSizes.MAKvCacheCopyBatchArgs);

/**
 * Writes one token of all heads into a head-major cache: the decode step.
 * With `k` and `v` both go in one dispatch. f32 to f16 and to bf16 rounds to
 * nearest even; all else is exact.
 *
 * Errors: `overflow` when seqPos is not below the capacity;
 * `buffer-too-small` when a flat `src` has fewer than nHeads * headDim
 * elements; `invalid-argument` for shapes that disagree or tensors that
 * overlap; `unsupported` for another dtype pair.
 *
 * @example
 * kvCacheCopyBatch(pass, {
 *   k: { src: newK, cache: cacheK },
 *   v: { src: newV, cache: cacheV },
 *   seqPos: position % capacity,
 * });
 */
export function kvCacheCopyBatch(pass: Pass, args: KvCacheCopyBatchArgs): void {
  const { native, handle, device } = Pass.use(pass);
  checkObject(args, "args");
  const seqPos = checkU32(args.seqPos, "seqPos");
  // A field is read once, so that a getter can neither change it nor call in between.
  const { k, v, src, cache } = args;
  const dual = isDual(k, v, src !== undefined || cache !== undefined, "src", "src and cache");
  const cacheK = useCache(k?.cache ?? cache, device, dual ? "k.cache" : "cache");
  const srcK = useToken(k?.src ?? src, device, dual ? "k.src" : "src", cacheK);
  let srcV: TensorRange | undefined;
  let cacheV: TensorRange | undefined;
  if (dual) {
    cacheV = useCache(v?.cache, device, "v.cache");
    checkAxis("v.cache", "nHeads", cacheV.shape[0] as number, cacheK.shape[0] as number, "k.cache");
    checkAxis("v.cache", "capacity", cacheV.shape[1] as number, cacheK.shape[1] as number, "k.cache");
    checkAxis("v.cache", "headDim", cacheV.shape[2] as number, cacheK.shape[2] as number, "k.cache");
    srcV = useToken(v?.src, device, "v.src", cacheV);
  }

  packStreams(block, srcK, cacheK, srcV, cacheV);
  const { shape } = cacheK;
  packKvCacheCopyBatch(block, shape[0] as number, shape[2] as number, shape[1] as number, seqPos);
  const status = native.ma_kv_cache_copy_batch(handle, block.address);
  if (status !== 0) throw copyError(native, status, dual);
}

function useCache(value: unknown, device: DeviceLifetime, argument: string): TensorRange {
  return useTensor(value, device, argument, 3, "[nHeads, capacity, headDim]");
}

function useToken(value: unknown, device: DeviceLifetime, argument: string, cache: TensorRange): TensorRange {
  const src = Tensor.use(value, device, argument);
  const { shape } = src;
  if (shape.length === 2) {
    checkAxis(argument, "nHeads", shape[0] as number, cache.shape[0] as number, "its cache");
    checkAxis(argument, "headDim", shape[1] as number, cache.shape[2] as number, "its cache");
  } else if (shape.length !== 1) {
    throw refused(argument, `expected shape [nHeads, headDim] or [nHeads * headDim], got [${shape}]`);
  }
  return src;
}
