import { describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { packHadamardQuantizeKv, packingCodes, packQuantizedStreams } from "../../src/ffi/hadamardLayout.ts";
import { structSizes } from "../../src/ffi/layout.ts";
import { cacheFields, sampleCache, sampleTensor, tensorFields } from "../../src/ffi/layoutSamples.ts";
import { expectFields, struct } from "../helpers/packed.ts";

describe("the reference's structs have its fields, in its order", () => {
  const common = ["head_dim", "num_kv_heads", "write_pos", "cache_capacity", "is_sliding", "scale_factor_d512"];
  test.each([
    ["HadamardQuantizeParams", "rms_probe_enabled"],
    ["HadamardQuantizeHbParams", "codebook_bits"],
  ])("%s", (name, last) => {
    const { size, fields } = struct(name);
    expect(size).toBe(28);
    expect(fields.map((field) => [field.name, field.offset])).toEqual(
      [...common, last].map((field, index) => [field, 4 * index]),
    );
    expect(fields.map(({ type }) => type)).toEqual(["u32", "u32", "u32", "u32", "u32", "f32", "u32"]);
  });
});

describe("MAHadamardQuantizeKvArgs, packed over K and V of nibbles with a probe", () => {
  const block = new Block(structSizes.MAHadamardQuantizeKvArgs);
  const packAll = () => {
    packQuantizedStreams(block, ...([1, 2, 3, 4, 5, 6].map(sampleTensor) as SixTensors));
    packHadamardQuantizeKv(block, sampleTensor(7), sampleCache, 4, packingCodes.nibble);
  };
  type SixTensors = [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor];
  type Tensor = ReturnType<typeof sampleTensor>;
  const none = { headDim: 0, nKvHeads: 0, position: 0, capacity: 0, isSliding: 0, scaleFactorD512: 0 };
  const tensorsOf = (seeds: Readonly<Record<string, number>>): Record<string, number> =>
    Object.assign({}, ...Object.entries(seeds).map(([name, seed]) => tensorFields(name, seed)));

  test("without a probe", () => {
    packAll();
    packHadamardQuantizeKv(block, undefined, sampleCache, 4, packingCodes.nibble);
    expectFields("MAHadamardQuantizeKvArgs", block.bytes, {
      ...tensorsOf({ srcK: 1, packedK: 2, normsK: 3, srcV: 4, packedV: 5, normsV: 6, rmsScratch: 0 }),
      ...cacheFields("params", "write_pos"),
      "params.rms_probe_enabled": 0,
      ...cacheFields("hbParams", "write_pos", none),
      "hbParams.codebook_bits": 0,
      packing: packingCodes.nibble,
    });
  });

  test("one stream of another packing: HadamardQuantizeHbParams in place of HadamardQuantizeParams", () => {
    packAll();
    packQuantizedStreams(block, sampleTensor(1), sampleTensor(2), sampleTensor(3), undefined, undefined, undefined);
    packHadamardQuantizeKv(block, undefined, sampleCache, 6, packingCodes.dense);
    expectFields("MAHadamardQuantizeKvArgs", block.bytes, {
      ...tensorsOf({ srcK: 1, packedK: 2, normsK: 3, srcV: 0, packedV: 0, normsV: 0, rmsScratch: 0 }),
      ...cacheFields("params", "write_pos", none),
      "params.rms_probe_enabled": 0,
      ...cacheFields("hbParams", "write_pos"),
      "hbParams.codebook_bits": 6,
      packing: packingCodes.dense,
    });
  });
});
