/**
 * Oracles of the KV-cache copies, on the bits of the elements: f32 as
 * Uint32Array, f16 and bf16 as Uint16Array. Each writes into `cache`.
 *
 * The position p of a sequence lives in slot p mod capacity. Offsets and
 * positions are plain numbers, exact to 2^53.
 */

import { at } from "./at.ts";
import { convertBits, type FloatName } from "./rounding.ts";

/** Bits of the elements of a source or cache. */
export type ElementBits = Uint16Array | Uint32Array;

/** A source, a cache, and the formats of their elements. */
export interface CopyStream {
  readonly src: ElementBits;
  readonly srcDtype: FloatName;
  /** Written in place. */
  readonly cache: ElementBits;
  readonly cacheDtype: FloatName;
}

function copyRow(stream: CopyStream, srcRow: number, cacheRow: number, length: number): void {
  for (let i = 0; i < length; i++) {
    at(stream.cache, cacheRow + i);
    stream.cache[cacheRow + i] = convertBits(stream.srcDtype, stream.cacheDtype, at(stream.src, srcRow + i));
  }
}

/** `cache[slot, :] = src[t, :]` for t < nNew; slot = writePos + t, mod cacheCap when sliding. */
export function referenceKvCacheCopy(
  stream: CopyStream,
  params: { writePos: number; rowSize: number; nNew: number; cacheCap: number; isSliding: boolean },
): void {
  const { writePos, rowSize, nNew, cacheCap, isSliding } = params;
  for (let token = 0; token < nNew; token++) {
    const slot = isSliding ? (writePos + token) % cacheCap : writePos + token;
    copyRow(stream, token * rowSize, slot * rowSize, rowSize);
  }
}

/** `cache[head, seqPos, :] = src[head, :]`, src [nHeads, headDim], cache [nHeads, capacity, headDim]. */
export function referenceKvCacheCopyBatch(
  stream: CopyStream,
  params: { nHeads: number; headDim: number; capacity: number; seqPos: number },
): void {
  const { nHeads, headDim, capacity, seqPos } = params;
  for (let head = 0; head < nHeads; head++) {
    copyRow(stream, head * headDim, (head * capacity + seqPos) * headDim, headDim);
  }
}

/** Positions and extents of a copy of many tokens into a head-major cache. */
export interface CopyTokensParams {
  readonly nHeads: number;
  readonly headDim: number;
  readonly capacity: number;
  readonly seqPosStart: number;
  readonly nTokens: number;
  readonly srcTokOffset: number;
}

/**
 * `cache[head, (seqPosStart + t) mod capacity, :] = src[srcTokOffset + t, head, :]` for t < nTokens,
 * src [nSrcTokens, nHeads, headDim], cache [nHeads, capacity, headDim].
 */
export function referenceKvCacheCopySeq(stream: CopyStream, params: CopyTokensParams): void {
  copyTokens(stream, params, (token, head) => token * params.nHeads + head);
}

/**
 * `cache[head, (seqPosStart + t) mod capacity, :] = src[head, srcTokOffset + t, :]` for t < nTokens,
 * src [nHeads, srcSeqLen, headDim], cache [nHeads, capacity, headDim].
 */
export function referenceKvCacheCopyHeadMajor(
  stream: CopyStream,
  params: CopyTokensParams & { readonly srcSeqLen: number },
): void {
  copyTokens(stream, params, (token, head) => head * params.srcSeqLen + token);
}

function copyTokens(
  stream: CopyStream,
  params: CopyTokensParams,
  srcRow: (token: number, head: number) => number,
): void {
  const { nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset } = params;
  for (let token = 0; token < nTokens; token++) {
    const slot = (seqPosStart + token) % capacity;
    for (let head = 0; head < nHeads; head++) {
      copyRow(stream, srcRow(srcTokOffset + token, head) * headDim, (head * capacity + slot) * headDim, headDim);
    }
  }
}
