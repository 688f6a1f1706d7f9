import { describe, expect, test } from "bun:test";
import {
  type AttentionDType,
  type Device,
  type DType,
  dequantizeKv,
  flashAttnPrefill,
  hadamardQuantizeKv,
  kvCacheCopyBatch,
  kvCacheCopyHeadMajor,
  type Tensor,
} from "../../src/index.ts";
import {
  bytesPerRow,
  type CodeFormat,
  normsPerPos,
  referenceDequantizeKv,
  referenceKvCacheCopyBatch,
  referenceKvCacheCopyHeadMajor,
} from "../../src/reference/index.ts";
import { eachBatch } from "../helpers/batches.ts";
import { type DtypePair, runOneDispatch, TestStream } from "../helpers/copies.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import { bitsOf, fillEdgesAndNoise } from "../helpers/elements.ts";
import { expectRefusal } from "../helpers/errors.ts";
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

// A batch axis before the others, held against the oracle batch by batch.

const devices = oneAndTwoThreads();
const [device] = devices;
const [batch, nHeads, capacity] = [3, 2, 5];

const pairs: readonly (DtypePair & { readonly kernel: string })[] = [
  { from: "f32", to: "f32", kernel: "kv_cache_copy_batch_f32" },
  { from: "f32", to: "f16", kernel: "kv_cache_copy_batch_f32_to_f16" },
];
const tokenCases = pairs.flatMap((pair) =>
  [1, 7, 64, 256].flatMap((headDim) =>
    [false, true].map((isSliding) => ({
      ...pair,
      headDim,
      isSliding,
      name: `${pair.from} to ${pair.to}, heads of ${headDim}${isSliding ? ", a ring" : ""}`,
    })),
  ),
);

testTable("kvCacheCopyBatch", tokenCases, ({ from, to, kernel, headDim, isSliding }) => {
  const shapes = { srcShape: [batch, nHeads, headDim], cacheShape: [batch, nHeads, capacity, headDim] };
  const seqPos = isSliding ? 13 : 3;
  for (const on of devices) {
    using k = new TestStream(on, { from, to, ...shapes, srcOffset: 1, seed: 1 });
    using v = new TestStream(on, { from, to, ...shapes, cacheOffset: 3, seed: 2 });
    const expectBoth = () => {
      for (const stream of [k, v]) {
        stream.expectCopied((bits) => {
          for (const one of eachBatch(bits, batch)) {
            referenceKvCacheCopyBatch(one, { nHeads, headDim, capacity, seqPos: seqPos % capacity });
          }
        });
      }
    };
    for (const { src, cache } of [k, v]) {
      runOneDispatch(on, kernel, (pass) => kvCacheCopyBatch(pass, { src, cache, seqPos, isSliding }));
    }
    expectBoth();
    for (const stream of [k, v]) stream.reset();
    runOneDispatch(on, `${kernel}_kv_dual`, (pass) => kvCacheCopyBatch(pass, { k, v, seqPos, isSliding }));
    expectBoth();
  }
});

const runCases = [
  { name: "from token 0", srcTokOffset: 0, nTokens: 4, seqPosStart: 1, isSliding: false },
  { name: "a ring that wraps", srcTokOffset: 2, nTokens: 4, seqPosStart: 13, isSliding: true },
  { name: "one token", srcTokOffset: 5, nTokens: 1, seqPosStart: 4, isSliding: false },
].flatMap((entry) => [1, 7, 64].map((headDim) => ({ ...entry, headDim, name: `${entry.name}, heads of ${headDim}` })));

testTable("kvCacheCopyHeadMajor", runCases, ({ headDim, isSliding, ...run }) => {
  const srcSeqLen = 6;
  const shapes = { srcShape: [batch, nHeads, srcSeqLen, headDim], cacheShape: [batch, nHeads, capacity, headDim] };
  for (const on of devices) {
    using stream = new TestStream(on, { from: "bf16", to: "bf16", ...shapes, srcOffset: 1, cacheOffset: 2, seed: 5 });
    const { src, cache } = stream;
    const { srcTokOffset, nTokens, seqPosStart } = run;
    runOneDispatch(on, "kv_cache_copy_seq_bf16_to_bf16_head_major", (pass) =>
      kvCacheCopyHeadMajor(pass, { src, cache, srcTokOffset, nTokens, seqPosStart, isSliding }),
    );
    stream.expectCopied((bits) => {
      for (const one of eachBatch(bits, batch)) {
        referenceKvCacheCopyHeadMajor(one, {
          nHeads,
          headDim,
          capacity,
          srcTokOffset,
          nTokens,
          seqPosStart,
          srcSeqLen,
        });
      }
    });
  }
});

/** Every format at one head size, every head size at one format of each packing. */
const quantizedCases = [
  ...codeFormats.map((format) => ({ headDim: 128, format })),
  ...headSizes.flatMap((headDim) => [codeFormats[0] as CodeFormat].map((format) => ({ headDim, format }))),
  ...codeFormats.map((format) => ({ headDim: 1024, format })),
].filter(({ headDim, format }) => isWhole(headDim, format));

/** The part of a tensor that belongs to a batch. */
const partOf = (tensor: Tensor, index: number) => tensor.slice(index, index + 1).reshape(tensor.shape.slice(1));

testTable(
  "hadamardQuantizeKv and dequantizeKv",
  quantizedCases.map((entry, index) => ({
    ...entry,
    index,
    name: `${index}: D=${entry.headDim}, ${formatName(entry.format)}`,
  })),
  ({ headDim, format, index }) => {
    const isSliding = index % 2 === 0;
    const writePos = isSliding ? 12 : 2;
    const extents = { headDim, nKvHeads: nHeads, capacity };
    // Heads of all batches in one cache: the oracle reads it as batches of 2 heads each.
    const whole = () => new TestCache(device, { ...extents, nKvHeads: batch * nHeads, format, isSliding });
    const [k, v] = [whole(), whole()];
    const batched = ({ packed, norms }: TestCache) => ({
      packed: packed.reshape([batch, nHeads, ...packed.shape.slice(1)]),
      norms: norms.reshape([batch, nHeads, ...norms.shape.slice(1)]),
    });
    const sources = [1, 2].map((seed) => sourceValues(headDim, batch * nHeads, 100 * seed + index));
    const [srcK, srcV] = sources.map((values) => device.tensor("f32", [batch, nHeads, headDim]).set(values)) as [
      Tensor<"f32">,
      Tensor<"f32">,
    ];
    using pass = device.pass();
    const streams = { k: { src: srcK, ...batched(k) }, v: { src: srcV, ...batched(v) } };
    hadamardQuantizeKv(pass, { ...streams, ...format, writePos, isSliding });
    const out = device.tensor("f32", [batch, nHeads, 2, headDim]);
    const range = { ...format, readPosStart: writePos - 1, isSliding };
    dequantizeKv(pass, { ...batched(k), out, ...range });
    expect(pass.describe().length).toBe(2);
    pass.commitAndWait();

    // The heads of all batches lie one after another, in source and cache alike.
    expectRight(k.compare(sources[0] as Float32Array, writePos, 1, 0));
    expectRight(v.compare(sources[1] as Float32Array, writePos, 1, 0));
    const rowBytes = bytesPerRow(headDim, format);
    for (let b = 0; b < batch; b++) {
      const first = b * nHeads * capacity;
      const rows = nHeads * capacity;
      const stored = {
        packed: k.packed.view().subarray(first * rowBytes, (first + rows) * rowBytes),
        norms: k.norms.view().subarray(first * normsPerPos(headDim), (first + rows) * normsPerPos(headDim)),
      };
      const positions = { nKvHeads: nHeads, headDim, capacity, posStart: writePos - 1, nTokens: 2, isSliding };
      const expected = referenceDequantizeKv(stored, positions, { ...format, scaleFactorD512: 1 });
      const read = partOf(out, b).toFloat32Array();
      for (let row = 0; row < expected.length; row += headDim) {
        const wanted = expected.subarray(row, row + headDim);
        const largest = wanted.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
        const worst = wanted.reduce((most, value, i) => Math.max(most, Math.abs(value - (read[row + i] as number))), 0);
        expect(worst).toBeLessThanOrEqual(2e-6 * largest);
      }
    }
    for (const cache of [k, v]) cache.dispose();
  },
);

describe("attention takes tensors without a batch axis", () => {
  const shape = [4, 9, 64];
  const filled = (on: Device, dtype: AttentionDType, axes: readonly number[], seed: number) => {
    const tensor = on.tensor(dtype, axes);
    const bits = bitsOf(tensor);
    for (let i = 0; i < bits.length; i++) bits[i] = 0x3c00 + ((i * 31 + seed * 97) % 512);
    return tensor;
  };

  test.each(["bf16", "f16"] as const)("%s: the bits of a batch of one, in any mixture", (dtype) => {
    const q = filled(device, dtype, shape, 1);
    const [k, v] = [2, 3].map((seed) => filled(device, dtype, [2, 12, 64], seed)) as [
      Tensor<typeof dtype>,
      Tensor<typeof dtype>,
    ];
    const one = <T extends DType>(tensor: Tensor<T>) => tensor.reshape([1, ...tensor.shape]);
    const expected = device.tensor(dtype, [1, ...shape]);
    const outs = Array.from({ length: 4 }, () => device.tensor(dtype, shape));
    const [first, second, third, fourth] = outs as [
      Tensor<typeof dtype>,
      Tensor<typeof dtype>,
      Tensor<typeof dtype>,
      Tensor<typeof dtype>,
    ];
    using pass = device.pass();
    const options = { causal: true, qOffsetInK: 3 } as const;
    flashAttnPrefill(pass, { q: one(q), k: one(k), v: one(v), out: expected, ...options });
    flashAttnPrefill(pass, { q, k, v, out: first, ...options });
    flashAttnPrefill(pass, { q: one(q), k, v, out: second, ...options });
    flashAttnPrefill(pass, { q, k: one(k), v, out: third, ...options });
    flashAttnPrefill(pass, { q, k, v: one(v), out: one(fourth), ...options });
    pass.commitAndWait();
    for (const out of outs) expect(out.bytes).toEqual(expected.bytes);
    expect(new Set(bitsOf(expected)).size).toBeGreaterThan(100);
  });

  test("a batch that some have and others have not is refused", () => {
    const q = device.tensor("bf16", [2, 4, 9, 64]);
    const k = device.tensor("bf16", [2, 12, 64]);
    using pass = device.pass();
    const out = device.tensor("bf16", q.shape);
    expectRefusal(() => flashAttnPrefill(pass, { q, k, v: k, out }), "invalid-argument", "k", "B is 1, but 2");
    const both = device.tensor("bf16", [2, 2, 12, 64]);
    expectRefusal(() => flashAttnPrefill(pass, { q, k: both, v: k, out }), "invalid-argument", "v", "2,2,12,64");
    const short = device.tensor("bf16", [4, 9, 64]);
    const call = () => flashAttnPrefill(pass, { q, k: both, v: both, out: short });
    expectRefusal(call, "invalid-argument", "out", "2,4,9,64");
    expect(pass.describe()).toEqual([]);
  });
});

test("a batch axis of 1 is no axis: sources and caches may differ in it", () => {
  const src = device.tensor("f32", [1, nHeads, 8]);
  const cache = device.tensor("f32", [nHeads, capacity, 8]);
  fillEdgesAndNoise(bitsOf(src), "f32", 3);
  using pass = device.pass();
  kvCacheCopyBatch(pass, { src, cache, seqPos: 2 });
  kvCacheCopyBatch(pass, {
    src: src.reshape([nHeads, 8]),
    cache: cache.reshape([1, nHeads, capacity, 8]),
    seqPos: 3,
  });
  pass.commitAndWait();
  const rows = bitsOf(cache);
  for (let head = 0; head < nHeads; head++) {
    const slot = (index: number) => rows.subarray((head * capacity + index) * 8, (head * capacity + index + 1) * 8);
    expect(slot(2)).toEqual(bitsOf(src).subarray(head * 8, head * 8 + 8));
    expect(slot(3)).toEqual(slot(2));
    expect(slot(1).every((word) => word === 0)).toBe(true);
  }
});
