/**
 * Oracle of joining attention over parts of the keys, by the parts' logarithms of sums of exponentials:
 *
 *   LSE = m + ln(sum_i exp(LSE_i - m)),   m = max_i LSE_i
 *   O = sum_i exp(LSE_i - LSE) O_i
 *
 * over the parts that have seen a key, those whose LSE is not -infinity. Where none has, O is 0 and LSE -infinity.
 */

import { at } from "./at.ts";
import { exp } from "./exp.ts";
import type { DecodeResult } from "./flashAttnDecode.ts";
import { log } from "./log.ts";

/** What {@link referenceMerge} joins: rows [rows, valueDim] and their logarithms. */
export interface DecodePart {
  readonly out: ArrayLike<number>;
  readonly lse: ArrayLike<number>;
}

/** The result over the keys of all parts: the mean of their rows, weighted by e^lse. */
export function referenceMerge(parts: readonly DecodePart[], rows: number, valueDim: number): DecodeResult {
  const out = new Float64Array(rows * valueDim);
  const logarithms = new Float64Array(rows).fill(Number.NEGATIVE_INFINITY);
  for (let row = 0; row < rows; row++) {
    const seen = parts.filter((part) => at(part.lse, row) !== Number.NEGATIVE_INFINITY);
    if (seen.length === 0) continue;
    const maximum = Math.max(...seen.map((part) => at(part.lse, row)));
    const weights = seen.map((part) => exp(at(part.lse, row) - maximum));
    const sum = weights.reduce((total, weight) => total + weight, 0);
    logarithms[row] = maximum + log(sum);
    for (const [i, part] of seen.entries()) {
      const weight = at(weights, i) / sum;
      for (let d = 0; d < valueDim; d++) {
        const place = row * valueDim + d;
        out[place] = at(out, place) + weight * at(part.out, place);
      }
    }
  }
  return { out, lse: logarithms };
}
