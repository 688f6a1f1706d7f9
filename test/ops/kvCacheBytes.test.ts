import { expect, test } from "bun:test";
import { type KvCacheBytesArgs, kvCacheBytes } from "../../src/index.ts";
import { bytesPerRow, normsPerPos } from "../../src/reference/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { codeFormats, formatName, headSizes, isWhole, otherSizes } from "../helpers/quantized.ts";

const shape = { headDim: 128, nKvHeads: 8, capacity: 8192 };

test.each(codeFormats.map((format) => [formatName(format), format] as const))("%s: every head size", (_, format) => {
  for (const headDim of [...headSizes, ...otherSizes].filter((size) => isWhole(size, format))) {
    const row = bytesPerRow(headDim, format);
    const norms = normsPerPos(headDim);
    const bytes = kvCacheBytes({ headDim, nKvHeads: 3, capacity: 5, nLayers: 7, ...format } as KvCacheBytesArgs);
    // K and V, 7 layers, 3 heads, 5 tokens.
    const vectors = 2 * 7 * 3 * 5;
    expect(bytes).toEqual({
      bytesPerRow: row,
      normsPerPos: norms,
      packed: vectors * row,
      norms: vectors * norms * 4,
      total: vectors * (row + norms * 4),
      perToken: (vectors / 5) * (row + norms * 4),
      bitsPerValue: (row * 8 + norms * 32) / headDim,
    });
  }
});

test("packing by default: nibble for 4 bits, byte for 5, 6 and 8, dense for 2 and 3", () => {
  const rows = ([2, 3, 4, 5, 6, 8] as const).map((bits) => kvCacheBytes({ ...shape, bits }).bytesPerRow);
  expect(rows).toEqual([32, 48, 64, 128, 128, 128]);
});

test("a plain cache, of any head size", () => {
  const f16 = kvCacheBytes({ ...shape, dtype: "f16" });
  expect(f16).toEqual({
    bytesPerRow: 256,
    normsPerPos: 0,
    packed: 2 * 8 * 8192 * 256,
    norms: 0,
    total: 2 * 8 * 8192 * 256,
    perToken: 2 * 8 * 256,
    bitsPerValue: 16,
  });
  expect(kvCacheBytes({ ...shape, dtype: "bf16" })).toEqual(f16);
  expect(kvCacheBytes({ ...shape, headDim: 100, dtype: "f32" }).bytesPerRow).toBe(400);
});

test("what the doc comment says", () => {
  const layers = { ...shape, nLayers: 32 };
  expect(kvCacheBytes({ ...layers, dtype: "f16" }).total).toBe(1073741824);
  expect(kvCacheBytes({ ...layers, bits: 4 }).total).toBe(285212672);
  expect(kvCacheBytes({ ...layers, bits: 4 }).bitsPerValue).toBe(4.25);
});

test("an empty cache costs nothing", () => {
  expect(kvCacheBytes({ ...shape, capacity: 0, bits: 4 }).total).toBe(0);
});

test("refused", () => {
  const call = (spoil: Record<string, unknown>) => () =>
    kvCacheBytes({ ...shape, bits: 4, ...spoil } as unknown as KvCacheBytesArgs);
  for (const name of ["headDim", "nKvHeads", "capacity"]) {
    for (const value of [undefined, -1, 1.5, "8", null, Number.NaN, 2 ** 32]) {
      expectRefusal(call({ [name]: value }), "invalid-argument", name);
    }
  }
  expectRefusal(call({ nLayers: -1 }), "invalid-argument", "nLayers");
  expectRefusal(call({ nLayer: 32 }), "invalid-argument", "nLayer", "did you mean nLayers?");
  expectRefusal(call({ bits: 7 }), "unsupported", "bits", 7, "4 nibble", "6 dense");
  expectRefusal(call({ packing: "byte" }), "unsupported", "packing", "byte", 4, "5 byte");
  expectRefusal(call({ headDim: 100 }), "unsupported", "headDim", 100, 64, 80, 4096);
  expectRefusal(call({ headDim: 4, bits: 3 }), "unsupported", "headDim", 4, 3, "whole bytes");
  expectRefusal(call({ bits: undefined }), "invalid-argument", "bits");
  expectRefusal(call({ dtype: "f16" }), "invalid-argument", "dtype", "both");
  expectRefusal(call({ bits: undefined, dtype: "u8" }), "unsupported", "dtype", "u8", "f32, f16, bf16");
  expectRefusal(call({ bits: undefined, dtype: "f16", headDim: 0 }), "invalid-argument", "headDim", 0);
  const most = 2 ** 32 - 1;
  expectRefusal(call({ nKvHeads: most, capacity: most }), "overflow", "capacity", most, 128);
  expectRefusal(() => kvCacheBytes(undefined as unknown as KvCacheBytesArgs), "invalid-argument", "args");
});
