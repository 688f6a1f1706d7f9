import { describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { packConstants } from "../../src/ffi/constants.ts";
import { packKvCacheCopyBatch, packStreams, structSizes } from "../../src/ffi/layout.ts";
import { isFloat } from "../../src/ffi/layoutCheck.ts";
import { layoutSamples, sampleTensor, tensorFields } from "../../src/ffi/layoutSamples.ts";
import { leaves } from "../../src/ffi/nativeLayout.ts";
import { packBindings, readDeviceInfo, readPassInfo, readPipelineInfo, recordSizes } from "../../src/ffi/records.ts";
import { abiVersion } from "../../src/ffi/symbols.ts";
import { expectFields, layouts, struct, write } from "../helpers/packed.ts";

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
  test.each(layoutSamples().map((sample) => [sample.struct, sample] as const))("%s", (name, { bytes, fields }) => {
    expectFields(name, bytes, fields);
  });

  test("a single stream clears what two streams left", () => {
    const block = new Block(structSizes.MAKvCacheCopyBatchArgs);
    packStreams(block, sampleTensor(5), sampleTensor(6), sampleTensor(7), sampleTensor(8));
    packStreams(block, sampleTensor(1), sampleTensor(2), undefined, undefined);
    packKvCacheCopyBatch(block, 21, 22, 23, 24);
    expectFields("MAKvCacheCopyBatchArgs", block.bytes, {
      ...tensorFields("srcK", 1),
      ...tensorFields("cacheK", 2),
      ...tensorFields("srcV", 0),
      ...tensorFields("cacheV", 0),
      "params.nHeads": 21,
      "params.headDim": 22,
      "params.capacity": 23,
      "params.seqPos": 24,
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
      { index: 97, dtype: "bf16", value: 1.00390625, code: 3, bytes: [0x80, 0x3f] }, // halfway, to even
      { index: 98, dtype: "i16", value: -2, code: 9, bytes: [0xfe, 0xff] },
      { index: 99, dtype: "u16", value: 0x8765, code: 10, bytes: [0x65, 0x87] },
      { index: 100, dtype: "i64", value: -2n, code: 11, bytes: [0xfe, ...Array<number>(7).fill(0xff)] },
      { index: 101, dtype: "u64", value: 2 ** 52 + 3, code: 12, bytes: [3, 0, 0, 0, 0, 0, 0x10, 0] },
      { index: 102, dtype: "bool", value: [true, false, true], code: 8, bytes: [1, 0, 1] },
      { index: 103, dtype: "u8", value: [1, 2, 3, 4], code: 4, bytes: [1, 2, 3, 4] },
      { index: 104, dtype: "f16", value: [1, -2, 0.5], code: 2, bytes: [0, 0x3c, 0, 0xc0, 0, 0x38] },
      { index: 105, dtype: "u32", value: [1, 0x102, 3], code: 6, bytes: [1, 0, 0, 0, 2, 1, 0, 0, 3] },
      {
        index: 106,
        dtype: "u64",
        value: [1, 2n, 3, 2n ** 64n - 1n],
        code: 12,
        bytes: [1, 2, 3].flatMap((low) => [low, 0, 0, 0, 0, 0, 0, 0]).concat(Array<number>(8).fill(0xff)),
      },
    ] as const;
    const { bytes } = packConstants(cases);
    cases.forEach(({ index, value: given, code, bytes: value }, position) => {
      const at = position * recordSizes.MAConstant;
      const elements = Array.from({ length: 32 }, (_, i) => [`value[${i}]`, value[i] ?? 0]);
      expectFields("MAConstant", bytes.subarray(at, at + recordSizes.MAConstant), {
        index,
        dtype: code,
        components: typeof given === "object" ? given.length : 1,
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
