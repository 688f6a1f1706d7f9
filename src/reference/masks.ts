/** Oracles of the mask builders and of the tile classes. */

import { at } from "./at.ts";
import { type AttentionMask, offsetOf } from "./flashAttnPrefill.ts";

/** Lengths of a mask [seqLenQ, seqLenK] and the position of its first query row among the keys. */
export interface MaskShape {
  readonly seqLenQ: number;
  readonly seqLenK: number;
  readonly qOffsetInK?: number | undefined;
}

/** Keys j <= i + qOffsetInK attend (true): row-major [seqLenQ, seqLenK]. */
export function referenceCausalMask(shape: MaskShape): boolean[] {
  return referenceSlidingWindowMask({ ...shape, window: Number.POSITIVE_INFINITY });
}

/** The `window` newest of the causal keys attend: i + qOffsetInK - window < j <= i + qOffsetInK. */
export function referenceSlidingWindowMask(shape: MaskShape & { readonly window: number }): boolean[] {
  const { seqLenQ, seqLenK, qOffsetInK = 0, window } = shape;
  const attends: boolean[] = [];
  for (let row = 0; row < seqLenQ; row++) {
    const newest = row + qOffsetInK;
    for (let key = 0; key < seqLenK; key++) attends.push(key <= newest && key > newest - window);
  }
  return attends;
}

/** Class of a mask tile: every key of every row blocked, a mixture, or nothing masked. */
export const TILE_CLASSES = { blocked: 0, mixed: 1, unmasked: 2 } as const;

/**
 * Tile classes [planes, ceil(seqLenQ / tileRows), ceil(seqLenK / tileKeys)] of a
 * mask with `batches` * `heads` planes of its own. Keys past seqLenK and rows
 * past seqLenQ do not count.
 */
export function referenceTileClasses(
  mask: AttentionMask,
  shape: {
    readonly batches: number;
    readonly heads: number;
    readonly seqLenQ: number;
    readonly seqLenK: number;
    readonly tileRows: number;
    readonly tileKeys: number;
  },
): Uint8Array {
  const { batches, heads, seqLenQ, seqLenK, tileRows, tileKeys } = shape;
  const blocked = mask.kind === "additive" ? Number.NEGATIVE_INFINITY : 0;
  const isUnmasked = (value: number) => (mask.kind === "additive" ? value === 0 : value !== 0);
  const classes: number[] = [];
  for (let batch = 0; batch < batches; batch++) {
    for (let head = 0; head < heads; head++) {
      for (let firstRow = 0; firstRow < seqLenQ; firstRow += tileRows) {
        for (let firstKey = 0; firstKey < seqLenK; firstKey += tileKeys) {
          const values: number[] = [];
          for (let row = firstRow; row < Math.min(firstRow + tileRows, seqLenQ); row++) {
            const start = offsetOf(mask.strides, batch, head, row);
            for (let key = firstKey; key < Math.min(firstKey + tileKeys, seqLenK); key++) {
              values.push(at(mask.values, start + key));
            }
          }
          if (values.every((value) => value === blocked)) classes.push(TILE_CLASSES.blocked);
          else if (values.every(isUnmasked)) classes.push(TILE_CLASSES.unmasked);
          else classes.push(TILE_CLASSES.mixed);
        }
      }
    }
  }
  return Uint8Array.from(classes);
}
