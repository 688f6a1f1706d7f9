import { describe, expect, test } from "bun:test";
import {
  type CopyStream,
  encode,
  referenceKvCacheCopy,
  referenceKvCacheCopyBatch,
  referenceKvCacheCopyHeadMajor,
  referenceKvCacheCopySeq,
} from "../../src/reference/index.ts";

/** A stream of small numbers in bf16 bits, into a cache of zeros. */
function stream(values: number[], cacheLength: number): CopyStream & { cache: Uint16Array } {
  return { src: Uint16Array.from(values), srcDtype: "bf16", cache: new Uint16Array(cacheLength), cacheDtype: "bf16" };
}

describe("referenceKvCacheCopy", () => {
  test("linear: rows from writePos on", () => {
    const copy = stream([1, 2, 3, 4], 8);
    referenceKvCacheCopy(copy, { writePos: 1, rowSize: 2, nNew: 2, cacheCap: 4, isSliding: false });
    expect([...copy.cache]).toEqual([0, 0, 1, 2, 3, 4, 0, 0]);
  });

  test("ring: the row after the last slot goes to slot 0", () => {
    const copy = stream([1, 2, 3, 4], 6);
    referenceKvCacheCopy(copy, { writePos: 3 * 1000 + 2, rowSize: 2, nNew: 2, cacheCap: 3, isSliding: true });
    expect([...copy.cache]).toEqual([3, 4, 0, 0, 1, 2]);
  });

  test("a write beyond the cache throws", () => {
    const params = { writePos: 2, rowSize: 2, nNew: 2, cacheCap: 3, isSliding: false };
    expect(() => referenceKvCacheCopy(stream([1, 2, 3, 4], 6), params)).toThrow(RangeError);
  });
});

test("referenceKvCacheCopyBatch: one slot of each head, rounded to f16", () => {
  const cache = new Uint16Array(2 * 3 * 2);
  const src = new Uint32Array([1, 1 + 2 ** -11, -2, 1e6].map((value) => encode("f32", value)));
  const params = { nHeads: 2, headDim: 2, capacity: 3, seqPos: 1 };
  referenceKvCacheCopyBatch({ src, srcDtype: "f32", cache, cacheDtype: "f16" }, params);
  expect([...cache]).toEqual([0, 0, 0x3c00, 0x3c00, 0, 0, 0, 0, 0xc000, 0x7c00, 0, 0]);
});

// Source tokens 0 to 2 of heads a and b: [a0 b0 a1 b1 a2 b2] or head-major [a0 a1 a2 b0 b1 b2].
// Tokens 1 and 2 take positions 5 and 6: slots 2 and 0 of three.
const params = { nHeads: 2, headDim: 1, capacity: 3, seqPosStart: 5, nTokens: 2, srcTokOffset: 1 };
const [a0, a1, a2, b0, b1, b2] = [10, 11, 12, 20, 21, 22];
const expected = [a2, 0, a1, b2, 0, b1];

test("referenceKvCacheCopySeq: token-major to head-major, wrapped", () => {
  const copy = stream([a0, b0, a1, b1, a2, b2], 6);
  referenceKvCacheCopySeq(copy, params);
  expect([...copy.cache]).toEqual(expected);
});

test("referenceKvCacheCopyHeadMajor: head-major to head-major, wrapped", () => {
  const copy = stream([a0, a1, a2, b0, b1, b2], 6);
  referenceKvCacheCopyHeadMajor(copy, { ...params, srcSeqLen: 3 });
  expect([...copy.cache]).toEqual(expected);
});
