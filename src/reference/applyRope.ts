import { at } from "./at.ts";

/** Shape and angles of rotary positions. */
export interface RopeParams {
  readonly batch: number;
  readonly nHeads: number;
  readonly nTokens: number;
  readonly headDim: number;
  /** [batch, nTokens, nHeads, headDim]; else [batch, nHeads, nTokens, headDim]. */
  readonly isSequenceMajor: boolean;
  /** Pairs are coordinates 2 i and 2 i + 1; else i and i + invFreq.length. */
  readonly isInterleaved: boolean;
  /** Radians from one position to the next, of each pair; f32, so that a product with a position is exact here. */
  readonly invFreq: ArrayLike<number>;
  readonly attentionScale: number;
  /** The position of a token. */
  position(batch: number, token: number): number;
}

/**
 * Oracle of `applyRope`, on values: pair i at position p turns by
 * p * invFreq[i], with sine and cosine times attentionScale; coordinates from
 * 2 * invFreq.length on keep their values.
 */
export function referenceApplyRope(x: ArrayLike<number>, params: RopeParams): Float64Array {
  const { batch, nHeads, nTokens, headDim, isSequenceMajor, isInterleaved, invFreq, attentionScale } = params;
  const out = Float64Array.from(x);
  for (let b = 0; b < batch; b++) {
    for (let head = 0; head < nHeads; head++) {
      for (let token = 0; token < nTokens; token++) {
        const vector = isSequenceMajor ? (b * nTokens + token) * nHeads + head : (b * nHeads + head) * nTokens + token;
        for (let i = 0; i < invFreq.length; i++) {
          const first = vector * headDim + (isInterleaved ? 2 * i : i);
          const second = isInterleaved ? first + 1 : first + invFreq.length;
          const angle = params.position(b, token) * at(invFreq, i);
          const [cos, sin] = [attentionScale * Math.cos(angle), attentionScale * Math.sin(angle)];
          out[first] = at(x, first) * cos - at(x, second) * sin;
          out[second] = at(x, second) * cos + at(x, first) * sin;
        }
      }
    }
  }
  return out;
}
