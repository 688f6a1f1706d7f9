import { checkFlag, checkObject, checkOptionalU32, checkU32 } from "../../checks.ts";
import type { PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import type { Tensor } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAKvCacheCopyArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { checkAxis, useTensor } from "../shapes.ts";
import type { CopyDType } from "./copyStreams.ts";

/** Arguments of {@link kvCacheCopy}. */
export interface KvCacheCopyArgs {
  /** New rows, [nNew, rowSize]: bf16, f32 or f16. */
  readonly src: Tensor<CopyDType>;
  /** The cache, [cacheCap, rowSize], of the same dtype. */
  readonly cache: Tensor<CopyDType>;
  /** Position of the first new token, before wrapping. */
  readonly writePos: number;
  /** True for a ring: slot = position mod cacheCap. False (the default) for a linear cache: slot = position. */
  readonly isSliding?: boolean | undefined;
  /** Tokens to copy, from the start of `src`: all of them unless given. */
  readonly nNew?: number | undefined;
}

const argNames = new OptionNames<KvCacheCopyArgs>("kvCacheCopy", {
  src: true,
  cache: true,
  writePos: true,
  isSliding: true,
  nNew: true,
});

const block = new Block(structSizes.MAKvCacheCopyArgs);

/**
 * Appends rows to a K or V cache: src [nNew, rowSize] to slots of cache
 * [cacheCap, rowSize]. Bit-exact. Copying no token does nothing.
 *
 * Errors: `overflow` when writePos + nNew > cacheCap in a linear cache, or more
 * than cacheCap tokens go into a ring at once (the last write to a slot would
 * not be defined), or writePos + nNew leaves 32 bits (wrap it first);
 * `invalid-argument` when shapes disagree or source and cache overlap;
 * `buffer-too-small` when `src` has fewer than nNew rows; `unsupported` for
 * another dtype.
 *
 * @example
 * using src = device.tensor("bf16", [4, 1024]);
 * using cache = device.tensor("bf16", [256, 1024]);
 * kvCacheCopy(pass, { src, cache, writePos: 254, isSliding: true }); // slots 254, 255, 0, 1
 */
export function kvCacheCopy(pass: Pass, args: KvCacheCopyArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: KvCacheCopyArgs): void {
  argNames.check(checkObject(args, "args"));
  const src = useTensor(args.src, device, "src", 2, "[nNew, rowSize]");
  const cache = useTensor(args.cache, device, "cache", 2, "[cacheCap, rowSize]");
  const writePos = checkU32(args.writePos, "writePos");
  const isSliding = checkFlag(args.isSliding, "isSliding");
  const nNew = checkOptionalU32(args.nNew, src.shape[0] as number, "nNew");
  const rowSize = src.shape[1] as number;
  checkAxis("cache", "rowSize", cache.shape[1] as number, rowSize, "src");
  const cacheCap = cache.shape[0] as number;

  packMAKvCacheCopyArgs(block, 0, { src, cache, params: { writePos, rowSize, nNew, cacheCap, isSliding } });
  checkStatus(native, native.ma_kv_cache_copy(handle, block.address));
}
