import { describe, expect, test } from "bun:test";
import { log } from "../../src/reference/index.ts";
import { seededRandom } from "../helpers/random.ts";

/** The difference to Math.log, which is right within one, in units in the last place. */
function ulps(x: number): number {
  const exact = Math.log(x);
  const unit = 2 ** (Math.floor(Math.log2(Math.abs(exact))) - 52);
  return Math.abs(log(x) - exact) / unit;
}

describe("the natural logarithm of the oracles", () => {
  test("is right within four units in the last place, over all magnitudes", () => {
    const random = seededRandom(5);
    for (let i = 0; i < 20_000; i++) {
      const x = (1 + random()) * 2 ** (Math.floor(random() * 2098) - 1074);
      expect(ulps(x)).toBeLessThanOrEqual(4);
    }
  });

  test("of numbers about 1", () => {
    for (let i = 1; i < 1000; i++) {
      for (const x of [1 + i / 4096, 1 - i / 4096]) expect(ulps(x)).toBeLessThanOrEqual(4);
    }
    expect(log(1)).toBe(0);
  });

  test("of what is no positive, finite number", () => {
    for (const x of [0, -0, -1, -Number.MIN_VALUE, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]) {
      expect(log(x)).toBe(Math.log(x));
    }
  });
});
