/** Every copy, over drawn shapes, dtypes, positions and places in larger buffers: the oracle's bits, and no others. */
import { afterAll, describe } from "bun:test";
import fc from "fast-check";
import { openWithThreads } from "../../scripts/lib/open-device.ts";
import { kvCacheCopy, kvCacheCopyBatch, kvCacheCopyHeadMajor, kvCacheCopySeq, type Pass } from "../../src/index.ts";
import {
  type CopyTokensParams,
  type FloatName,
  referenceKvCacheCopy,
  referenceKvCacheCopyBatch,
  referenceKvCacheCopyHeadMajor,
  referenceKvCacheCopySeq,
} from "../../src/reference/index.ts";
import { type DtypePair, TestStream } from "../helpers/copies.ts";
import { property } from "./property.ts";

const device = openWithThreads(2);
afterAll(() => device.dispose());

const runs = 400;

function run(encode: (pass: Pass) => void): void {
  using pass = device.pass();
  encode(pass);
  pass.commitAndWait();
}

const from1To = (max: number) => fc.integer({ min: 1, max });

/** Where source and cache begin in their buffers, in elements, and what they hold. */
const places = { srcOffset: fc.nat(9), cacheOffset: fc.nat(9), seed: fc.nat(1000) };

/** Dtypes of source and cache. */
const pairs = (...list: readonly (readonly [FloatName, FloatName])[]): fc.Arbitrary<DtypePair> =>
  fc.constantFrom(...list.map(([from, to]) => ({ from, to })));

/** Some tokens of a source to any position of a ring that can hold them. */
const tokens = fc
  .record({
    nHeads: from1To(9),
    headDim: from1To(140),
    srcTokens: from1To(20),
    capacity: from1To(24),
    offset: fc.nat(1000),
    count: fc.nat(1000),
    position: fc.oneof(fc.nat(80), fc.integer({ min: 2 ** 32 - 60, max: 2 ** 32 - 25 })),
  })
  .map(({ nHeads, headDim, srcTokens, capacity, offset, count, position }) => {
    const srcTokOffset = offset % (srcTokens + 1);
    const nTokens = count % (Math.min(srcTokens - srcTokOffset, capacity) + 1);
    const params: CopyTokensParams = { nHeads, headDim, capacity, seqPosStart: position, nTokens, srcTokOffset };
    return { srcTokens, params };
  });

describe("copies against the oracle", () => {
  property(
    "kvCacheCopy",
    fc.record({
      dtype: fc.constantFrom("f32", "f16", "bf16"),
      rowSize: from1To(300),
      rows: from1To(12),
      cacheCap: from1To(16),
      count: fc.nat(1000),
      position: fc.nat(1000),
      isSliding: fc.boolean(),
      ...places,
    }),
    runs,
    ({ dtype, rowSize, rows, cacheCap, count, position, isSliding, ...plan }) => {
      const nNew = count % (Math.min(rows, cacheCap) + 1);
      const writePos = isSliding ? position : position % (cacheCap - nNew + 1);
      const shapes = { srcShape: [rows, rowSize], cacheShape: [cacheCap, rowSize] };
      using stream = new TestStream(device, { from: dtype, to: dtype, ...shapes, ...plan });
      const { src, cache } = stream;
      run((pass) => kvCacheCopy(pass, { src, cache, writePos, nNew, isSliding }));
      stream.expectCopied((bits) => referenceKvCacheCopy(bits, { writePos, rowSize, nNew, cacheCap, isSliding }));
    },
  );

  property(
    "kvCacheCopyBatch, K and V",
    fc.record({
      pair: pairs(["f32", "f32"], ["f32", "f16"]),
      nHeads: from1To(20),
      headDim: from1To(300),
      capacity: from1To(9),
      position: fc.nat(1000),
      ...places,
    }),
    runs,
    ({ pair, nHeads, headDim, capacity, position, ...plan }) => {
      const isSliding = position % 2 === 0;
      const seqPos = isSliding ? position : position % capacity;
      const shapes = { srcShape: [nHeads, headDim], cacheShape: [nHeads, capacity, headDim] };
      using k = new TestStream(device, { ...pair, ...shapes, ...plan });
      using v = new TestStream(device, { ...pair, ...shapes, ...plan, seed: plan.seed + 1 });
      run((pass) => kvCacheCopyBatch(pass, { k, v, seqPos, isSliding }));
      for (const stream of [k, v]) {
        const params = { nHeads, headDim, capacity, seqPos: position % capacity };
        stream.expectCopied((bits) => referenceKvCacheCopyBatch(bits, params));
      }
    },
  );

  const sequencePairs = pairs(
    ["f32", "f32"],
    ["f32", "f16"],
    ["f32", "bf16"],
    ["bf16", "f32"],
    ["bf16", "bf16"],
    ["f16", "f16"],
  );
  property(
    "kvCacheCopySeq, K and V",
    fc.record({ pair: sequencePairs, tokens, ...places }),
    runs,
    ({ pair, tokens: { srcTokens, params }, ...plan }) => {
      const { nHeads, headDim, capacity, ...range } = params;
      const shapes = { srcShape: [srcTokens, nHeads, headDim], cacheShape: [nHeads, capacity, headDim] };
      using k = new TestStream(device, { ...pair, ...shapes, ...plan });
      using v = new TestStream(device, { ...pair, ...shapes, ...plan, seed: plan.seed + 1 });
      run((pass) => kvCacheCopySeq(pass, { k, v, ...range, isSliding: true }));
      for (const stream of [k, v]) stream.expectCopied((bits) => referenceKvCacheCopySeq(bits, params));
    },
  );

  property(
    "kvCacheCopyHeadMajor",
    fc.record({ tokens, ...places }),
    runs,
    ({ tokens: { srcTokens, params }, ...plan }) => {
      const { nHeads, headDim, capacity, ...range } = params;
      const shapes = { srcShape: [nHeads, srcTokens, headDim], cacheShape: [nHeads, capacity, headDim] };
      using stream = new TestStream(device, { from: "bf16", to: "bf16", ...shapes, ...plan });
      const { src, cache } = stream;
      run((pass) => kvCacheCopyHeadMajor(pass, { src, cache, ...range, isSliding: true }));
      stream.expectCopied((bits) => referenceKvCacheCopyHeadMajor(bits, { ...params, srcSeqLen: srcTokens }));
    },
  );
});
