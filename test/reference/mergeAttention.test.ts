import { expect, test } from "bun:test";
import { referenceMerge } from "../../src/reference/index.ts";

const unseen = Number.NEGATIVE_INFINITY;

test("parts count by e^lse, whatever the logarithms' size", () => {
  for (const shift of [0, 1e4, -1e4]) {
    // Weights 1 and 3: (4 + 3 * 8) / 4 and (0 + 3 * 4) / 4.
    const parts = [
      { out: [4, 0], lse: [shift] },
      { out: [8, 4], lse: [shift + Math.log(3)] },
    ];
    const { out, lse } = referenceMerge(parts, 1, 2);
    expect(out[0]).toBeCloseTo(7, 9);
    expect(out[1]).toBeCloseTo(3, 9);
    expect(lse[0]).toBeCloseTo(shift + Math.log(4), 9);
  }
});

test("a part that has seen nothing is left out, whatever it holds; a row of none is 0", () => {
  const parts = [
    { out: [Number.NaN, 5, 7], lse: [unseen, 2, unseen] },
    { out: [3, Number.NaN, Number.NaN], lse: [1, unseen, unseen] },
  ];
  const { out, lse } = referenceMerge(parts, 3, 1);
  expect([...out]).toEqual([3, 5, 0]);
  expect([...lse]).toEqual([1, 2, unseen]);
});

test("a part that has seen a key counts, however little: its NaN is one of the result", () => {
  const parts = [
    { out: [1], lse: [0] },
    { out: [Number.NaN], lse: [-1e4] },
  ];
  expect([...referenceMerge(parts, 1, 1).out]).toEqual([Number.NaN]);
});
