import { describe, expect, test } from "bun:test";
import { loadLibrary } from "../../src/ffi/library.ts";
import { support } from "../../src/ffi/support.ts";
import { Device, flashAttnDecodeSupport, flashAttnPrefillSupport } from "../../src/index.ts";
import { quantizedFormats } from "../../src/ops/quantizedCache/quantizedFormat.ts";
import { promisedHeadSizes } from "../helpers/promised.ts";

// What the library's tables list, held to what is promised: the one place where the promise stands as literals.

const table = support();

describe("the library's tables", () => {
  test("are read once, and are those of every library that is loaded", () => {
    expect(support()).toBe(table);
    expect(support(loadLibrary())).toBe(table);
  });

  test("attention: bf16 and f16, eight head sizes, three kinds of masks", () => {
    const promised = ["bf16", "f16"].flatMap((dtype) =>
      promisedHeadSizes.flatMap((headDim) => ["none", "additive", "bool"].map((mask) => `${dtype} ${headDim} ${mask}`)),
    );
    const found = table.flashAttnPrefill.map(({ dtype, headDim, mask }) => `${dtype} ${headDim} ${mask}`);
    expect(found.toSorted()).toEqual(promised.toSorted());
    for (const row of table.flashAttnPrefill) {
      const queryTile = row.headDim === 512 ? 16 : row.headDim > 128 ? 32 : 64;
      const keyTile = row.headDim < 128 ? 32 : 16;
      expect(row).toMatchObject({ queryTile, keyTile, simdgroups: 4 });
      expect(row.threadgroupMemory).toBeWithin(1, 32 * 1024 + 1);
    }
  });

  test("decode: eight head sizes, K and V dense or codes, and V as a part of K; one query, and tiles of several", () => {
    const kinds = ["dense", "codes"].flatMap((k) => ["dense", "codes"].map((v) => `${k} ${v}`));
    const promised = kinds.flatMap((kind) =>
      promisedHeadSizes.flatMap((headDim) =>
        [1, headDim < 512 ? 4 : 2].map((n) => `${kind} ${headDim} ${headDim} ${n}`),
      ),
    );
    const latent = [1, 2].map((n) => `dense dense 576 512 ${n}`);
    const found = table.flashAttnDecode.map(
      ({ k, v, headDim, valueDim, queryTile }) => `${k} ${v} ${headDim} ${valueDim} ${queryTile}`,
    );
    expect(found.toSorted()).toEqual([...promised, ...latent].toSorted());
    for (const row of table.flashAttnDecode) expect(row).toMatchObject({ keyTile: 256, threadgroupMemory: 0 });
    expect(flashAttnDecodeSupport()).toBe(flashAttnDecodeSupport());
    expect(flashAttnDecodeSupport()).toHaveLength(promised.length + latent.length);
    for (const row of flashAttnDecodeSupport()) {
      expect(Object.isFrozen(row)).toBe(true);
      expect(row).toMatchObject({ maxErrorToValues: 1e-5, maxNmse: 4e-12 });
    }
  });

  test("the quantized cache: eight head sizes, powers of two, eight formats", () => {
    expect(table.quantizedCache).toEqual({
      headDims: [...promisedHeadSizes],
      otherHeadDims: { least: 4, most: 4096 },
      packings: [
        { packing: "nibble", bits: [4] },
        { packing: "byte", bits: [5, 6, 8] },
        { packing: "dense", bits: [2, 3, 5, 6] },
      ],
    });
    expect(quantizedFormats().map(({ bits, packing }) => `${bits} ${packing}`)).toEqual([
      ...["4 nibble", "5 byte", "6 byte", "8 byte", "2 dense", "3 dense", "5 dense", "6 dense"],
    ]);
    expect(quantizedFormats()).toBe(quantizedFormats());
  });

  test("masks", () => {
    expect(table.masks).toEqual({ dtypes: ["bf16", "f16", "bool"] });
  });

  test("the copies, K alone and K with V alike", () => {
    const pairs = (layout: string, dual: boolean) =>
      table.cacheCopy
        .filter((row) => row.layout === layout && row.dual === dual)
        .map(({ source, cache }) => `${source} to ${cache}`)
        .toSorted();
    expect(pairs("rows", false)).toEqual(["bf16 to bf16", "f16 to f16", "f32 to f32"]);
    const sequence = ["bf16 to bf16", "bf16 to f32", "f16 to f16", "f32 to bf16", "f32 to f16", "f32 to f32"];
    expect(pairs("sequence", false)).toEqual(sequence);
    expect(pairs("batch", false)).toEqual(expect.arrayContaining(["f32 to f16", "f32 to f32"]));
    expect(pairs("headMajor", false)).toEqual(["bf16 to bf16"]);
    for (const layout of ["batch", "sequence"]) expect(pairs(layout, true)).toEqual(pairs(layout, false));
    for (const layout of ["rows", "headMajor"]) expect(pairs(layout, true)).toEqual([]);
  });

  test("name kernels that the device has, each once", () => {
    using device = Device.open();
    const known = new Set(device.kernelNames);
    const copies = table.cacheCopy.map(({ kernel }) => kernel);
    expect(new Set(copies).size).toBe(copies.length);
    const kernels = [...copies, ...table.flashAttnPrefill.map(({ kernel }) => kernel)];
    expect(kernels.filter((kernel) => !known.has(kernel))).toEqual([]);
  });

  test("flashAttnPrefillSupport adds the contract, and cannot be changed", () => {
    const rows = flashAttnPrefillSupport();
    expect(rows).toBe(flashAttnPrefillSupport());
    expect(rows.map(({ maxErrorToPlain, maxNmse, ...row }) => row)).toEqual([...table.flashAttnPrefill]);
    expect(Object.isFrozen(rows) && rows.every((row) => Object.isFrozen(row))).toBe(true);
  });
});
