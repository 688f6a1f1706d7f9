/**
 * Oracles of decode attention. Row i of nQ of a sequence with L keys is at position p = L - nQ + i:
 *
 *   O = sum_j P[j] V[j],   P[j] = exp(s[j] - m) / (sum_j exp(s[j] - m) + exp(sink - m))
 *   s[j] = softcap * tanh(scale * <q, K[j]> / softcap) + slope * (j - p)
 *   LSE = m + ln(sum_j exp(s[j] - m) + exp(sink - m))
 *
 * over the keys j that the row sees: j <= p and, with a window, p - window < j; with a tree mask the last keys as
 * its bits say in place of j <= p. A row that sees nothing is 0. Where the keys are a part of a sequence's, p of the
 * slope's term is alibiDistance further on.
 */

import { at } from "./at.ts";
import { exp } from "./exp.ts";
import { log } from "./log.ts";
import { tanh } from "./tanh.ts";

/** One sequence. The values are those the kernel sees: rounded to its dtypes, or decoded from its codes. */
export interface DecodeProblem {
  readonly heads: number;
  readonly kvHeads: number;
  /** Query rows. */
  readonly rows: number;
  readonly headDim: number;
  /** Of a row of V. */
  readonly valueDim: number;
  /** Keys, those of the rows included. */
  readonly length: number;
  /** The first position that the cache still has; 0 unless given. */
  readonly oldest?: number | undefined;
  readonly scale: number;
  readonly window?: number | undefined;
  readonly softcap?: number | undefined;
  /** By head. */
  readonly sinks?: ArrayLike<number> | undefined;
  /** By head. */
  readonly alibiSlopes?: ArrayLike<number> | undefined;
  /** Positions from the last key to the last row; 0 unless given. */
  readonly alibiDistance?: number | undefined;
  /** Bit c of bits[row]: whether the row sees key length - columns + c. */
  readonly tree?: { readonly columns: number; readonly bits: ArrayLike<number> } | undefined;
  /** [heads, rows, headDim]. */
  readonly q: ArrayLike<number>;
  /** The key at a position, [headDim]. */
  readonly keyAt: (kvHead: number, position: number) => ArrayLike<number>;
  /** The value at a position. */
  readonly valueAt: (kvHead: number, position: number) => ArrayLike<number>;
}

/** A result in float64: `out` [heads, rows, valueDim], `lse` [heads, rows]. */
export interface DecodeResult {
  readonly out: Float64Array;
  readonly lse: Float64Array;
}

/** Whether a row sees a key that the cache has. */
function sees({ length, rows, window, tree }: DecodeProblem, row: number, key: number): boolean {
  const position = length - rows + row;
  if (window !== undefined && key <= position - window) return false;
  if (tree === undefined) return key <= position;
  const column = key - (length - tree.columns);
  return column < 0 || ((at(tree.bits, row) >>> column) & 1) === 1;
}

function scoreOf(problem: DecodeProblem, head: number, row: number, key: number): number {
  const { heads, kvHeads, rows, headDim, length, scale, softcap, alibiSlopes, alibiDistance = 0, q, keyAt } = problem;
  const values = keyAt(Math.floor(head / (heads / kvHeads)), key);
  let product = 0;
  for (let d = 0; d < headDim; d++) product += at(q, (head * rows + row) * headDim + d) * at(values, d);
  const score = product * scale;
  const capped = softcap === undefined ? score : softcap * tanh(score / softcap);
  const slope = alibiSlopes === undefined ? 0 : at(alibiSlopes, head);
  return capped + slope * (key - (length - rows + row) - alibiDistance);
}

/** The whole result. */
export function referenceDecode(problem: DecodeProblem): DecodeResult {
  const { heads, kvHeads, rows, valueDim, length, oldest = 0, sinks, valueAt } = problem;
  const out = new Float64Array(heads * rows * valueDim);
  const logarithms = new Float64Array(heads * rows);
  for (let head = 0; head < heads; head++) {
    for (let row = 0; row < rows; row++) {
      const seen: { readonly key: number; readonly score: number }[] = [];
      for (let key = oldest; key < length; key++) {
        if (sees(problem, row, key)) seen.push({ key, score: scoreOf(problem, head, row, key) });
      }
      const sink = sinks === undefined ? Number.NEGATIVE_INFINITY : at(sinks, head);
      const maximum = seen.reduce((most, { score }) => Math.max(most, score), sink);
      const query = head * rows + row;
      logarithms[query] = maximum;
      if (maximum === Number.NEGATIVE_INFINITY) continue;
      const first = query * valueDim;
      let sum = exp(sink - maximum);
      for (const { key, score } of seen) {
        const weight = exp(score - maximum);
        const values = valueAt(Math.floor(head / (heads / kvHeads)), key);
        sum += weight;
        for (let d = 0; d < valueDim; d++) out[first + d] = at(out, first + d) + weight * at(values, d);
      }
      for (let d = 0; d < valueDim; d++) out[first + d] = at(out, first + d) / sum;
      logarithms[query] = maximum + log(sum);
    }
  }
  return { out, lse: logarithms };
}
