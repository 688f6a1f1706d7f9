import { Block } from "../../src/ffi/block.ts";
import {
  type KvCacheCopyBatchParams,
  type KvCacheCopyHeadMajorParams,
  type KvCacheCopyParams,
  type KvCacheCopySeqParams,
  type MATensor,
  packMAKvCacheCopyArgs,
  packMAKvCacheCopyBatchArgs,
  packMAKvCacheCopyHeadMajorArgs,
  packMAKvCacheCopySeqArgs,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { loadLibrary } from "../../src/ffi/library.ts";

/** Makes one call of the C ABI on `pass`, and gives its status. */
export type CopyCall = (pass: number) => number;

const native = loadLibrary();

/** What `MAKvCacheCopyArgs` holds. */
export type RowArgs = Readonly<KvCacheCopyParams> & { readonly src: MATensor; readonly cache: MATensor };

export const copyRows =
  ({ src, cache, ...params }: RowArgs): CopyCall =>
  (pass) => {
    const block = new Block(structSizes.MAKvCacheCopyArgs);
    packMAKvCacheCopyArgs(block, 0, { src, cache, params });
    return native.ma_kv_cache_copy(pass, block.bytes);
  };

/** K, and V or nothing. */
export interface StreamArgs {
  readonly srcK: MATensor;
  readonly cacheK: MATensor;
  readonly srcV: MATensor | undefined;
  readonly cacheV: MATensor | undefined;
}

/** What the copies into a head-major cache state beside their parameters. */
interface CacheArgs {
  readonly isSliding: number;
  readonly batch: number;
}

/** What `MAKvCacheCopyBatchArgs` holds. */
export type TokenArgs = StreamArgs & CacheArgs & Readonly<KvCacheCopyBatchParams>;

export const copyToken =
  ({ srcK, cacheK, srcV, cacheV, isSliding, batch, ...params }: TokenArgs): CopyCall =>
  (pass) => {
    const block = new Block(structSizes.MAKvCacheCopyBatchArgs);
    packMAKvCacheCopyBatchArgs(block, 0, { srcK, cacheK, srcV, cacheV, params, isSliding, batch });
    return native.ma_kv_cache_copy_batch(pass, block.bytes);
  };

/** What `MAKvCacheCopySeqArgs` holds. */
export type SeqArgs = StreamArgs & CacheArgs & Readonly<KvCacheCopySeqParams>;

export const copySeq =
  ({ srcK, cacheK, srcV, cacheV, isSliding, batch, ...params }: SeqArgs): CopyCall =>
  (pass) => {
    const block = new Block(structSizes.MAKvCacheCopySeqArgs);
    packMAKvCacheCopySeqArgs(block, 0, { srcK, cacheK, srcV, cacheV, params, isSliding, batch });
    return native.ma_kv_cache_copy_seq(pass, block.bytes);
  };

/** What `MAKvCacheCopyHeadMajorArgs` holds. */
export type HeadMajorArgs = CacheArgs &
  Readonly<KvCacheCopyHeadMajorParams> & { readonly src: MATensor; readonly cache: MATensor };

export const copyHeadMajor =
  ({ src, cache, isSliding, batch, ...params }: HeadMajorArgs): CopyCall =>
  (pass) => {
    const block = new Block(structSizes.MAKvCacheCopyHeadMajorArgs);
    packMAKvCacheCopyHeadMajorArgs(block, 0, { src, cache, params, isSliding, batch });
    return native.ma_kv_cache_copy_head_major(pass, block.bytes);
  };
