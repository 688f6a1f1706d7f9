import { expect, test } from "bun:test";
import fc from "fast-check";

/** `FAST_CHECK_SEED=n` draws other cases; a failure prints the seed, and the smallest case that fails. */
const seed = Number(process.env["FAST_CHECK_SEED"] ?? 20_261_121);

/** A test that `check` holds for `runs` drawn cases, and that as many were drawn. */
export function property<T>(name: string, drawn: fc.Arbitrary<T>, runs: number, check: (drawn: T) => void): void {
  test(`${name}: ${runs} drawn cases`, () => {
    let checked = 0;
    const counted = fc.property(drawn, (entry) => {
      check(entry);
      checked++;
    });
    fc.assert(counted, { seed, numRuns: runs });
    expect(checked).toBe(runs);
  });
}
