import { describe, expect, test } from "bun:test";
import { kvCacheCopyHeadMajor } from "../../src/index.ts";
import { referenceKvCacheCopyHeadMajor } from "../../src/reference/index.ts";
import { runOneDispatch, TestStream } from "../helpers/copies.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import { testTable } from "../helpers/table.ts";
import { tokenCases } from "../helpers/tokenCases.ts";

const devices = oneAndTwoThreads();

const kernel = "kv_cache_copy_seq_bf16_to_bf16_head_major";
const bf16 = { from: "bf16", to: "bf16" } as const;

testTable("kvCacheCopyHeadMajor, bf16", tokenCases, (entry) => {
  const { nHeads, headDim, srcTokens, capacity, args, resolved, srcOffset, cacheOffset } = entry;
  for (const [index, device] of devices.entries()) {
    const stream = new TestStream(device, {
      ...bf16,
      srcShape: [nHeads, srcTokens, headDim],
      cacheShape: [nHeads, capacity, headDim],
      srcOffset,
      cacheOffset,
      seed: index + 1,
    });
    const { src, cache } = stream;
    for (let repeat = 0; repeat < 2; repeat++) {
      stream.reset();
      runOneDispatch(device, kernel, (pass) => kvCacheCopyHeadMajor(pass, { src, cache, ...args }));
      stream.expectCopied((reference) =>
        referenceKvCacheCopyHeadMajor(reference, { ...resolved, srcSeqLen: srcTokens }),
      );
    }
  }
});

describe("kvCacheCopyHeadMajor", () => {
  const [device] = devices;

  test("copies all 65,536 patterns", () => {
    const stream = new TestStream(device, {
      ...bf16,
      srcShape: [2, 128, 256],
      cacheShape: [2, 128, 256],
      seed: 1,
      fill: (bits) => {
        for (let i = 0; i < bits.length; i++) bits[i] = i;
      },
    });
    const { src, cache } = stream;
    runOneDispatch(device, kernel, (pass) =>
      kvCacheCopyHeadMajor(pass, { src, cache, seqPosStart: 100, isSliding: true }),
    );
    const shape = { nHeads: 2, headDim: 256, capacity: 128, srcSeqLen: 128 };
    stream.expectCopied((reference) =>
      referenceKvCacheCopyHeadMajor(reference, { ...shape, seqPosStart: 100, nTokens: 128, srcTokOffset: 0 }),
    );
  });

  test("no token, no head or no element: success without a dispatch", () => {
    const stream = new TestStream(device, { ...bf16, srcShape: [2, 3, 4], cacheShape: [2, 3, 4], seed: 1 });
    const { src, cache } = stream;
    const none = { src: src.slice(0, 0), cache: cache.slice(0, 0) };
    using pass = device.pass();
    kvCacheCopyHeadMajor(pass, { src, cache, seqPosStart: 7, nTokens: 0 });
    kvCacheCopyHeadMajor(pass, { src, cache, seqPosStart: 0, srcTokOffset: 3 });
    kvCacheCopyHeadMajor(pass, { ...none, seqPosStart: 0 });
    kvCacheCopyHeadMajor(pass, { src: none.src.reshape([2, 0, 4]), cache, seqPosStart: 0 });
    const noElement = { src: none.src.reshape([2, 3, 0]), cache: none.cache.reshape([2, 3, 0]) };
    kvCacheCopyHeadMajor(pass, { ...noElement, seqPosStart: 0 });
    expect(pass.describe()).toEqual([]);
    pass.commitAndWait();
    stream.expectUntouched();
  });
});
