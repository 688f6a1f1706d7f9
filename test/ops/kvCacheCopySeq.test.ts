import { describe, expect, test } from "bun:test";
import { kvCacheCopySeq } from "../../src/index.ts";
import { encode, type FloatName, referenceKvCacheCopySeq } from "../../src/reference/index.ts";
import { headCopyPairs, runOneDispatch, TestStream } from "../helpers/copies.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { testTable } from "../helpers/table.ts";
import { tokenCases } from "../helpers/tokenCases.ts";

const devices = oneAndTwoThreads();

for (const { from, to, kernel } of headCopyPairs("kv_cache_copy_seq")) {
  testTable(`kvCacheCopySeq, ${from} to ${to}`, tokenCases, (entry) => {
    const { nHeads, headDim, srcTokens, capacity, args, resolved, srcOffset, cacheOffset } = entry;
    const plan = {
      from,
      to,
      srcShape: [srcTokens, nHeads, headDim],
      cacheShape: [nHeads, capacity, headDim],
      srcOffset,
      cacheOffset,
    };
    for (const device of devices) {
      const k = new TestStream(device, { ...plan, seed: 1 });
      const v = new TestStream(device, { ...plan, seed: 2 });
      const expectBoth = () => {
        for (const stream of [k, v]) stream.expectCopied((reference) => referenceKvCacheCopySeq(reference, resolved));
      };
      for (const { src, cache } of [k, v]) {
        runOneDispatch(device, kernel, (pass) => kvCacheCopySeq(pass, { src, cache, ...args }));
      }
      expectBoth();
      const singles = [k.snapshot(), v.snapshot()];
      for (let repeat = 0; repeat < 2; repeat++) {
        k.reset();
        v.reset();
        runOneDispatch(device, `${kernel}_kv_dual`, (pass) => kvCacheCopySeq(pass, { k, v, ...args }));
        expectBoth();
        // A NaN may be any NaN for the oracle, but not for the dual kernel.
        expect([k.snapshot(), v.snapshot()]).toEqual(singles);
      }
    }
  });
}

/** As floats: each number of the format, the tie between it and the next, and the floats around that tie. */
function everyTie(dtype: "f16" | "bf16"): Uint32Array {
  const fractionBits = dtype === "f16" ? 10 : 7;
  const infinity = dtype === "f16" ? 0x7c00 : 0x7f80;
  const bits: number[] = [];
  const value = (pattern: number): number => {
    const exponent = pattern >> fractionBits;
    const fraction = (pattern & (2 ** fractionBits - 1)) / 2 ** fractionBits;
    const bias = dtype === "f16" ? 15 : 127;
    return exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias);
  };
  for (let pattern = 0; pattern < infinity; pattern++) {
    // The number after the largest finite one would be 2^16 or 2^128.
    const tie = encode("f32", (value(pattern) + value(pattern + 1)) / 2);
    for (const word of [encode("f32", value(pattern)), tie - 1, tie, tie + 1]) bits.push(word, word + 2 ** 31);
  }
  return Uint32Array.from(bits);
}

describe("kvCacheCopySeq", () => {
  const [device] = devices;

  test.each(["f16", "bf16"] as const)("rounds every number of %s and every tie as IEEE 754 says", (to) => {
    const ties = everyTie(to);
    const headDim = 128;
    const nTokens = Math.ceil(ties.length / headDim);
    const stream = new TestStream(device, {
      from: "f32",
      to,
      srcShape: [nTokens, 1, headDim],
      cacheShape: [1, nTokens, headDim],
      seed: 1,
      fill: (bits) => bits.fill(0).set(ties),
    });
    const { src, cache } = stream;
    runOneDispatch(device, `kv_cache_copy_seq_f32_to_${to}`, (pass) =>
      kvCacheCopySeq(pass, { src, cache, seqPosStart: 0 }),
    );
    const resolved = { nHeads: 1, headDim, capacity: nTokens, seqPosStart: 0, nTokens, srcTokOffset: 0 };
    stream.expectCopied((reference) => referenceKvCacheCopySeq(reference, resolved));
  });

  test.each([
    ["bf16", "f32", "kv_cache_copy_seq_bf16"],
    ["bf16", "bf16", "kv_cache_copy_seq_bf16_to_bf16"],
    ["f16", "f16", "kv_cache_copy_seq_f16_to_f16"],
  ] as const)("copies all 65,536 patterns of %s to %s", (from: FloatName, to: FloatName, kernel) => {
    const stream = new TestStream(device, {
      from,
      to,
      srcShape: [128, 2, 256],
      cacheShape: [2, 128, 256],
      seed: 1,
      fill: (bits) => {
        for (let i = 0; i < bits.length; i++) bits[i] = i;
      },
    });
    const { src, cache } = stream;
    runOneDispatch(device, kernel, (pass) => kvCacheCopySeq(pass, { src, cache, seqPosStart: 5, isSliding: true }));
    const resolved = { nHeads: 2, headDim: 256, capacity: 128, seqPosStart: 5, nTokens: 128, srcTokOffset: 0 };
    stream.expectCopied((reference) => referenceKvCacheCopySeq(reference, resolved));
  });

  test("no token, no head or no element: success without a dispatch", () => {
    const plan = { from: "f32", to: "f16", srcShape: [3, 2, 4], cacheShape: [2, 3, 4], seed: 1 } as const;
    const stream = new TestStream(device, plan);
    const { src, cache } = stream;
    const noSource = src.slice(0, 0);
    const noCache = cache.slice(0, 0);
    using pass = device.pass();
    kvCacheCopySeq(pass, { src, cache, seqPosStart: 7, nTokens: 0 });
    kvCacheCopySeq(pass, { src, cache, seqPosStart: 0, srcTokOffset: 3 });
    kvCacheCopySeq(pass, { k: stream, v: new TestStream(device, plan), seqPosStart: 0, nTokens: 0 });
    kvCacheCopySeq(pass, { src: noSource, cache, seqPosStart: 0 });
    kvCacheCopySeq(pass, { src: noSource.reshape([3, 0, 4]), cache: noCache, seqPosStart: 0 });
    kvCacheCopySeq(pass, { src: noSource.reshape([3, 2, 0]), cache: noCache.reshape([2, 3, 0]), seqPosStart: 0 });
    expect(pass.describe()).toEqual([]);
    pass.commitAndWait();
    stream.expectUntouched();
  });

  test("40 tokens into 32 slots: refused by a linear cache and by a ring, which takes the last 32", () => {
    const stream = new TestStream(device, {
      from: "f32",
      to: "f32",
      srcShape: [40, 1, 2],
      cacheShape: [1, 32, 2],
      seed: 4,
    });
    const { src, cache } = stream;
    using pass = device.pass();
    expectRefusal(() => kvCacheCopySeq(pass, { src, cache, seqPosStart: 0 }), "overflow", "nTokens", 40, 32);
    const isSliding = true;
    expectRefusal(() => kvCacheCopySeq(pass, { src, cache, seqPosStart: 0, isSliding }), "overflow", "nTokens", 40, 32);
    const last = { seqPosStart: 8, srcTokOffset: 8 };
    expectRefusal(() => kvCacheCopySeq(pass, { src, cache, ...last }), "overflow", "seqPosStart", 8, 32, "isSliding");
    expect(pass.describe()).toEqual([]);
    kvCacheCopySeq(pass, { src, cache, ...last, isSliding });
    pass.commitAndWait();
    const resolved = { nHeads: 1, headDim: 2, capacity: 32, ...last, nTokens: 32 };
    stream.expectCopied((reference) => referenceKvCacheCopySeq(reference, resolved));
  });

  test("a head-major source: what was likely meant", () => {
    const heads = device.tensor("f32", [2, 16, 8]);
    const cache = device.tensor("f32", [2, 32, 8]);
    using pass = device.pass();
    const meant = ["token-major", "kvCacheCopyHeadMajor", "2,16,8"];
    const one = () => kvCacheCopySeq(pass, { src: heads, cache, seqPosStart: 0 });
    expectRefusal(one, "invalid-argument", "src", ...meant);
    const k = { src: heads.reshape([16, 2, 8]), cache };
    const v = { src: heads, cache: device.tensor("f32", [2, 32, 8]) };
    expectRefusal(() => kvCacheCopySeq(pass, { k, v, seqPosStart: 0 }), "invalid-argument", "v.src", ...meant);
    // Of a source that fits neither order, what differs is said.
    const other = device.tensor("f32", [3, 16, 8]);
    const neither = () => kvCacheCopySeq(pass, { src: other, cache, seqPosStart: 0 });
    expectRefusal(neither, "invalid-argument", "cache", "nHeads is 2, but 16");
    expect(pass.describe()).toEqual([]);
  });

  test("a prompt longer than a ring keeps its last tokens", () => {
    const capacity = 6;
    const nSrcTokens = 20;
    const stream = new TestStream(device, {
      from: "f32",
      to: "bf16",
      srcShape: [nSrcTokens, 2, 8],
      cacheShape: [2, capacity, 8],
      seed: 6,
    });
    const first = nSrcTokens - capacity;
    const window = { seqPosStart: first, srcTokOffset: first, nTokens: capacity, isSliding: true };
    runOneDispatch(device, "kv_cache_copy_seq_f32_to_bf16", (pass) =>
      kvCacheCopySeq(pass, { src: stream.src, cache: stream.cache, ...window }),
    );
    // Token by token, the whole prompt leaves the same ring.
    stream.expectCopied((reference) => {
      for (let token = 0; token < nSrcTokens; token++) {
        const one = { nHeads: 2, headDim: 8, capacity, seqPosStart: token, nTokens: 1, srcTokOffset: token };
        referenceKvCacheCopySeq(reference, one);
      }
    });
  });
});
