import { ln2High, ln2Low } from "./ln2.ts";

/**
 * The natural logarithm, by additions, multiplications and divisions alone, so that it has
 * the same bits on every machine; Math.log is free to differ in the last one. The error is a few units there.
 *
 *   x = 2^k m with m from sqrt(1/2) to sqrt(2), z = (m - 1) / (m + 1);   ln x = k ln 2 + 2 (z + z^3/3 + z^5/5 + ...)
 */
export function log(x: number): number {
  if (x === 0) return Number.NEGATIVE_INFINITY;
  if (!(x > 0)) return Number.NaN;
  if (x === Number.POSITIVE_INFINITY) return x;
  let k = 0;
  let m = x;
  for (; m > Math.SQRT2; k++) m /= 2;
  for (; m < Math.SQRT1_2; k--) m *= 2;
  const z = (m - 1) / (m + 1);
  const square = z * z;
  let sum = 0;
  for (let n = 23; n >= 1; n -= 2) sum = sum * square + 1 / n;
  return k * ln2High + (k * ln2Low + 2 * z * sum);
}
