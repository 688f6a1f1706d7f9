import { describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import {
  packBuildMask,
  packClassifyMaskTiles,
  packFlashAttnPrefill,
  packKvCacheCopy,
  packKvCacheCopyBatch,
  packKvCacheCopyHeadMajor,
  packKvCacheCopySeq,
  packStreams,
  structSizes,
} from "../../src/ffi/layout.ts";
import {
  packBindings,
  packConstants,
  packKernelDispatch,
  readDeviceInfo,
  readPassInfo,
  readPipelineInfo,
  recordSizes,
} from "../../src/ffi/records.ts";
import { abiVersion } from "../../src/ffi/symbols.ts";
import { leaves } from "../helpers/layout.ts";
import { absent, expectFields, isFloat, layouts, struct, tensor, tensorFields, write } from "../helpers/packed.ts";

/** Fills every scalar of a struct with a value of its own, by the library's offsets. */
function filled(name: string): { block: Block; values: Map<string, number> } {
  const block = new Block(struct(name).size);
  const view = new DataView(block.buffer);
  const values = new Map<string, number>();
  leaves(layouts.structs, struct(name)).forEach((leaf, index) => {
    const value = isFloat(leaf) ? index + 0.25 : leaf.size === 8 ? (index + 1) * 2 ** 33 + index : 1000 + index;
    write(view, leaf, leaf.size === 1 ? 65 + (index % 26) : value);
    values.set(leaf.path, leaf.size === 1 ? 65 + (index % 26) : value);
  });
  return { block, values };
}

test("the library has this package's ABI version", () => {
  expect(layouts.abiVersion).toBe(abiVersion);
  expect(abiVersion).toBe(3);
});

describe("sizes", () => {
  const stated = {
    KvCacheCopyParams: 20,
    KvCacheCopyBatchParams: 16,
    KvCacheCopySeqParams: 24,
    KvCacheCopyHeadMajorParams: 28,
    HadamardQuantizeParams: 28,
    HadamardQuantizeHbParams: 28,
    HadamardQuantizeSeqParams: 36,
    HadamardDequantizeParams: 36,
    AttnParams: 160,
    AttnMaskParams: 24,
    BuildMaskParams: 16,
    ClassifyMaskParams: 48,
    ...structSizes,
    ...recordSizes,
  };
  test.each(Object.entries(stated))("%s: %d bytes", (name, size) => {
    expect(struct(name).size).toBe(size);
  });

  test("no struct of the library is missing here", () => {
    expect([...layouts.structs.keys()].sort()).toEqual(Object.keys(stated).sort());
  });

  test("AttnParams has its strides at 64, 88, 112 and 136", () => {
    const offsets = struct("AttnParams").fields.filter(({ name }) => name.endsWith("_strides"));
    expect(offsets.map(({ name, offset }) => [name, offset])).toEqual([
      ["Q_strides", 64],
      ["K_strides", 88],
      ["V_strides", 112],
      ["O_strides", 136],
    ]);
  });
});

describe("packed in TypeScript, read back field by field by the library", () => {
  test("MAKvCacheCopyArgs", () => {
    const block = new Block(structSizes.MAKvCacheCopyArgs);
    packKvCacheCopy(block, tensor(1), tensor(2), 11, 12, 13, 14, 15);
    expectFields("MAKvCacheCopyArgs", block.bytes, {
      ...tensorFields("src", 1),
      ...tensorFields("cache", 2),
      "params.writePos": 11,
      "params.rowSize": 12,
      "params.nNew": 13,
      "params.cacheCap": 14,
      "params.isSliding": 15,
    });
  });

  const batchParams = {
    "params.nHeads": 21,
    "params.headDim": 22,
    "params.capacity": 23,
    "params.seqPos": 0xffff_ffff,
  };

  test("MAKvCacheCopyBatchArgs", () => {
    const block = new Block(structSizes.MAKvCacheCopyBatchArgs);
    packStreams(block, tensor(1), tensor(2), tensor(3), tensor(4));
    packKvCacheCopyBatch(block, 21, 22, 23, 0xffff_ffff);
    expectFields("MAKvCacheCopyBatchArgs", block.bytes, {
      ...tensorFields("srcK", 1),
      ...tensorFields("cacheK", 2),
      ...tensorFields("srcV", 3),
      ...tensorFields("cacheV", 4),
      ...batchParams,
    });
  });

  test("a single stream clears what two streams left", () => {
    const block = new Block(structSizes.MAKvCacheCopyBatchArgs);
    packStreams(block, tensor(5), tensor(6), tensor(7), tensor(8));
    packStreams(block, tensor(1), tensor(2), undefined, undefined);
    packKvCacheCopyBatch(block, 21, 22, 23, 0xffff_ffff);
    expectFields("MAKvCacheCopyBatchArgs", block.bytes, {
      ...tensorFields("srcK", 1),
      ...tensorFields("cacheK", 2),
      ...absent("srcV"),
      ...absent("cacheV"),
      ...batchParams,
    });
  });

  test("MAKvCacheCopySeqArgs", () => {
    const block = new Block(structSizes.MAKvCacheCopySeqArgs);
    packStreams(block, tensor(1), tensor(2), tensor(3), tensor(4));
    packKvCacheCopySeq(block, 31, 32, 33, 34, 35, 36);
    expectFields("MAKvCacheCopySeqArgs", block.bytes, {
      ...tensorFields("srcK", 1),
      ...tensorFields("cacheK", 2),
      ...tensorFields("srcV", 3),
      ...tensorFields("cacheV", 4),
      "params.nHeads": 31,
      "params.headDim": 32,
      "params.capacity": 33,
      "params.seqPosStart": 34,
      "params.nTokens": 35,
      "params.srcTokOffset": 36,
    });
  });

  test("MAKvCacheCopyHeadMajorArgs", () => {
    const block = new Block(structSizes.MAKvCacheCopyHeadMajorArgs);
    packKvCacheCopyHeadMajor(block, tensor(1), tensor(2), 41, 42, 43, 44, 45, 46, 47);
    expectFields("MAKvCacheCopyHeadMajorArgs", block.bytes, {
      ...tensorFields("src", 1),
      ...tensorFields("cache", 2),
      "params.nHeads": 41,
      "params.headDim": 42,
      "params.capacity": 43,
      "params.seqPosStart": 44,
      "params.nTokens": 45,
      "params.srcTokOffset": 46,
      "params.srcSeqLen": 47,
    });
  });

  test("MAFlashAttnPrefillArgs", () => {
    const strides = (seed: number) => ({ batch: seed * 2 ** 40 + 1, head: seed * 2 ** 33 + 2, token: seed * 1000 + 3 });
    const strideFields = (name: string, seed: number) => ({
      [`${name}[0]`]: strides(seed).batch,
      [`${name}[1]`]: strides(seed).head,
      [`${name}[2]`]: strides(seed).token,
    });
    const block = new Block(structSizes.MAFlashAttnPrefillArgs);
    packFlashAttnPrefill(block, {
      q: tensor(1),
      k: tensor(2),
      v: tensor(3),
      out: tensor(4),
      mask: tensor(5),
      tileClasses: tensor(6),
      params: {
        B: 51,
        H: 52,
        D: 53,
        qL: 54,
        kL: 55,
        gqaFactor: 56,
        scale: 0.0625,
        softcapping: 1.5,
        NQ: 57,
        NK: 58,
        NQAligned: 59,
        NKAligned: 60,
        qLRem: 61,
        kLRem: 62,
        qLOff: 63,
        qStrides: strides(1),
        kStrides: strides(2),
        vStrides: strides(3),
        oStrides: strides(4),
      },
      maskStrides: strides(5),
      nKvHeads: 64,
      causal: 65,
    });
    expectFields("MAFlashAttnPrefillArgs", block.bytes, {
      ...tensorFields("q", 1),
      ...tensorFields("k", 2),
      ...tensorFields("v", 3),
      ...tensorFields("out", 4),
      ...tensorFields("mask", 5),
      ...tensorFields("tileClasses", 6),
      "params.B": 51,
      "params.H": 52,
      "params.D": 53,
      "params.qL": 54,
      "params.kL": 55,
      "params.gqa_factor": 56,
      "params.scale": 0.0625,
      "params.softcapping": 1.5,
      "params.NQ": 57,
      "params.NK": 58,
      "params.NQ_aligned": 59,
      "params.NK_aligned": 60,
      "params.qL_rem": 61,
      "params.kL_rem": 62,
      "params.qL_off": 63,
      ...strideFields("params.Q_strides", 1),
      ...strideFields("params.K_strides", 2),
      ...strideFields("params.V_strides", 3),
      ...strideFields("params.O_strides", 4),
      ...strideFields("maskParams.M_strides", 5),
      nKvHeads: 64,
      causal: 65,
    });
  });

  test("MABuildMaskArgs", () => {
    const block = new Block(structSizes.MABuildMaskArgs);
    packBuildMask(block, tensor(1), 91, 92, 93, 94);
    expectFields("MABuildMaskArgs", block.bytes, {
      ...tensorFields("mask", 1),
      "params.qL": 91,
      "params.kL": 92,
      "params.qL_off": 93,
      "params.window": 94,
    });
  });

  test("MAClassifyMaskTilesArgs", () => {
    const strides = { batch: 2 ** 40 + 1, head: 2 ** 33 + 2, token: 3 };
    const block = new Block(structSizes.MAClassifyMaskTilesArgs);
    const extents = { B: 101, H: 102, qL: 103, kL: 104, NQ: 105, NK: 106, headDim: 107 };
    packClassifyMaskTiles(block, { mask: tensor(1), tileClasses: tensor(2), strides, ...extents });
    expectFields("MAClassifyMaskTilesArgs", block.bytes, {
      ...tensorFields("mask", 1),
      ...tensorFields("tileClasses", 2),
      "params.B": 101,
      "params.H": 102,
      "params.qL": 103,
      "params.kL": 104,
      "params.NQ": 105,
      "params.NK": 106,
      "params.M_strides[0]": strides.batch,
      "params.M_strides[1]": strides.head,
      "params.M_strides[2]": strides.token,
      headDim: 107,
    });
  });

  test("MAKernelDispatch", () => {
    const bindings = packBindings([]);
    const block = packKernelDispatch({
      pipeline: 71,
      form: "threads",
      grid: [72, 73, 74],
      threadsPerThreadgroup: [75, 76, 77],
      bindingCount: 78,
      bindings,
    });
    expectFields("MAKernelDispatch", block.bytes, {
      pipeline: 71,
      form: 1,
      "grid[0]": 72,
      "grid[1]": 73,
      "grid[2]": 74,
      "threadsPerThreadgroup[0]": 75,
      "threadsPerThreadgroup[1]": 76,
      "threadsPerThreadgroup[2]": 77,
      bindingCount: 78,
      bindings: bindings.address,
    });
  });

  test("MABinding of each kind", () => {
    const { bytes } = packBindings([
      { kind: "buffer", index: 81, buffer: 82, access: 3, offset: 2 ** 40 + 83, length: 2 ** 41 + 84 },
      { kind: "bytes", index: 85, length: 86, address: 2 ** 46 + 87 },
      { kind: "threadgroup", index: 88, length: 89 },
    ]);
    const size = recordSizes.MABinding;
    const none = { buffer: 0, access: 0, offset: 0, bytes: 0 };
    const buffer = { index: 81, kind: 0, buffer: 82, access: 3, offset: 2 ** 40 + 83, length: 2 ** 41 + 84, bytes: 0 };
    expectFields("MABinding", bytes.subarray(0, size), buffer);
    expectFields("MABinding", bytes.subarray(size, 2 * size), {
      ...none,
      index: 85,
      kind: 1,
      length: 86,
      bytes: 2 ** 46 + 87,
    });
    expectFields("MABinding", bytes.subarray(2 * size), { ...none, index: 88, kind: 2, length: 89 });
  });

  test("MAConstant of each type", () => {
    const cases = [
      { index: 90, dtype: "bool", value: true, code: 8, bytes: [1] },
      { index: 91, dtype: "u8", value: 200, code: 4, bytes: [200] },
      { index: 92, dtype: "i8", value: -2, code: 5, bytes: [0xfe] },
      { index: 93, dtype: "u32", value: 0x8765_4321, code: 6, bytes: [0x21, 0x43, 0x65, 0x87] },
      { index: 94, dtype: "i32", value: -2, code: 7, bytes: [0xfe, 0xff, 0xff, 0xff] },
      { index: 95, dtype: "f16", value: 1, code: 2, bytes: [0x00, 0x3c] },
      { index: 96, dtype: "f32", value: -2, code: 1, bytes: [0x00, 0x00, 0x00, 0xc0] },
    ] as const;
    const { bytes } = packConstants(cases);
    cases.forEach(({ index, code, bytes: value }, position) => {
      const at = position * recordSizes.MAConstant;
      const elements = Array.from({ length: 16 }, (_, i) => [`value[${i}]`, value[i as keyof typeof value] ?? 0]);
      expectFields("MAConstant", bytes.subarray(at, at + recordSizes.MAConstant), {
        index,
        dtype: code,
        ...(Object.fromEntries(elements) as Record<string, number>),
      });
    });
  });
});

describe("written by the library's layout, read in TypeScript", () => {
  test("MADeviceInfo", () => {
    const { block, values } = filled("MADeviceInfo");
    const text = (field: string, length: number) =>
      String.fromCharCode(...Array.from({ length }, (_, i) => values.get(`${field}[${i}]`) ?? 0));
    const number = (path: string) => values.get(path) ?? Number.NaN;
    expect(readDeviceInfo(block)).toEqual({
      name: text("name", 64),
      backend: text("backend", 32),
      registryID: number("registryID"),
      maxBufferLength: number("maxBufferLength"),
      recommendedMaxWorkingSetSize: number("recommendedMaxWorkingSetSize"),
      currentAllocatedSize: number("currentAllocatedSize"),
      maxThreadgroupMemoryLength: number("maxThreadgroupMemoryLength"),
      maxThreadsPerThreadgroup: [
        number("maxThreadsPerThreadgroup[0]"),
        number("maxThreadsPerThreadgroup[1]"),
        number("maxThreadsPerThreadgroup[2]"),
      ],
      hasUnifiedMemory: true,
    });
  });

  test("MAPassInfo", () => {
    const { block, values } = filled("MAPassInfo");
    block.u32[0] = 2;
    const start = values.get("gpuStartTime") ?? Number.NaN;
    const end = values.get("gpuEndTime") ?? Number.NaN;
    expect(readPassInfo(block)).toEqual({
      state: "completed",
      dispatches: values.get("dispatches") ?? Number.NaN,
      gpuStartTime: start,
      gpuEndTime: end,
      gpuTime: end - start,
    });
  });

  test("MAPipelineInfo", () => {
    const { block, values } = filled("MAPipelineInfo");
    expect(readPipelineInfo(block)).toEqual({
      maxTotalThreadsPerThreadgroup: values.get("maxTotalThreadsPerThreadgroup") ?? Number.NaN,
      threadExecutionWidth: values.get("threadExecutionWidth") ?? Number.NaN,
      staticThreadgroupMemoryLength: values.get("staticThreadgroupMemoryLength") ?? Number.NaN,
    });
  });
});
