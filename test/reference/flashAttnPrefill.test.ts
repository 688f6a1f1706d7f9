import { describe, expect, test } from "bun:test";
import {
  type AttentionProblem,
  headMajorStrides,
  maxError,
  nmse,
  plainAttention,
  referenceAttention,
  sequenceMajorStrides,
} from "../../src/reference/index.ts";

const ln = Math.log;

/** One head, D = 1, q = 1: scores are the keys, so softmax weights can be chosen through logarithms. */
function oneHead(keys: number[], values: number[], queries = [1]): AttentionProblem {
  const strides = (tokens: number) => headMajorStrides(1, tokens, 1);
  return {
    batch: 1,
    heads: 1,
    kvHeads: 1,
    seqLenQ: queries.length,
    seqLenK: keys.length,
    headDim: 1,
    scale: 1,
    q: { values: queries, strides: strides(queries.length) },
    k: { values: keys, strides: strides(keys.length) },
    v: { values, strides: strides(keys.length) },
  };
}

function additive(values: number[], seqLenK: number): AttentionProblem["mask"] {
  return { kind: "additive", values, strides: { batch: 0, head: 0, token: seqLenK } };
}

describe("referenceAttention", () => {
  test("weights proportional to exp(score)", () => {
    // Weights 1/4 and 3/4.
    expect(referenceAttention(oneHead([0, ln(3)], [8, 16]))[0]).toBeCloseTo(14, 12);
  });

  test("scale multiplies the scores", () => {
    // exp(2 ln 3) = 9: weights 1/10 and 9/10.
    expect(referenceAttention({ ...oneHead([0, ln(3)], [10, 20]), scale: 2 })[0]).toBeCloseTo(19, 12);
  });

  test("scores of 1000 do not overflow", () => {
    expect(referenceAttention(oneHead([1000, 1000], [2, 4]))[0]).toBe(3);
  });

  test("causal: query i sees keys up to i + qOffsetInK", () => {
    const problem = { ...oneHead([0, 0, 0, 0], [4, 8, 12, 16], [1, 1]), causal: true };
    expect([...referenceAttention(problem)]).toEqual([4, 6]);
    expect([...referenceAttention({ ...problem, qOffsetInK: 2 })]).toEqual([8, 10]);
  });

  test("masks: a bias shifts, -Infinity blocks, a row with nothing is 0", () => {
    const problem = oneHead([0, 0, 0], [10, 20, 30], [1, 1]);
    const mask = additive([ln(3), 0, -Infinity, -Infinity, -Infinity, -Infinity], 3);
    expect([...referenceAttention({ ...problem, mask })]).toEqual([expect.closeTo(12.5, 12), 0]);
    const bool = { kind: "bool", values: [1, 1, 0, 0, 0, 0], strides: { batch: 0, head: 0, token: 3 } } as const;
    expect([...referenceAttention({ ...problem, mask: bool })]).toEqual([15, 0]);
  });

  test("a mask and causal together: a key needs both", () => {
    const mask = additive([0, 0, -Infinity, 0], 2);
    const problem = { ...oneHead([0, 0], [1, 2], [1, 1]), causal: true, mask };
    expect([...referenceAttention(problem)]).toEqual([1, 2]);
  });

  test("blocked keys are not read: their NaN stays out", () => {
    const problem = { ...oneHead([0, Number.NaN], [5, Number.NaN], [1]), causal: true };
    expect([...referenceAttention(problem)]).toEqual([5]);
  });

  test("grouped queries: head h reads key/value head h / (heads / kvHeads)", () => {
    const heads = { values: [1, 1, 1, 1], strides: headMajorStrides(4, 1, 1) };
    const kv = (values: number[]) => ({ values, strides: headMajorStrides(2, 1, 1) });
    const problem = { ...oneHead([0], [0]), heads: 4, kvHeads: 2, q: heads, k: kv([0, 0]), v: kv([7, 9]) };
    expect([...referenceAttention(problem)]).toEqual([7, 7, 9, 9]);
  });

  test("strides: sequence-major input, head-major output, batch", () => {
    // V[b, token, head] = 100 b + 10 token + head; equal scores average the two tokens.
    const v = [0, 1, 10, 11, 100, 101, 110, 111];
    const zeros = { values: new Float64Array(8), strides: sequenceMajorStrides(2, 2, 1) };
    const problem: AttentionProblem = {
      ...oneHead([0, 0], [0, 0]),
      batch: 2,
      heads: 2,
      kvHeads: 2,
      seqLenQ: 2,
      q: zeros,
      k: zeros,
      v: { values: v, strides: sequenceMajorStrides(2, 2, 1) },
    };
    expect([...referenceAttention(problem)]).toEqual([5, 5, 6, 6, 105, 105, 106, 106]);
  });
});

test("plainAttention rounds the output to the dtype", () => {
  const problem = oneHead([0, 0], [1, 1 + 2 ** -7]);
  // The mean 1 + 2^-8 is a tie in bf16.
  expect([...plainAttention(problem, "bf16")]).toEqual([1]);
  expect([...plainAttention(problem, "f16")]).toEqual([1 + 2 ** -8]);
});

test("plainAttention sums in float32", () => {
  // 2^24 + 1 is no float: the second product is lost.
  const strides = headMajorStrides(1, 1, 2);
  const problem: AttentionProblem = {
    ...oneHead([0], [0]),
    headDim: 2,
    q: { values: [2 ** 24, 1], strides },
    k: { values: [1, 1, 1, 0], strides: headMajorStrides(1, 2, 2) },
    v: { values: [0, 0, 2, 2], strides: headMajorStrides(1, 2, 2) },
    seqLenK: 2,
  };
  expect([...plainAttention(problem, "f32")]).toEqual([1, 1]);
  expect(referenceAttention(problem)[0]).toBeCloseTo(2 / (1 + Math.E), 12);
});

describe("error measures", () => {
  test("maxError and nmse", () => {
    expect(maxError([1, 2, 5], [1, 4, 4])).toBe(2);
    expect(nmse([1, 2, 5], [1, 4, 4])).toBe(5 / 33);
    expect(nmse([0, 0], [0, 0])).toBe(0);
  });

  test("a NaN fails every bound", () => {
    expect(maxError([Number.NaN, 1], [0, 1])).toBeNaN();
    expect(nmse([Number.NaN, 1], [0, 1])).toBeNaN();
    expect(maxError([Number.NEGATIVE_INFINITY], [Number.NEGATIVE_INFINITY])).toBe(0);
  });

  test("unequal or empty lengths throw", () => {
    expect(() => maxError([1], [1, 2])).toThrow(RangeError);
    expect(() => nmse([], [])).toThrow(RangeError);
  });
});
