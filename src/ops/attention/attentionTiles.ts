/** How `flash_attn_prefill` cuts its work: a threadgroup owns `queryTile` rows and walks the keys `keyTile` at a time. */
export interface AttentionTiles {
  readonly queryTile: number;
  readonly keyTile: number;
  /** SIMD groups of a threadgroup, each with 8 of the rows. */
  readonly simdgroups: number;
}

const wide: AttentionTiles = { queryTile: 32, keyTile: 16, simdgroups: 4 };
const narrow: AttentionTiles = { queryTile: 8, keyTile: 8, simdgroups: 1 };

/** The tiles of a head size; the library refuses sizes that no kernel serves. */
export function attentionTiles(headDim: number): AttentionTiles {
  return headDim < 512 ? wide : narrow;
}

/** Threadgroup memory of a kernel in bytes: tiles of 16-bit elements, their rows padded by 16 bytes. */
export function threadgroupMemory(headDim: number): number {
  const { queryTile, keyTile } = attentionTiles(headDim);
  const rowBytes = (headDim + 8) * 2;
  const separate = (queryTile + 2 * keyTile) * rowBytes;
  // K and V take turns in one tile where two do not fit.
  return separate <= 32768 ? separate : (queryTile + keyTile) * rowBytes;
}
