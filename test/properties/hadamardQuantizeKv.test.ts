/** The quantized cache over drawn formats, head sizes, ranges and rings: the oracle's codes and norms, and their decoding. */
import { afterAll, describe, expect } from "bun:test";
import fc from "fast-check";
import { openWithThreads } from "../../scripts/lib/open-device.ts";
import { dequantizeKv, hadamardQuantizeKv, hadamardQuantizeKvSeq } from "../../src/index.ts";
import { dequantizeVector, roundTo, unpackCodes } from "../../src/reference/index.ts";
import {
  codeFormats,
  expectRight,
  headSizes,
  isWhole,
  otherSizes,
  sourceValues,
  TestCache,
} from "../helpers/quantized.ts";
import { property } from "./property.ts";

const device = openWithThreads(2);
afterAll(() => device.dispose());

const from1To = (max: number) => fc.integer({ min: 1, max });

/** A range of tokens of a prompt, and a place for it in a cache. */
const cases = fc
  .record({
    format: fc.constantFrom(...codeFormats),
    headDim: fc.constantFrom(...headSizes, ...otherSizes.filter((size) => size <= 1024)),
    nKvHeads: from1To(3),
    capacity: from1To(9),
    srcTokens: from1To(9),
    isSliding: fc.boolean(),
    offset: fc.nat(1000),
    count: fc.nat(1000),
    position: fc.nat(1000),
    scaleFactorD512: fc.constantFrom(1, 0.5, 16, Math.SQRT2),
    seed: fc.nat(1000),
  })
  .filter(({ headDim, format }) => isWhole(headDim, format))
  .map(({ offset, count, position, ...rest }) => {
    const srcTokOffset = offset % rest.srcTokens;
    const nTokens = 1 + (count % Math.min(rest.srcTokens - srcTokOffset, rest.capacity));
    const positionStart = rest.isSliding ? position : position % (rest.capacity - nTokens + 1);
    return { ...rest, srcTokOffset, nTokens, positionStart };
  });

describe("the quantized cache against the oracle", () => {
  property("hadamardQuantizeKvSeq, and token by token the same bytes", cases, 300, (entry) => {
    const { format, headDim, nKvHeads, srcTokens, srcTokOffset, nTokens, positionStart, isSliding, seed } = entry;
    const { scaleFactorD512 } = entry;
    const values = sourceValues(headDim, srcTokens * nKvHeads, seed);
    using src = device.tensor("f32", [srcTokens, nKvHeads, headDim]).set(values);
    const [bulk, single] = [new TestCache(device, entry), new TestCache(device, entry)];
    using pass = device.pass();
    const call = { ...format, isSliding, scaleFactorD512 };
    const range = { writePosStart: positionStart, nTokens, srcTokOffset };
    hadamardQuantizeKvSeq(pass, { src, ...bulk.tensors, ...call, ...range });
    for (let token = 0; token < nTokens; token++) {
      using row = src.slice(srcTokOffset + token, srcTokOffset + token + 1);
      using vectors = row.reshape([nKvHeads, headDim]);
      hadamardQuantizeKv(pass, { src: vectors, ...single.tensors, ...call, writePos: positionStart + token });
    }
    pass.commitAndWait();
    expectRight(bulk.compare(values, positionStart, nTokens, srcTokOffset));
    expect(single.snapshot()).toEqual(bulk.snapshot());
    for (const cache of [bulk, single]) cache.dispose();
  });

  const dtypes = fc.constantFrom("f32", "f16", "bf16");
  property("dequantizeKv", fc.record({ entry: cases, dtype: dtypes }), 300, ({ entry, dtype }) => {
    const { format, headDim, nKvHeads, srcTokens, srcTokOffset, nTokens, positionStart, isSliding, seed } = entry;
    const { scaleFactorD512, capacity } = entry;
    const values = sourceValues(headDim, srcTokens * nKvHeads, seed);
    using src = device.tensor("f32", [srcTokens, nKvHeads, headDim]).set(values);
    using out = device.tensor(dtype, [nKvHeads, nTokens, headDim]);
    const cache = new TestCache(device, entry);
    using pass = device.pass();
    const call = { ...cache.tensors, ...format, isSliding, scaleFactorD512 };
    hadamardQuantizeKvSeq(pass, { src, ...call, writePosStart: positionStart, nTokens, srcTokOffset });
    dequantizeKv(pass, { out, ...call, readPosStart: positionStart });
    pass.commitAndWait();
    const decoded = out.toFloat32Array();
    const [packed, norms] = [cache.packed.view(), cache.norms.view()];
    const [rowBytes, perPos] = [packed.length / (nKvHeads * capacity), norms.length / (nKvHeads * capacity)];
    for (let head = 0; head < nKvHeads; head++) {
      for (let token = 0; token < nTokens; token++) {
        const slot = isSliding ? (positionStart + token) % capacity : positionStart + token;
        const row = head * capacity + slot;
        const codes = unpackCodes(packed.subarray(row * rowBytes, (row + 1) * rowBytes), headDim, format);
        const rowNorms = norms.subarray(row * perPos, (row + 1) * perPos);
        const expected = dequantizeVector(codes, rowNorms, { ...format, scaleFactorD512 });
        const start = (head * nTokens + token) * headDim;
        const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
        // The rounding of the sums in f32, then that of the dtype.
        const unit = { f32: 0, f16: 2 ** -11, bf16: 2 ** -8 }[dtype];
        for (const [i, value] of expected.entries()) {
          const wanted = roundTo(dtype, value);
          const got = decoded[start + i] as number;
          if (Object.is(wanted, got) || wanted === got) continue;
          const bound = 4e-6 * largest + 2 * unit * Math.abs(value) + (dtype === "f16" ? 2 ** -24 : 0);
          expect(Math.abs(got - value)).toBeLessThanOrEqual(bound);
        }
      }
    }
    cache.dispose();
  });
});
