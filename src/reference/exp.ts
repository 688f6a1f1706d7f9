import { ln2High, ln2Low } from "./ln2.ts";

const log2e = 1.4426950408889634;

/**
 * e^x in float64, by additions, multiplications and divisions alone. IEEE 754
 * fixes those to the last bit, Math.exp is free to differ there: with this an
 * oracle has the same bits on every machine. The error is below one unit in the
 * last place.
 *
 *   x = k ln 2 + r with |r| <= ln 2 / 2;   e^x = 2^k (1 + r + r^2/2! + ... + r^14/14!)
 */
export function exp(x: number): number {
  if (Number.isNaN(x)) return x;
  if (x > 709.79) return Number.POSITIVE_INFINITY;
  if (x < -745.2) return 0;
  const k = Math.round(x * log2e);
  const r = x - k * ln2High - k * ln2Low;
  let sum = 1;
  for (let n = 14; n > 0; n--) sum = 1 + (sum * r) / n;
  // In two steps, since 2^1024 is no float64 and 2^-1074 would round before the product.
  const half = Math.floor(k / 2);
  return sum * 2 ** half * 2 ** (k - half);
}
