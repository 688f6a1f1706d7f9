import { describe, expect, test } from "bun:test";
import { kvCacheCopy, kvCacheCopySeq, type Pass } from "../../src/index.ts";
import { type CopyOp, copyOps, type RefusalCase, RefusalScene, refused } from "../helpers/copyRefusals.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { testTable } from "../helpers/table.ts";
import type { Fields } from "../helpers/watched.ts";

const scene = new RefusalScene();

const f32Rows = scene.tensor("f32", [12, 8]);
const bf16Heads = scene.tensor("bf16", [10, 5, 8]);
const f32Heads = scene.tensor("f32", [10, 5, 8]);
const k = { src: scene.tensor("f32", [7, 2, 8]), cache: scene.tensor("f16", [2, 5, 8]) };
const v = { src: scene.tensor("f32", [7, 2, 8]), cache: scene.tensor("f16", [2, 5, 8]) };
const token = { k: { ...k, src: scene.tensor("f32", [2, 8]) }, v: { ...v, src: scene.tensor("f32", [2, 8]) } };
const oneStream = { src: undefined, cache: undefined };

const overlapCases: readonly RefusalCase[] = [
  refused(
    "kvCacheCopy",
    "one tensor as both",
    { src: f32Rows, cache: f32Rows, nNew: 1 },
    "invalid-argument",
    "cache",
    "overlap",
  ),
  refused(
    "kvCacheCopy",
    "overlap by one row",
    { src: f32Rows.slice(5, 9), cache: f32Rows.slice(0, 6) },
    "invalid-argument",
    "cache",
    "overlap",
  ),
  refused(
    "kvCacheCopyHeadMajor",
    "overlap",
    { src: bf16Heads.slice(1, 3), cache: bf16Heads.slice(2, 4), nTokens: 1 },
    "invalid-argument",
    "cache",
    "overlap",
  ),
  refused(
    "kvCacheCopySeq",
    "overlap",
    { src: f32Heads.slice(1, 2).reshape([2, 2, 10]).reshape([5, 1, 8]), cache: f32Heads.slice(1, 2), nTokens: 1 },
    "invalid-argument",
    "cache",
    "overlap",
  ),
  refused(
    "kvCacheCopyBatch",
    "overlap",
    { src: f32Heads.slice(1, 2).reshape([40]).slice(0, 16), cache: f32Heads.slice(0, 2) },
    "invalid-argument",
    "cache",
    "overlap",
  ),
  refused(
    "kvCacheCopySeq",
    "K and V into one cache",
    { ...oneStream, k, v: { src: v.src, cache: k.cache } },
    "invalid-argument",
    "k.cache",
    "v.cache",
    "overlap",
  ),
  refused(
    "kvCacheCopyBatch",
    "K and V into one cache",
    { ...oneStream, k: token.k, v: { src: token.v.src, cache: token.k.cache } },
    "invalid-argument",
    "k.cache",
    "v.cache",
    "overlap",
  ),
  refused(
    "kvCacheCopyBatch",
    "K's source in V's cache",
    {
      ...oneStream,
      k: { src: f32Heads.slice(2, 3).reshape([40]).slice(4, 20), cache: f32Heads.slice(4, 6) },
      v: { src: scene.tensor("f32", [16]), cache: f32Heads.slice(2, 4) },
    },
    "invalid-argument",
    "v.cache",
    "k.src",
    "overlap",
  ),
];

const streamCases: readonly RefusalCase[] = (["kvCacheCopySeq", "kvCacheCopyBatch"] as const).flatMap((op) => {
  const seq = op === "kvCacheCopySeq";
  const both = seq ? { k, v } : token;
  const shape = (heads: number, headDim: number) => (seq ? [7, heads, headDim] : [heads, headDim]);
  // Whichever tensor is compared with the other one is named.
  const checkedSecond = seq ? "v.cache" : "v.src";
  const spoilV = (stream: Fields) => ({ ...oneStream, k: both.k, v: { ...both.v, ...stream } });
  const spoilK = (stream: Fields) => ({ ...oneStream, k: { ...both.k, ...stream }, v: both.v });
  return [
    refused(op, "K without V", { ...oneStream, k: both.k }, "invalid-argument", "v"),
    refused(op, "V without K", { ...oneStream, v: both.v }, "invalid-argument", "k"),
    refused(op, "K and V beside a single stream", both, "invalid-argument", "src", "k"),
    refused(op, "K without a source", spoilK({ src: undefined }), "invalid-argument", "k.src"),
    refused(op, "V without a cache", spoilV({ cache: undefined }), "invalid-argument", "v.cache"),
    refused(
      op,
      "V with other heads",
      spoilV({ src: scene.tensor("f32", shape(3, 8)) }),
      "invalid-argument",
      checkedSecond,
      3,
      2,
    ),
    refused(
      op,
      "V with another head size",
      spoilV({ src: scene.tensor("f32", shape(2, 4)) }),
      "invalid-argument",
      checkedSecond,
      4,
      8,
    ),
    refused(
      op,
      "V with another capacity",
      spoilV({ cache: scene.tensor("f16", [2, 4, 8]) }),
      "invalid-argument",
      "v.cache",
      4,
      5,
    ),
    refused(
      op,
      "V with another cache dtype",
      spoilV({ cache: scene.tensor("f32", [2, 5, 8]) }),
      "unsupported",
      "v.cache",
      "f32",
      "f16",
    ),
    refused(
      op,
      "V with another source dtype",
      spoilV({ src: scene.tensor("bf16", shape(2, 8)) }),
      "unsupported",
      "v.src",
      "bf16",
      "f32",
    ),
    refused(op, "V's source disposed", spoilV({ src: scene.disposed("f32", shape(2, 8)) }), "disposed", "v.src"),
    refused(op, "K's cache disposed", spoilK({ cache: scene.disposed("f16", [2, 5, 8]) }), "disposed", "k.cache"),
    refused(
      op,
      "K's source of another device",
      spoilK({ src: scene.tensor("f32", shape(2, 8), scene.otherDevice) }),
      "invalid-handle",
      "k.src",
      "another device",
    ),
    refused(
      op,
      "V's cache of another device",
      spoilV({ cache: scene.tensor("f16", [2, 5, 8], scene.otherDevice) }),
      "invalid-handle",
      "v.cache",
      "another device",
    ),
  ];
});

const ownerCases: readonly RefusalCase[] = (Object.keys(copyOps) as CopyOp[]).flatMap((op) => {
  const { src, cache } = scene.valid[op];
  const detached = new Float32Array(src.length);
  detached.buffer.transfer();
  return [
    refused(op, "source disposed", { src: scene.disposed(src.dtype, src.shape) }, "disposed", "src"),
    refused(op, "cache disposed", { cache: scene.disposed(cache.dtype, cache.shape) }, "disposed", "cache"),
    refused(
      op,
      "source of another device",
      { src: scene.tensor(src.dtype, src.shape, scene.otherDevice) },
      "invalid-handle",
      "src",
      "another device",
    ),
    refused(
      op,
      "cache of another device",
      { cache: scene.tensor(cache.dtype, cache.shape, scene.otherDevice) },
      "invalid-handle",
      "cache",
      "another device",
    ),
    refused(op, "a detached array as source", { src: detached }, "invalid-argument", "src"),
    refused(op, "a typed array as cache", { cache: new Float32Array(80) }, "invalid-argument", "cache"),
    refused(op, "no source", { src: undefined }, "invalid-argument", "src"),
    refused(op, "no cache", { cache: null }, "invalid-argument", "cache"),
  ];
});

testTable("overlaps", overlapCases, scene.check);
testTable("K and V", streamCases, scene.check);
testTable("tensors that are none, disposed or foreign", ownerCases, scene.check);

describe("what is next to a refusal and allowed", () => {
  test("a source and a cache that touch", () => {
    using pass = scene.device.pass();
    kvCacheCopy(pass, { src: f32Rows.slice(6, 8), cache: f32Rows.slice(0, 6), writePos: 4 });
    kvCacheCopy(pass, { src: f32Rows.slice(0, 2), cache: f32Rows.slice(2, 4), writePos: 0 });
    expect(pass.describe().length).toBe(2);
  });

  test("K and V from one source", () => {
    using pass = scene.device.pass();
    kvCacheCopySeq(pass, { k, v: { src: k.src, cache: v.cache }, seqPosStart: 0, nTokens: 5 });
    expect(pass.describe().length).toBe(1);
  });

  test("an optional count that is undefined", () => {
    using pass = scene.device.pass();
    copyOps.kvCacheCopy(pass, { ...scene.valid.kvCacheCopy, nNew: undefined, isSliding: undefined });
    copyOps.kvCacheCopySeq(pass, {
      ...scene.valid.kvCacheCopySeq,
      nTokens: undefined,
      srcTokOffset: 2,
      isSliding: true,
    });
    copyOps.kvCacheCopyHeadMajor(pass, {
      ...scene.valid.kvCacheCopyHeadMajor,
      nTokens: 5,
      srcTokOffset: undefined,
      isSliding: true,
    });
    expect(pass.describe().length).toBe(3);
  });

  test("-0 is the number 0", () => {
    using pass = scene.device.pass();
    copyOps.kvCacheCopy(pass, { ...scene.valid.kvCacheCopy, writePos: -0 });
    expect(pass.describe().length).toBe(1);
  });
});

describe("passes and views in a bad state", () => {
  const call = (pass: Pass) => copyOps.kvCacheCopy(pass, scene.valid.kvCacheCopy);

  test("a committed pass", () => {
    using pass = scene.device.pass();
    call(pass);
    pass.commitAndWait();
    expectRefusal(() => call(pass), "invalid-state", undefined, "commit");
    expect(pass.describe().length).toBe(1);
  });

  test("a disposed pass", () => {
    const pass = scene.device.pass();
    pass.dispose();
    expectRefusal(() => call(pass), "disposed", "pass");
  });

  test("a source disposed after it was encoded is still read", () => {
    const source = scene.device.tensor("f32", [2, 8]).set(new Float32Array(16).fill(3));
    using cache = scene.device.tensor("f32", [2, 8]);
    using pass = scene.device.pass();
    kvCacheCopy(pass, { src: source, cache, writePos: 0 });
    source.dispose();
    pass.commitAndWait();
    expect(cache.toFloat32Array()).toEqual(new Float32Array(16).fill(3));
  });

  test("a detached array for set: refused, and the tensor keeps its values", () => {
    using tensor = scene.device.tensor("f32", [4]).set([1, 2, 3, 4]);
    const values = new Float32Array(4);
    values.buffer.transfer();
    expect(() => tensor.set(values)).toThrow("0");
    expect([...tensor.toFloat32Array()]).toEqual([1, 2, 3, 4]);
  });

  test("a tensor whose own view was detached is still copied, and its device still works", () => {
    const source = scene.device.tensor("f32", [2, 8]).set(new Float32Array(16).fill(5));
    using cache = scene.device.tensor("f32", [2, 8]);
    source.bytes.buffer.transfer();
    using pass = scene.device.pass();
    kvCacheCopy(pass, { src: source, cache, writePos: 0 });
    pass.commitAndWait();
    expect(cache.toFloat32Array()).toEqual(new Float32Array(16).fill(5));
  });
});
