/** Measures of the distance between a result and its oracle. */

import { at } from "./at.ts";

function checkLengths(actual: ArrayLike<number>, expected: ArrayLike<number>): void {
  if (actual.length !== expected.length || actual.length === 0) {
    throw new RangeError(`cannot compare ${actual.length} values with ${expected.length}`);
  }
}

/** max |actual - expected|; NaN where either is NaN, so that a comparison with a bound fails. */
export function maxError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  checkLengths(actual, expected);
  let largest = 0;
  for (let i = 0; i < actual.length; i++) {
    const a = at(actual, i);
    const e = at(expected, i);
    if (a !== e) largest = Math.max(largest, Math.abs(a - e));
  }
  return largest;
}

/** Normalized mean square error: sum (actual - expected)^2 / sum expected^2. 0 for two all-zero vectors. */
export function nmse(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  checkLengths(actual, expected);
  let difference = 0;
  let reference = 0;
  for (let i = 0; i < actual.length; i++) {
    const e = at(expected, i);
    difference += (at(actual, i) - e) ** 2;
    reference += e ** 2;
  }
  return difference === 0 ? 0 : difference / reference;
}
