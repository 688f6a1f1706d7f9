import { checkFlag, checkObject, checkOptionalU32, checkU32 } from "../../checks.ts";
import type { PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import type { Tensor } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAKvCacheCopyHeadMajorArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { batchOf, checkAxis, checkHeadAxis, checkTokens, fromEnd, useBatched } from "../shapes.ts";
import { useCache } from "./copyStreams.ts";

/** Arguments of {@link kvCacheCopyHeadMajor}. */
export interface KvCacheCopyHeadMajorArgs {
  /** Head-major source, [nHeads, srcSeqLen, headDim] or with a batch before it, bf16. */
  readonly src: Tensor<"bf16">;
  /** The cache, [nHeads, capacity, headDim] or with a batch before it, bf16. */
  readonly cache: Tensor<"bf16">;
  /** Position of the first token written, before wrapping. */
  readonly seqPosStart: number;
  /** Tokens to copy, at most capacity: all from srcTokOffset on unless given. */
  readonly nTokens?: number | undefined;
  /** First token read of each head; 0 unless given. */
  readonly srcTokOffset?: number | undefined;
  /** True for a ring: slot = position mod capacity. False (the default) for a linear cache: slot = position. */
  readonly isSliding?: boolean | undefined;
}

const argNames = new OptionNames<KvCacheCopyHeadMajorArgs>("kvCacheCopyHeadMajor", {
  src: true,
  cache: true,
  seqPosStart: true,
  nTokens: true,
  srcTokOffset: true,
  isSliding: true,
});

const block = new Block(structSizes.MAKvCacheCopyHeadMajorArgs);

/**
 * Writes a run of tokens from a head-major source into a head-major cache.
 * Bit-exact. Copying no token does nothing.
 *
 * Errors: `overflow` when seqPosStart + nTokens exceeds the capacity of a linear
 * cache, nTokens that of a ring, or seqPosStart + nTokens leaves 32 bits (wrap
 * it first); `invalid-argument` when shapes disagree or tensors overlap;
 * `buffer-too-small` when the source ends before srcTokOffset + nTokens;
 * `unsupported` for a dtype other than bf16.
 *
 * @example
 * using src = device.tensor("bf16", [4, 128, 256]);
 * using cache = device.tensor("bf16", [4, 1024, 256]);
 * kvCacheCopyHeadMajor(pass, { src, cache, seqPosStart: 960, isSliding: true }); // slots 960 to 1023, then 0 to 63
 */
export function kvCacheCopyHeadMajor(pass: Pass, args: KvCacheCopyHeadMajorArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: KvCacheCopyHeadMajorArgs): void {
  argNames.check(checkObject(args, "args"));
  const src = useBatched(args.src, device, "src", 3, "[nHeads, srcSeqLen, headDim]");
  const cache = useCache(args.cache, device, "cache");
  const seqPosStart = checkU32(args.seqPosStart, "seqPosStart");
  const givenOffset = args.srcTokOffset;
  const srcTokOffset = checkOptionalU32(givenOffset, 0, "srcTokOffset");
  const isSliding = checkFlag(args.isSliding, "isSliding");
  const givenTokens = args.nTokens;
  const batch = batchOf(src, 3);
  const nHeads = fromEnd(src, 3);
  const srcSeqLen = fromEnd(src, 2);
  const headDim = fromEnd(src, 1);
  const other = "; kvCacheCopySeq takes that order";
  checkHeadAxis("src", src, 3, fromEnd(cache, 3), "[nHeads, srcSeqLen, headDim]", other);
  checkAxis("cache", "B", batchOf(cache, 3), batch, "src");
  checkAxis("cache", "nHeads", fromEnd(cache, 3), nHeads, "src");
  checkAxis("cache", "headDim", fromEnd(cache, 1), headDim, "src");
  const capacity = fromEnd(cache, 2);
  const nTokens = checkTokens(givenTokens, srcSeqLen, srcTokOffset, givenOffset);

  const params = { nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset, srcSeqLen };
  packMAKvCacheCopyHeadMajorArgs(block, 0, { src, cache, params, isSliding, batch });
  checkStatus(native, native.ma_kv_cache_copy_head_major(handle, block.address));
}
