import { describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import {
  type HadamardCacheRecord,
  packHadamardDequantizeKv,
  packHadamardQuantizeKv,
  packHadamardQuantizeKvSeq,
  packingCodes,
  packQuantizedStreams,
} from "../../src/ffi/hadamardLayout.ts";
import { structSizes } from "../../src/ffi/layout.ts";
import { absent, expectFields, struct, tensor, tensorFields } from "../helpers/packed.ts";

const cache: HadamardCacheRecord = {
  headDim: 11,
  nKvHeads: 12,
  position: 0xffff_fff3,
  capacity: 14,
  isSliding: 1,
  scaleFactorD512: 22.625,
};

/** What the library must read where `cache` was packed. */
const cacheFields = (params: string, position: string) => ({
  [`${params}.head_dim`]: 11,
  [`${params}.num_kv_heads`]: 12,
  [`${params}.${position}`]: 0xffff_fff3,
  [`${params}.cache_capacity`]: 14,
  [`${params}.is_sliding`]: 1,
  [`${params}.scale_factor_d512`]: 22.625,
});

const noCache = (params: string, position: string) =>
  Object.fromEntries(Object.keys(cacheFields(params, position)).map((field) => [field, 0]));

const encodeNames = ["srcK", "packedK", "normsK", "srcV", "packedV", "normsV"];
const decodeNames = ["packedK", "normsK", "outK", "packedV", "normsV", "outV"];
const tensorsOf = (names: readonly string[]) =>
  Object.assign({}, ...names.map((name, index) => tensorFields(name, index + 1))) as Record<string, number>;

const packSix = (block: Block) =>
  packQuantizedStreams(block, tensor(1), tensor(2), tensor(3), tensor(4), tensor(5), tensor(6));

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

describe("packed in TypeScript, read back field by field by the library", () => {
  const block = new Block(structSizes.MAHadamardQuantizeKvArgs);

  test("MAHadamardQuantizeKvArgs with HadamardQuantizeParams: nibbles, with and without a probe", () => {
    packSix(block);
    packHadamardQuantizeKv(block, tensor(7), cache, 4, packingCodes.nibble);
    const params = {
      ...cacheFields("params", "write_pos"),
      ...noCache("hbParams", "write_pos"),
      "hbParams.codebook_bits": 0,
      packing: 1,
    };
    expectFields("MAHadamardQuantizeKvArgs", block.bytes, {
      ...tensorsOf(encodeNames),
      ...tensorFields("rmsScratch", 7),
      ...params,
      "params.rms_probe_enabled": 1,
    });
    packHadamardQuantizeKv(block, undefined, cache, 4, packingCodes.nibble);
    expectFields("MAHadamardQuantizeKvArgs", block.bytes, {
      ...tensorsOf(encodeNames),
      ...absent("rmsScratch"),
      ...params,
      "params.rms_probe_enabled": 0,
    });
  });

  test("MAHadamardQuantizeKvArgs with HadamardQuantizeHbParams, over what nibbles and V left", () => {
    packSix(block);
    packHadamardQuantizeKv(block, tensor(7), cache, 4, packingCodes.nibble);
    packQuantizedStreams(block, tensor(1), tensor(2), tensor(3), undefined, undefined, undefined);
    packHadamardQuantizeKv(block, undefined, cache, 6, packingCodes.dense);
    expectFields("MAHadamardQuantizeKvArgs", block.bytes, {
      ...tensorsOf(encodeNames.slice(0, 3)),
      ...absent("srcV"),
      ...absent("packedV"),
      ...absent("normsV"),
      ...absent("rmsScratch"),
      ...noCache("params", "write_pos"),
      "params.rms_probe_enabled": 0,
      ...cacheFields("hbParams", "write_pos"),
      "hbParams.codebook_bits": 6,
      packing: 3,
    });
  });

  test("MAHadamardQuantizeKvSeqArgs", () => {
    const bulk = new Block(structSizes.MAHadamardQuantizeKvSeqArgs);
    packSix(bulk);
    packHadamardQuantizeKvSeq(bulk, cache, 15, 16, 17, packingCodes.byte);
    expectFields("MAHadamardQuantizeKvSeqArgs", bulk.bytes, {
      ...tensorsOf(encodeNames),
      ...cacheFields("params", "write_pos_start"),
      "params.codebook_bits": 15,
      "params.n_tokens": 16,
      "params.src_tok_offset": 17,
      packing: 2,
    });
  });

  test("MAHadamardDequantizeKvArgs", () => {
    const decode = new Block(structSizes.MAHadamardDequantizeKvArgs);
    packSix(decode);
    packHadamardDequantizeKv(decode, cache, 15, 16, 18, packingCodes.dense);
    expectFields("MAHadamardDequantizeKvArgs", decode.bytes, {
      ...tensorsOf(decodeNames),
      ...cacheFields("params", "read_pos_start"),
      "params.codebook_bits": 15,
      "params.n_tokens": 16,
      "params.out_dtype": 18,
      packing: 3,
    });
  });
});
