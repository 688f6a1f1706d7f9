import { at } from "./at.ts";
import type { CopyStream } from "./kvCacheCopy.ts";
import { convertBits } from "./rounding.ts";

/** Where the tokens of an append go. */
export interface AppendParams {
  readonly batch: number;
  readonly nTokens: number;
  readonly nHeads: number;
  readonly headDim: number;
  /** Slots of a sequence, those of all its pages together. */
  readonly capacity: number;
  readonly isSliding: boolean;
  /** Caches are the pool [nPages, nHeads, pageTokens, headDim]; `table` [batch, capacity / pageTokens]. */
  readonly pages?: { readonly pageTokens: number; readonly nPages: number; readonly table: ArrayLike<number> };
  /** The position of a token. */
  position(batch: number, token: number): number;
}

/** The page (or batch) and the slot in it of a position; undefined where there is none. */
function placeOf(params: AppendParams, batch: number, position: number): readonly [number, number] | undefined {
  const { capacity, isSliding, pages } = params;
  if (position < 0) return undefined;
  const slot = isSliding ? position % capacity : position;
  if (slot >= capacity) return undefined;
  if (pages === undefined) return [batch, slot];
  const { pageTokens, nPages, table } = pages;
  const page = at(table, batch * (capacity / pageTokens) + Math.floor(slot / pageTokens));
  return page >= 0 && page < nPages ? [page, slot % pageTokens] : undefined;
}

/**
 * Oracle of where `kvCacheAppend` writes, on the bits of elements: src [batch, nTokens, nHeads, headDim] goes, token by
 * token, to the slots of its positions in caches [batch, nHeads, capacity, headDim] or pages. What turns is turned
 * before (`referenceApplyRope`).
 */
export function referenceKvCacheAppend(stream: CopyStream, params: AppendParams): void {
  const { batch, nTokens, nHeads, headDim, capacity, pages } = params;
  for (let b = 0; b < batch; b++) {
    for (let token = 0; token < nTokens; token++) {
      const place = placeOf(params, b, params.position(b, token));
      if (place === undefined) continue;
      for (let head = 0; head < nHeads; head++) {
        const from = ((b * nTokens + token) * nHeads + head) * headDim;
        const to = ((place[0] * nHeads + head) * (pages?.pageTokens ?? capacity) + place[1]) * headDim;
        for (let i = 0; i < headDim; i++) {
          at(stream.cache, to + i);
          stream.cache[to + i] = convertBits(stream.srcDtype, stream.cacheDtype, at(stream.src, from + i));
        }
      }
    }
  }
}
