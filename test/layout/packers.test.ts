import { describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { packConstants } from "../../src/ffi/constants.ts";
import {
  packKvCacheCopyBatchParams,
  packMAKvCacheCopyBatchArgs,
  readMAPipelineInfo,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { abiVersion } from "../../src/ffi/generated/symbols.ts";
import { checkLayouts, layoutFaults } from "../../src/ffi/layoutCheck.ts";
import { loadLibrary } from "../../src/ffi/library.ts";
import { readDeviceInfo, readPassInfo } from "../../src/ffi/records.ts";
import { leaves } from "../helpers/leaves.ts";
import { isFloat, layouts, packedFaults, struct, write } from "../helpers/packed.ts";
import { samples } from "./generated/samples.ts";

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
  expect(abiVersion).toBe(12);
});

describe("sizes", () => {
  const stated = {
    CopyParams: 16,
    KvCacheCopyParams: 20,
    KvCacheCopyBatchParams: 16,
    KvCacheCopySeqParams: 28,
    KvCacheCopyHeadMajorParams: 28,
    HadamardQuantizeParams: 28,
    HadamardQuantizeHbParams: 28,
    HadamardQuantizeSeqParams: 76,
    HadamardDequantizeParams: 36,
    FlashAttnDecodeParams: 80,
    MergeAttentionParams: 24,
    RopeParams: 40,
    KvCacheAppendParams: 56,
    AttnParams: 160,
    AttnMaskParams: 24,
    AttnOptionParams: 56,
    AttnCodeParams: 48,
    AttnTailParams: 16,
    BuildMaskParams: 16,
    ClassifyMaskParams: 48,
    MATensor: 24,
    MADeviceInfo: 192,
    MARun: 32,
    MAPassInfo: 40,
    MAMacro: 16,
    MASourceOptions: 32,
    MAConstant: 56,
    MAPipelineInfo: 16,
    MABinding: 40,
    MAKernelDispatch: 48,
    MACopyArgs: 48,
    MAKvCacheCopyArgs: 72,
    MAKvCacheCopyBatchArgs: 120,
    MAKvCacheCopySeqArgs: 136,
    MAKvCacheCopyHeadMajorArgs: 88,
    MAApplyRopeArgs: 184,
    MAKvCacheAppendArgs: 224,
    MAHadamardQuantizeKvArgs: 240,
    MAHadamardQuantizeKvSeqArgs: 304,
    MAHadamardDequantizeKvArgs: 192,
    MAFlashAttnPrefillArgs: 720,
    MAFlashAttnDecodeArgs: 392,
    MAMergeAttentionArgs: 456,
    MABuildMaskArgs: 40,
    MAClassifyMaskTilesArgs: 104,
  };
  test.each(Object.entries(stated))("%s: %d bytes", (name, size) => {
    expect(struct(name).size).toBe(size);
    expect(structSizes).toMatchObject({ [name]: size });
  });

  test("no struct of the library is missing here", () => {
    expect([...layouts.structs.keys()].sort()).toEqual(Object.keys(stated).sort());
    expect(Object.keys(structSizes).sort()).toEqual(Object.keys(stated).sort());
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

/** The fields of the structs that callers know from mlx-native 0.6, in its order. */
const hadamardFields = ["head_dim", "num_kv_heads", "write_pos", "cache_capacity", "is_sliding", "scale_factor_d512"];
const referenceStructs = {
  KvCacheCopyParams: ["writePos", "rowSize", "nNew", "cacheCap", "isSliding"],
  HadamardQuantizeParams: [...hadamardFields, "rms_probe_enabled"],
  HadamardQuantizeHbParams: [...hadamardFields, "codebook_bits"],
  AttnParams: [
    ...["B", "H", "D", "qL", "kL", "gqa_factor", "scale", "softcapping", "NQ", "NK", "NQ_aligned", "NK_aligned"],
    ...["qL_rem", "kL_rem", "qL_off", "_pad", "Q_strides", "K_strides", "V_strides", "O_strides"],
  ],
  AttnMaskParams: ["M_strides"],
};

describe("the reference's structs have its fields, in its order", () => {
  test.each(Object.entries(referenceStructs))("%s", (name, names) => {
    const { fields } = struct(name);
    expect(fields.map((field) => field.name)).toEqual(names);
    let end = 0;
    for (const { offset, size } of fields) {
      expect(offset).toBe(end);
      end += size;
    }
    expect(struct(name).size).toBe(end);
  });

  test("their types", () => {
    const typesOf = (name: string) => struct(name).fields.map(({ type }) => type);
    expect(typesOf("HadamardQuantizeParams")).toEqual(["u32", "u32", "u32", "u32", "u32", "f32", "u32"]);
    expect(typesOf("HadamardQuantizeHbParams")).toEqual(["u32", "u32", "u32", "u32", "u32", "f32", "u32"]);
    expect(typesOf("KvCacheCopyParams")).toEqual(Array(5).fill("u32"));
    const floats = ["scale", "softcapping"];
    const wide = ["Q_strides", "K_strides", "V_strides", "O_strides"];
    expect(typesOf("AttnParams")).toEqual(
      referenceStructs.AttnParams.map((name) => (floats.includes(name) ? "f32" : wide.includes(name) ? "i64" : "i32")),
    );
    expect(typesOf("AttnMaskParams")).toEqual(["i64"]);
  });
});

/** A sample as the package packs it, over bytes that were something else before. */
function packSample({ struct: name, pack }: (typeof samples)[number]): Block {
  const block = new Block(structSizes[name]);
  pack(block);
  return block;
}

describe("packed in TypeScript, read back field by field by the library", () => {
  test.each(samples.map((sample) => [sample.struct, sample] as const))("%s", (name, sample) => {
    const { bytes } = packSample(sample);
    expect(packedFaults(name, bytes.subarray(0, structSizes[name]), sample.fields)).toEqual([]);
  });

  test("of every struct that a function reads there is a sample, with a value of its own in each field but derived ones", () => {
    expect(samples.length).toBeGreaterThan(20);
    for (const { struct: name, fields } of samples) {
      const given = Object.values(fields).filter((value) => value !== 0);
      expect([name, new Set(given).size]).toEqual([name, given.length]);
    }
  });

  test("without a record, zeros over what stood there, and over nothing else", () => {
    const block = new Block(32);
    block.bytes.fill(0xa5);
    packKvCacheCopyBatchParams(block, 2, undefined);
    expect(block.bytes).toEqual(Uint8Array.from({ length: 32 }, (_, i) => (i >= 8 && i < 24 ? 0 : 0xa5)));
  });

  test("a single stream clears what two streams left", () => {
    const tensor = (seed: number) => ({
      ...{ buffer: seed, dtype: seed + 10, offsetLow: seed + 20, offsetHigh: 0 },
      ...{ lengthLow: seed + 30, lengthHigh: 0 },
    });
    const fieldsOf = (name: string, seed: number) => ({
      [`${name}.buffer`]: seed,
      [`${name}.dtype`]: seed && seed + 10,
      [`${name}.offset`]: seed && seed + 20,
      [`${name}.length`]: seed && seed + 30,
    });
    const block = new Block(structSizes.MAKvCacheCopyBatchArgs);
    const params = { nHeads: 21, headDim: 22, capacity: 23, seqPos: 24 };
    const streams = (seed: number) => ({ srcK: tensor(seed), cacheK: tensor(seed + 1) });
    const both = { ...streams(5), srcV: tensor(7), cacheV: tensor(8), params, isSliding: 1, batch: 9 };
    packMAKvCacheCopyBatchArgs(block, 0, both);
    packMAKvCacheCopyBatchArgs(block, 0, { ...both, ...streams(1), srcV: undefined, cacheV: undefined });
    const expected = {
      ...{ ...fieldsOf("srcK", 1), ...fieldsOf("cacheK", 2), ...fieldsOf("srcV", 0), ...fieldsOf("cacheV", 0) },
      ...{ "params.nHeads": 21, "params.headDim": 22, "params.capacity": 23, "params.seqPos": 24 },
      ...{ isSliding: 1, batch: 9 },
    };
    expect(packedFaults("MAKvCacheCopyBatchArgs", block.bytes, expected)).toEqual([]);
  });
});

describe("the comparison finds", () => {
  test.each(samples.map((sample) => [sample.struct, sample] as const))("mistakes in %s", (name, sample) => {
    const bytes = packSample(sample).bytes.subarray(0, structSizes[name]);
    const fields: Readonly<Record<string, number>> = sample.fields;
    const [[first, value] = ["", 0], last] = [Object.entries(fields)[0], Object.keys(fields).at(-1) ?? ""];
    expect(packedFaults(name, bytes, { ...fields, [first]: value + 1 })).toEqual([
      expect.stringContaining(`${name}.${first} was packed as ${BigInt(value + 1)}`),
    ]);
    expect(packedFaults(name, bytes, { ...fields, more: 1 })).toEqual([`the library has no field ${name}.more`]);
    const { [last]: _, ...fewer } = fields;
    expect(packedFaults(name, bytes, fewer)).toEqual([`the sample has no ${name}.${last}`]);
    expect(packedFaults(name, bytes.subarray(4), fields)).toEqual([expect.stringContaining("bytes, not")]);
  });

  test("a value where no field is", () => {
    const block = packSample(samples.find((each) => each.struct === "AttnParams") ?? samples[0]);
    const fields = samples.find((each) => each.struct === "AttnParams")?.fields ?? {};
    block.bytes[60] = 1;
    expect(packedFaults("AttnParams", block.bytes, fields)).toEqual(["AttnParams has a value where no field is"]);
  });

  test("another layout in the library", () => {
    expect(checkLayouts(loadLibrary())).toEqual({ structs: layouts.structs.size, abiVersion, faults: [] });
    const { structs } = layouts;
    const changed = new Map(structs);
    const { fields, ...rest } = struct("AttnParams");
    changed.set("AttnParams", { ...rest, fields: fields.map((each) => ({ ...each, offset: each.offset + 4 })) });
    expect(layoutFaults(changed)).toEqual([expect.stringContaining("AttnParams is")]);
    changed.set("AttnParams", { ...rest, fields: fields.toReversed() });
    expect(layoutFaults(changed)).toEqual([expect.stringContaining("AttnParams is")]);
    changed.set("AttnParams", { ...rest, fields, size: 164 });
    expect(layoutFaults(changed)).toEqual([expect.stringContaining('"164 B:0')]);
    changed.delete("AttnParams");
    expect(layoutFaults(changed)).toEqual(["the library has no struct AttnParams"]);
  });
});

describe("lists of structs", () => {
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
    const { list, names } = packConstants(cases);
    const { bytes } = list;
    expect(names).toEqual([]);
    cases.forEach(({ index, value: given, code, bytes: value }, position) => {
      const at = position * structSizes.MAConstant;
      const elements = Array.from({ length: 32 }, (_, i) => [`value[${i}]`, value[i] ?? 0]);
      const fields = {
        name: 0,
        index,
        dtype: code,
        components: typeof given === "object" ? given.length : 1,
        ...(Object.fromEntries(elements) as Record<string, number>),
      };
      expect(packedFaults("MAConstant", bytes.subarray(at, at + structSizes.MAConstant), fields)).toEqual([]);
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
      scratchLength: number("scratchLength"),
      maxThreadgroupMemoryLength: number("maxThreadgroupMemoryLength"),
      maxThreadsPerThreadgroup: [
        number("maxThreadsPerThreadgroup[0]"),
        number("maxThreadsPerThreadgroup[1]"),
        number("maxThreadsPerThreadgroup[2]"),
      ],
      hasUnifiedMemory: true,
      simdWidth: number("simdWidth"),
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
      openTime: values.get("openTime") ?? Number.NaN,
      commitTime: values.get("commitTime") ?? Number.NaN,
      gpuTime: end - start,
    });
  });

  test("MAPipelineInfo", () => {
    const { block, values } = filled("MAPipelineInfo");
    expect(readMAPipelineInfo(block)).toEqual({
      maxTotalThreadsPerThreadgroup: values.get("maxTotalThreadsPerThreadgroup") ?? Number.NaN,
      threadExecutionWidth: values.get("threadExecutionWidth") ?? Number.NaN,
      staticThreadgroupMemoryLength: values.get("staticThreadgroupMemoryLength") ?? Number.NaN,
    });
  });
});
