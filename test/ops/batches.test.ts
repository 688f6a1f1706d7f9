import { expect } from "bun:test";
import { hadamardQuantizeKvSeq, kvCacheCopySeq, type Tensor } from "../../src/index.ts";
import { bytesPerRow, type CodeFormat, normsPerPos, referenceKvCacheCopySeq } from "../../src/reference/index.ts";
import { eachBatch } from "../helpers/batches.ts";
import { type DtypePair, runOneDispatch, TestStream } from "../helpers/copies.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import {
  codeFormats,
  expectRight,
  formatName,
  headSizes,
  isWhole,
  sourceValues,
  TestCache,
} from "../helpers/quantized.ts";
import { testTable } from "../helpers/table.ts";

// Runs of tokens of several batches, token-major: held against the oracle batch by batch.

const devices = oneAndTwoThreads();
const [device] = devices;
const [batch, nHeads, capacity, nSrcTokens] = [3, 2, 5, 6];

const pairs: readonly (DtypePair & { readonly kernel: string })[] = [
  { from: "f32", to: "f32", kernel: "kv_cache_copy_seq_f32" },
  { from: "f32", to: "f16", kernel: "kv_cache_copy_seq_f32_to_f16" },
  { from: "bf16", to: "f32", kernel: "kv_cache_copy_seq_bf16" },
  { from: "f32", to: "bf16", kernel: "kv_cache_copy_seq_f32_to_bf16" },
  { from: "bf16", to: "bf16", kernel: "kv_cache_copy_seq_bf16_to_bf16" },
  { from: "f16", to: "f16", kernel: "kv_cache_copy_seq_f16_to_f16" },
];
const runs = [
  { name: "from token 0", srcTokOffset: 0, nTokens: 4, seqPosStart: 1, isSliding: false },
  {
    name: "a ring that wraps, from the middle of the source",
    srcTokOffset: 1,
    nTokens: 4,
    seqPosStart: 13,
    isSliding: true,
  },
  { name: "one token", srcTokOffset: 5, nTokens: 1, seqPosStart: 4, isSliding: false },
];
const cases = pairs.flatMap((pair) =>
  runs.flatMap((run) =>
    [1, 7, 64].map((headDim) => ({
      ...pair,
      ...run,
      headDim,
      name: `${pair.from} to ${pair.to}, ${run.name}, heads of ${headDim}`,
    })),
  ),
);

testTable("kvCacheCopySeq", cases, ({ from, to, kernel, headDim, srcTokOffset, nTokens, seqPosStart, isSliding }) => {
  const shapes = { srcShape: [batch, nSrcTokens, nHeads, headDim], cacheShape: [batch, nHeads, capacity, headDim] };
  const range = { srcTokOffset, nTokens, seqPosStart };
  for (const on of devices) {
    using k = new TestStream(on, { from, to, ...shapes, srcOffset: 1, seed: 1 });
    using v = new TestStream(on, { from, to, ...shapes, cacheOffset: 3, seed: 2 });
    const expectBoth = () => {
      for (const stream of [k, v]) {
        stream.expectCopied((bits) => {
          for (const one of eachBatch(bits, batch)) {
            referenceKvCacheCopySeq(one, { nHeads, headDim, capacity, ...range });
          }
        });
      }
    };
    for (const { src, cache } of [k, v]) {
      runOneDispatch(on, kernel, (pass) => kvCacheCopySeq(pass, { src, cache, ...range, isSliding }));
    }
    expectBoth();
    for (const stream of [k, v]) stream.reset();
    runOneDispatch(on, `${kernel}_kv_dual`, (pass) => kvCacheCopySeq(pass, { k, v, ...range, isSliding }));
    expectBoth();
  }
});

const quantizedCases = [
  ...codeFormats.map((format) => ({ headDim: 128, format })),
  ...headSizes.map((headDim) => ({ headDim, format: codeFormats[0] as CodeFormat })),
  ...codeFormats.map((format) => ({ headDim: 1024, format })),
].filter(({ headDim, format }) => isWhole(headDim, format));

testTable(
  "hadamardQuantizeKvSeq",
  quantizedCases.map((entry, index) => ({
    ...entry,
    index,
    name: `${index}: D=${entry.headDim}, ${formatName(entry.format)}`,
  })),
  ({ headDim, format, index }) => {
    const isSliding = index % 2 === 0;
    const [writePosStart, srcTokOffset, nTokens] = [isSliding ? 13 : 1, 1, 4];
    const rowBytes = bytesPerRow(headDim, format);
    const perPos = normsPerPos(headDim);
    const caches = Array.from(
      { length: batch },
      () => new TestCache(device, { format, headDim, nKvHeads: nHeads, capacity, isSliding }),
    );
    const packed = device.tensor("u8", [batch, nHeads, capacity, rowBytes]);
    const norms = device.tensor("f32", [batch, nHeads, capacity, perPos]);
    const values = Array.from({ length: batch }, (_, b) => sourceValues(headDim, nSrcTokens * nHeads, 100 * b + index));
    const src = device.tensor("f32", [batch, nSrcTokens, nHeads, headDim]);
    for (const [b, one] of values.entries()) {
      src.slice(b, b + 1).set(one);
      const cache = caches[b] as TestCache;
      part(packed, b).bytes.set(cache.packed.bytes);
      part(norms, b).bytes.set(cache.norms.bytes);
    }
    using pass = device.pass();
    hadamardQuantizeKvSeq(pass, { src, packed, norms, ...format, writePosStart, srcTokOffset, nTokens, isSliding });
    expect(pass.describe().length).toBe(1);
    pass.commitAndWait();
    for (const [b, one] of values.entries()) {
      const cache = caches[b] as TestCache;
      cache.packed.bytes.set(part(packed, b).bytes);
      cache.norms.bytes.set(part(norms, b).bytes);
      expectRight(cache.compare(one, writePosStart, nTokens, srcTokOffset));
      cache.dispose();
    }
  },
);

function part(tensor: Tensor, b: number): Tensor {
  return tensor.slice(b, b + 1).reshape(tensor.shape.slice(1));
}
