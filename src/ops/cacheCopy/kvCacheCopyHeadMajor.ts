import { checkObject, checkOptionalU32, checkU32 } from "../../checks.ts";
import { Pass } from "../../device/pass.ts";
import type { Tensor } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packKvCacheCopyHeadMajor, structSizes } from "../../ffi/layout.ts";
import { checkAxis, checkTokens, useTensor } from "../shapes.ts";
import { copyError } from "./streams.ts";

/** Arguments of {@link kvCacheCopyHeadMajor}. */
export interface KvCacheCopyHeadMajorArgs {
  /** Head-major source, [nHeads, srcSeqLen, headDim], bf16. */
  readonly src: Tensor;
  /** The cache, [nHeads, capacity, headDim], bf16. */
  readonly cache: Tensor;
  /** Position of the first token written, before wrapping: slot = position mod capacity. */
  readonly seqPosStart: number;
  /** Tokens to copy, at most capacity: all from srcTokOffset on unless given. */
  readonly nTokens?: number;
  /** First token read of each head; 0 unless given. */
  readonly srcTokOffset?: number;
}

const block = new Block(structSizes.MAKvCacheCopyHeadMajorArgs);

/**
 * Writes a run of tokens from a head-major source into a head-major cache,
 * wrapping at its capacity. Bit-exact. Copying no token does nothing.
 *
 * Errors: `overflow` when nTokens exceeds the capacity or seqPosStart + nTokens
 * leaves 32 bits (wrap it first); `invalid-argument` when shapes disagree or
 * tensors overlap; `buffer-too-small` when the source ends before srcTokOffset +
 * nTokens; `unsupported` for a dtype other than bf16.
 *
 * @example
 * using src = device.tensor("bf16", [4, 128, 256]);
 * using cache = device.tensor("bf16", [4, 1024, 256]);
 * kvCacheCopyHeadMajor(pass, { src, cache, seqPosStart: 960 }); // slots 960 to 1023, then 0 to 63
 */
export function kvCacheCopyHeadMajor(pass: Pass, args: KvCacheCopyHeadMajorArgs): void {
  const { native, handle, device } = Pass.use(pass);
  checkObject(args, "args");
  const src = useTensor(args.src, device, "src", 3, "[nHeads, srcSeqLen, headDim]");
  const cache = useTensor(args.cache, device, "cache", 3, "[nHeads, capacity, headDim]");
  const seqPosStart = checkU32(args.seqPosStart, "seqPosStart");
  const srcTokOffset = checkOptionalU32(args.srcTokOffset, 0, "srcTokOffset");
  const givenTokens = args.nTokens;
  const nHeads = src.shape[0] as number;
  const srcSeqLen = src.shape[1] as number;
  const headDim = src.shape[2] as number;
  checkAxis("cache", "nHeads", cache.shape[0] as number, nHeads, "src");
  checkAxis("cache", "headDim", cache.shape[2] as number, headDim, "src");
  const capacity = cache.shape[1] as number;
  const nTokens = checkTokens(givenTokens, srcSeqLen, srcTokOffset);

  packKvCacheCopyHeadMajor(block, src, cache, nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset, srcSeqLen);
  const status = native.ma_kv_cache_copy_head_major(handle, block.address);
  if (status !== 0) throw copyError(native, status, false);
}
