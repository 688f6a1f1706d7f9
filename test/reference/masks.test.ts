import { expect, test } from "bun:test";
import { referenceCausalMask, referenceSlidingWindowMask, referenceTileClasses } from "../../src/reference/index.ts";

const picture = (attends: boolean[], seqLenK: number) =>
  attends
    .map((yes, i) => (yes ? "x" : ".") + (i % seqLenK === seqLenK - 1 ? " " : ""))
    .join("")
    .trim();

test("causal masks", () => {
  expect(picture(referenceCausalMask({ seqLenQ: 3, seqLenK: 3 }), 3)).toBe("x.. xx. xxx");
  expect(picture(referenceCausalMask({ seqLenQ: 2, seqLenK: 4, qOffsetInK: 1 }), 4)).toBe("xx.. xxx.");
});

test("sliding-window masks", () => {
  expect(picture(referenceSlidingWindowMask({ seqLenQ: 4, seqLenK: 4, window: 2 }), 4)).toBe("x... xx.. .xx. ..xx");
  expect(picture(referenceSlidingWindowMask({ seqLenQ: 2, seqLenK: 4, qOffsetInK: 2, window: 1 }), 4)).toBe(
    "..x. ...x",
  );
});

test("tile classes: blocked, mixed, unmasked, partial tiles, planes", () => {
  // Two planes of 3 x 5 in tiles of 2 x 2: 2 x 3 tiles each, the last ones partial.
  const plane0 = [1, 1, 0, 0, 1, 1, 1, 0, 0, 1, 0, 1, 0, 1, 0];
  const plane1 = plane0.map((value) => 1 - value);
  const shape = { batches: 1, heads: 2, seqLenQ: 3, seqLenK: 5, tileRows: 2, tileKeys: 2 };
  const strides = { batch: 30, head: 15, token: 5 };
  const bool = referenceTileClasses({ kind: "bool", values: [...plane0, ...plane1], strides }, shape);
  expect([...bool]).toEqual([2, 0, 2, 1, 1, 0, 0, 2, 0, 1, 1, 2]);

  const values = plane0.map((value) => (value === 1 ? 0 : -Infinity));
  const additive = { kind: "additive", values, strides } as const;
  expect([...referenceTileClasses(additive, { ...shape, heads: 1 })]).toEqual([2, 0, 2, 1, 1, 0]);
});

test("tile classes: a finite bias is neither blocked nor unmasked", () => {
  const mask = { kind: "additive", values: [0, -3], strides: { batch: 0, head: 0, token: 2 } } as const;
  const shape = { batches: 1, heads: 1, seqLenQ: 1, seqLenK: 2, tileRows: 8, tileKeys: 8 };
  expect([...referenceTileClasses(mask, shape)]).toEqual([1]);
});
