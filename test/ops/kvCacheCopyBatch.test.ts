import { describe, expect, test } from "bun:test";
import { kvCacheCopyBatch } from "../../src/index.ts";
import { referenceKvCacheCopyBatch } from "../../src/reference/index.ts";
import { headCopyPairs, runOneDispatch, TestStream } from "../helpers/copies.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import { testTable } from "../helpers/table.ts";

const devices = oneAndTwoThreads();

interface BatchCase {
  readonly name: string;
  readonly nHeads: number;
  readonly headDim: number;
  readonly capacity: number;
  readonly seqPos: number;
  readonly isSliding?: boolean;
  readonly srcOffset?: number;
  readonly cacheOffset?: number;
  /** Whether the source has the shape [nHeads * headDim] in place of [nHeads, headDim]. */
  readonly flat?: boolean;
}

const headDims = [1, 2, 3, 4, 5, 7, 8, 12, 63, 64, 127, 128, 256, 257, 512];

const cases: readonly BatchCase[] = [
  ...headDims.map((headDim, index): BatchCase => {
    const name = `3 heads of ${headDim}`;
    return { name, nHeads: 3, headDim, capacity: 5, seqPos: index % 5, flat: index % 2 === 0 };
  }),
  ...[1, 2, 3, 4].flatMap((srcOffset) =>
    [0, 1, 2, 3].map((cacheOffset): BatchCase => {
      const name = `source ${srcOffset} and cache ${cacheOffset} elements into their buffers`;
      return { name, nHeads: 2, headDim: 8, capacity: 3, seqPos: 1, srcOffset, cacheOffset };
    }),
  ),
  { name: "one head of one element in one slot", nHeads: 1, headDim: 1, capacity: 1, seqPos: 0 },
  { name: "the first slot", nHeads: 2, headDim: 64, capacity: 9, seqPos: 0 },
  { name: "the last slot", nHeads: 2, headDim: 64, capacity: 9, seqPos: 8 },
  { name: "a ring, its second round", nHeads: 2, headDim: 64, capacity: 9, seqPos: 13, isSliding: true },
  { name: "a ring, before it wraps", nHeads: 2, headDim: 64, capacity: 9, seqPos: 8, isSliding: true },
  { name: "a ring of one slot", nHeads: 3, headDim: 7, capacity: 1, seqPos: 41, isSliding: true },
  { name: "the largest position", nHeads: 2, headDim: 8, capacity: 7, seqPos: 2 ** 32 - 1, isSliding: true },
  { name: "many heads", nHeads: 67, headDim: 12, capacity: 2, seqPos: 1, flat: true },
];

for (const { from, to, kernel } of headCopyPairs("kv_cache_copy_batch")) {
  testTable(`kvCacheCopyBatch, ${from} to ${to}`, cases, (entry) => {
    const { nHeads, headDim, capacity, seqPos, isSliding, srcOffset, cacheOffset, flat } = entry;
    const position = isSliding === undefined ? { seqPos } : { seqPos, isSliding };
    const slot = seqPos % capacity;
    const plan = {
      from,
      to,
      srcShape: flat === true ? [nHeads * headDim] : [nHeads, headDim],
      cacheShape: [nHeads, capacity, headDim],
      srcOffset,
      cacheOffset,
    };
    for (const device of devices) {
      const k = new TestStream(device, { ...plan, seed: 1 });
      const v = new TestStream(device, { ...plan, seed: 2 });
      const expectBoth = () => {
        for (const stream of [k, v]) {
          stream.expectCopied((reference) =>
            referenceKvCacheCopyBatch(reference, { nHeads, headDim, capacity, seqPos: slot }),
          );
        }
      };
      for (const { src, cache } of [k, v]) {
        runOneDispatch(device, kernel, (pass) => kvCacheCopyBatch(pass, { src, cache, ...position }));
      }
      expectBoth();
      const singles = [k.snapshot(), v.snapshot()];
      for (let repeat = 0; repeat < 2; repeat++) {
        k.reset();
        v.reset();
        runOneDispatch(device, `${kernel}_kv_dual`, (pass) => kvCacheCopyBatch(pass, { k, v, ...position }));
        expectBoth();
        // A NaN may be any NaN for the oracle, but not for the dual kernel.
        expect([k.snapshot(), v.snapshot()]).toEqual(singles);
      }
    }
  });
}

describe("kvCacheCopyBatch", () => {
  const [device] = devices;
  const plan = { from: "f32", to: "f16", srcShape: [2, 4], cacheShape: [2, 3, 4], seed: 5 } as const;

  test("no head: success without a dispatch", () => {
    const stream = new TestStream(device, plan);
    const none = { src: stream.src.slice(0, 0), cache: stream.cache.slice(0, 0) };
    using pass = device.pass();
    kvCacheCopyBatch(pass, { ...none, seqPos: 0 });
    kvCacheCopyBatch(pass, { k: none, v: none, seqPos: 2 });
    const noElement = { src: none.src.reshape([2, 0]), cache: none.cache.reshape([2, 3, 0]) };
    kvCacheCopyBatch(pass, { ...noElement, seqPos: 1 });
    expect(pass.describe()).toEqual([]);
    pass.commitAndWait();
    stream.expectUntouched();
  });

  test("a flat source may be longer than nHeads * headDim", () => {
    const stream = new TestStream(device, { ...plan, srcShape: [13] });
    const { src, cache } = stream;
    runOneDispatch(device, "kv_cache_copy_batch_f32_to_f16", (pass) =>
      kvCacheCopyBatch(pass, { src, cache, seqPos: 2 }),
    );
    const params = { nHeads: 2, headDim: 4, capacity: 3, seqPos: 2 };
    stream.expectCopied((reference) => referenceKvCacheCopyBatch(reference, params));
  });

  test("K and V may be slices of one buffer", () => {
    const both = new TestStream(device, { ...plan, srcShape: [2, 2, 4], cacheShape: [4, 3, 4] });
    const stream = (index: number) => ({
      src: both.src.slice(index, index + 1).reshape([2, 4]),
      cache: both.cache.slice(2 * index, 2 * index + 2),
    });
    runOneDispatch(device, "kv_cache_copy_batch_f32_to_f16_kv_dual", (pass) =>
      kvCacheCopyBatch(pass, { k: stream(0), v: stream(1), seqPos: 1 }),
    );
    both.expectCopied((reference) => {
      referenceKvCacheCopyBatch(reference, { nHeads: 4, headDim: 4, capacity: 3, seqPos: 1 });
    });
  });

  test("decode: 20 tokens into a ring of 8, one dispatch each", () => {
    const source = new TestStream(device, { ...plan, srcShape: [20, 2, 4], cacheShape: [2, 8, 4] });
    using pass = device.pass();
    for (let position = 0; position < 20; position++) {
      const src = source.src.slice(position, position + 1).reshape([2, 4]);
      kvCacheCopyBatch(pass, { src, cache: source.cache, seqPos: position, isSliding: true });
    }
    expect(pass.describe().length).toBe(20);
    pass.commitAndWait();
    source.expectCopied((reference) => {
      for (let position = 0; position < 20; position++) {
        const stream = { ...reference, src: reference.src.subarray(8 * position, 8 * position + 8) };
        referenceKvCacheCopyBatch(stream, { nHeads: 2, headDim: 4, capacity: 8, seqPos: position % 8 });
      }
    });
  });
});
