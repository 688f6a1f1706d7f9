import { Block } from "../../src/ffi/block.ts";
import {
  packKvCacheCopy,
  packKvCacheCopyBatch,
  packKvCacheCopyHeadMajor,
  packKvCacheCopySeq,
  packStreams,
  structSizes,
  type TensorRecord,
} from "../../src/ffi/layout.ts";
import { loadLibrary } from "../../src/ffi/library.ts";

/** Makes one call of the C ABI on `pass`, and gives its status. */
export type CopyCall = (pass: number) => number;

const native = loadLibrary();

/** What `MAKvCacheCopyArgs` holds. */
export interface RowArgs {
  readonly src: TensorRecord;
  readonly cache: TensorRecord;
  readonly writePos: number;
  readonly rowSize: number;
  readonly nNew: number;
  readonly cacheCap: number;
  readonly isSliding: number;
}

export const copyRows =
  ({ src, cache, writePos, rowSize, nNew, cacheCap, isSliding }: RowArgs): CopyCall =>
  (pass) => {
    const block = new Block(structSizes.MAKvCacheCopyArgs);
    packKvCacheCopy(block, src, cache, writePos, rowSize, nNew, cacheCap, isSliding);
    return native.ma_kv_cache_copy(pass, block.bytes);
  };

/** K, and V or nothing. */
export interface StreamArgs {
  readonly srcK: TensorRecord;
  readonly cacheK: TensorRecord;
  readonly srcV: TensorRecord | undefined;
  readonly cacheV: TensorRecord | undefined;
}

/** What `MAKvCacheCopyBatchArgs` holds. */
export type TokenArgs = StreamArgs & Readonly<Record<"nHeads" | "headDim" | "capacity" | "seqPos", number>>;

export const copyToken =
  ({ srcK, cacheK, srcV, cacheV, nHeads, headDim, capacity, seqPos }: TokenArgs): CopyCall =>
  (pass) => {
    const block = new Block(structSizes.MAKvCacheCopyBatchArgs);
    packStreams(block, srcK, cacheK, srcV, cacheV);
    packKvCacheCopyBatch(block, nHeads, headDim, capacity, seqPos);
    return native.ma_kv_cache_copy_batch(pass, block.bytes);
  };

type RunArgs = Readonly<Record<"nHeads" | "headDim" | "capacity" | "seqPosStart" | "nTokens" | "srcTokOffset", number>>;

/** What `MAKvCacheCopySeqArgs` holds. */
export type SeqArgs = StreamArgs & RunArgs;

export const copySeq =
  ({ srcK, cacheK, srcV, cacheV, nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset }: SeqArgs): CopyCall =>
  (pass) => {
    const block = new Block(structSizes.MAKvCacheCopySeqArgs);
    packStreams(block, srcK, cacheK, srcV, cacheV);
    packKvCacheCopySeq(block, nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset);
    return native.ma_kv_cache_copy_seq(pass, block.bytes);
  };

/** What `MAKvCacheCopyHeadMajorArgs` holds. */
export type HeadMajorArgs = RunArgs & {
  readonly src: TensorRecord;
  readonly cache: TensorRecord;
  readonly srcSeqLen: number;
};

export const copyHeadMajor =
  ({ src, cache, nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset, srcSeqLen }: HeadMajorArgs): CopyCall =>
  (pass) => {
    const block = new Block(structSizes.MAKvCacheCopyHeadMajorArgs);
    packKvCacheCopyHeadMajor(
      ...([block, src, cache, nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset, srcSeqLen] as const),
    );
    return native.ma_kv_cache_copy_head_major(pass, block.bytes);
  };
