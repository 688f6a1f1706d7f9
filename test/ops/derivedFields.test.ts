import { afterAll, describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { packingCodes } from "../../src/ffi/generated/codes.ts";
import {
  packMABuildMaskArgs,
  packMAClassifyMaskTilesArgs,
  packMAFlashAttnPrefillArgs,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { support } from "../../src/ffi/support.ts";
import { dtypeCodes, NativeScene, noAttentionOptions, statusCodes } from "../helpers/abi.ts";
import { expectOk } from "../helpers/abiRefusals.ts";
import { copyHeadMajor, copyRows, copySeq, copyToken } from "../helpers/copyCalls.ts";
import {
  bytesOf,
  ownTensor,
  type PlainSample,
  type Sample,
  testArguments,
  testDerived,
} from "../helpers/derivedFields.ts";
import { type CallArgs, hadamardCalls } from "../helpers/hadamardCalls.ts";

// What a kernel gets, beside what is computed here: each field of the structs
// of ShaderTypes.h, whether the caller gave it or the library filled it in.

const scene = new NativeScene();
afterAll(() => scene.close());
const { native } = scene;

const tensor = (dtype: keyof typeof dtypeCodes, elements: number) => ownTensor(scene, dtype, elements);

const tensorBytes = structSizes.MATensor;

function prefill(D: number, [qL, kL]: readonly [number, number], mask: boolean): Sample {
  const [B, H, nKvHeads] = [2, 6, 2];
  const row = support().flashAttnPrefill.find(({ headDim }) => headDim === D);
  const [BQ, BK] = [row?.queryTile ?? 0, row?.keyTile ?? 0];
  const strides = (heads: number, tokens: number) => [heads * tokens * D, tokens * D, D];
  const given = { B, H, D, qL, kL, scale: 0.125, softcapping: 1, qL_off: qL <= kL ? kL - qL : 0 };
  const all = {
    Q_strides: strides(H, qL),
    K_strides: strides(nKvHeads, kL),
    V_strides: strides(nKvHeads, kL),
    O_strides: strides(H, qL),
  };
  const q = tensor("bf16", B * H * qL * D);
  const [k, v] = [tensor("bf16", B * nKvHeads * kL * D), tensor("bf16", B * nKvHeads * kL * D)];
  const out = tensor("bf16", B * H * qL * D);
  const given_mask = mask ? tensor("bool", qL * kL) : undefined;
  return {
    name: `prefill, D = ${D}, ${qL} x ${kL}${mask ? ", a mask" : ""}`,
    call: (pass, poke) => {
      const block = new Block(structSizes.MAFlashAttnPrefillArgs);
      packMAFlashAttnPrefillArgs(block, 0, {
        ...{ q, k, v, out, mask: given_mask, tileClasses: undefined, nKvHeads, causal: 1 },
        ...noAttentionOptions,
        params: { ...given, ...all },
        maskParams: { M_strides: [0, 0, kL] },
      });
      poke?.(block);
      return native.ma_flash_attn_prefill(pass, block.bytes);
    },
    index: 4,
    struct: "AttnParams",
    fields: {
      ...{ B, H, D, qL, kL, gqa_factor: H / nKvHeads, scale: 0.125, softcapping: 1 },
      ...{ NQ: Math.ceil(qL / BQ), NK: Math.ceil(kL / BK) },
      ...{ NQ_aligned: Math.floor(qL / BQ), NK_aligned: Math.floor(kL / BK), qL_rem: qL % BQ, kL_rem: kL % BK },
      qL_off: given.qL_off,
      ...all,
    },
    start: 6 * tensorBytes,
    derived: ["gqa_factor", "NQ", "NK", "NQ_aligned", "NK_aligned", "qL_rem", "kL_rem"],
  };
}

function classify(headDim: number, [qL, kL]: readonly [number, number]): Sample {
  const [B, H] = [2, 3];
  const row = support().flashAttnPrefill.find((each) => each.headDim === headDim);
  const [NQ, NK] = [Math.ceil(qL / (row?.queryTile ?? 0)), Math.ceil(kL / (row?.keyTile ?? 0))];
  const mask = tensor("bool", B * H * qL * kL);
  const tileClasses = tensor("u8", B * H * NQ * NK);
  const M_strides = [H * qL * kL, qL * kL, kL];
  return {
    name: `classify, D = ${headDim}, ${qL} x ${kL}`,
    call: (pass, poke) => {
      const block = new Block(structSizes.MAClassifyMaskTilesArgs);
      packMAClassifyMaskTilesArgs(block, 0, { mask, tileClasses, params: { B, H, qL, kL, M_strides }, headDim });
      poke?.(block);
      return native.ma_classify_mask_tiles(pass, block.bytes);
    },
    index: 2,
    struct: "ClassifyMaskParams",
    fields: { B, H, qL, kL, NQ, NK, M_strides },
    start: 2 * tensorBytes,
    derived: ["NQ", "NK"],
  };
}

const cache = { headDim: 64, nKvHeads: 2, position: 3, capacity: 5, isSliding: 0, scaleFactorD512: 1 };

function quantizedArgs(vectors: CallArgs["k"]["vectors"], bits: 4 | 6, batch: number): CallArgs {
  const rows = batch * cache.nKvHeads * cache.capacity;
  const packed = tensor("u8", rows * (bits === 4 ? 32 : 64));
  return {
    k: { vectors, packed, norms: tensor("f32", rows) },
    v: {},
    cache,
    bits,
    packing: bits === 4 ? packingCodes.nibble : packingCodes.byte,
    ...{ batch, rmsScratch: undefined, rmsCoordinates: 0, nTokens: 2, srcTokOffset: 1, nSrcTokens: 4 },
  };
}

const common = { head_dim: 64, num_kv_heads: 2 };
const place = { cache_capacity: 5, is_sliding: 0, scale_factor_d512: 1 };

function quantizeToken(probe: boolean, batch: number): Sample {
  const src = tensor("f32", batch * 2 * 64);
  const rmsScratch = probe ? tensor("f32", batch * 2 * 64) : undefined;
  const args = { ...quantizedArgs(src, 4, batch), rmsScratch };
  return {
    name: `one token of ${batch} batches${probe ? ", a probe" : ""}`,
    call: (pass, poke) => hadamardCalls.token(pass, args, poke),
    index: 3,
    struct: "HadamardQuantizeParams",
    // A batch lies in memory like more heads.
    fields: { head_dim: 64, num_kv_heads: 2 * batch, write_pos: 3, ...place, rms_probe_enabled: probe ? 1 : 0 },
    start: 7 * tensorBytes,
    derived: ["rms_probe_enabled"],
  };
}

function dequantize(dtype: "f32" | "f16" | "bf16", batch: number): Sample {
  const args = quantizedArgs(tensor(dtype, batch * 2 * 2 * 64), 4, batch);
  return {
    name: `reading ${batch} batches to ${dtype}`,
    call: (pass, poke) => hadamardCalls.decode(pass, args, poke),
    index: 3,
    struct: "HadamardDequantizeParams",
    fields: {
      ...{ head_dim: 64, num_kv_heads: 2 * batch, read_pos_start: 3, ...place },
      ...{ codebook_bits: 4, n_tokens: 2, out_dtype: dtypeCodes[dtype] },
    },
    start: 6 * tensorBytes,
    derived: ["out_dtype"],
  };
}

const derivedSamples: readonly Sample[] = [
  ...[64, 256, 512].flatMap((D) => [
    prefill(D, [35, 40], false),
    prefill(D, [32, 64], true),
    prefill(D, [1, 1], true),
    prefill(D, [70, 9], false),
  ]),
  ...[64, 512].flatMap((D) => [classify(D, [35, 40]), classify(D, [64, 16])]),
  quantizeToken(true, 1),
  quantizeToken(true, 2),
  quantizeToken(false, 3),
  dequantize("f32", 1),
  dequantize("f16", 2),
  dequantize("bf16", 3),
];

testDerived(scene, derivedSamples);

const [source, target] = [tensor("f32", 1024), tensor("f16", 1024)];
const streams = { srcK: source, cacheK: target, srcV: undefined, cacheV: undefined };
const [nHeads, headDim, capacity] = [2, 8, 5];
const [bf16Source, bf16Cache] = [tensor("bf16", 1024), tensor("bf16", 1024)];
const mask = tensor("bool", 6 * 10);

const plainSamples: readonly PlainSample[] = [
  {
    name: "rows",
    call: copyRows({
      src: source,
      cache: tensor("f32", 64),
      writePos: 9,
      rowSize: 8,
      nNew: 4,
      cacheCap: 6,
      isSliding: 1,
    }),
    index: 2,
    struct: "KvCacheCopyParams",
    fields: { writePos: 9, rowSize: 8, nNew: 4, cacheCap: 6, isSliding: 1 },
  },
  {
    name: "one token of three batches into a ring: its slot",
    call: copyToken({ ...streams, nHeads, headDim, capacity, seqPos: 13, isSliding: 1, batch: 3 }),
    index: 2,
    struct: "KvCacheCopyBatchParams",
    fields: { nHeads: 6, headDim, capacity, seqPos: 3 },
  },
  {
    name: "a run",
    call: copySeq({
      ...{ ...streams, nHeads, headDim, capacity, isSliding: 1, batch: 1 },
      ...{ seqPosStart: 13, nTokens: 3, srcTokOffset: 1, nSrcTokens: 6 },
    }),
    index: 2,
    struct: "KvCacheCopySeqParams",
    fields: { nHeads, headDim, capacity, seqPosStart: 13, nTokens: 3, srcTokOffset: 1, nSrcTokens: 6 },
  },
  {
    name: "a head-major run of two batches",
    call: copyHeadMajor({
      ...{ src: bf16Source, cache: bf16Cache, nHeads, headDim, capacity, isSliding: 0, batch: 2 },
      ...{ seqPosStart: 1, nTokens: 3, srcTokOffset: 1, srcSeqLen: 6 },
    }),
    index: 2,
    struct: "KvCacheCopyHeadMajorParams",
    fields: { nHeads: 4, headDim, capacity, seqPosStart: 1, nTokens: 3, srcTokOffset: 1, srcSeqLen: 6 },
  },
  {
    name: "one token of 6 bits",
    call: (pass) => hadamardCalls.token(pass, quantizedArgs(tensor("f32", 2 * 64), 6, 1)),
    index: 3,
    struct: "HadamardQuantizeHbParams",
    fields: { ...common, write_pos: 3, ...place, codebook_bits: 6 },
  },
  {
    name: "a quantized run",
    call: (pass) => hadamardCalls.tokens(pass, quantizedArgs(tensor("f32", 4 * 2 * 64), 4, 1)),
    index: 3,
    struct: "HadamardQuantizeSeqParams",
    fields: {
      ...common,
      write_pos_start: 3,
      ...place,
      codebook_bits: 4,
      n_tokens: 2,
      src_tok_offset: 1,
      n_src_tokens: 4,
      ...{ positions_per_batch: 0, page_tokens: 0, n_pages: 0, has_positions: 0 },
      ...{ rotaryDim: 0, ropeOffset: 0, attentionScale: 0, heads_of_thread: 1, codebook_bits_v: 4 },
    },
  },
  {
    name: "a mask that is built",
    call: (pass) => {
      const block = new Block(structSizes.MABuildMaskArgs);
      packMABuildMaskArgs(block, 0, { mask, params: { qL: 6, kL: 10, qL_off: 4, window: 3 } });
      return native.ma_build_mask(pass, block.bytes);
    },
    index: 1,
    struct: "BuildMaskParams",
    fields: { qL: 6, kL: 10, qL_off: 4, window: 3 },
  },
];

testArguments(scene, "what the kernel gets of calls without derived fields", plainSamples);

describe("ma_pass_argument_bytes", () => {
  const pass = scene.pass();
  const [first, second] = [prefill(64, [35, 40], true), classify(512, [35, 40])];
  for (const { call } of [first, second]) expectOk(scene, call(pass));

  test("gives each dispatch's own, and nothing where the argument is a buffer or absent", () => {
    expect(scene.argumentBytes(pass, 0, 4)).toEqual(bytesOf(first.struct, first.fields));
    expect(scene.argumentBytes(pass, 0, 5)).toEqual(bytesOf("AttnMaskParams", { M_strides: [0, 0, 40] }));
    expect(scene.argumentBytes(pass, 1, 2)).toEqual(bytesOf(second.struct, second.fields));
    for (const [dispatch, index] of [
      [0, 0],
      [0, 7],
      [1, 0],
      [1, 4],
      [0, 31],
      [0, 2 ** 32 - 1],
    ] as const) {
      expect(scene.argumentBytes(pass, dispatch, index).length).toBe(0);
    }
  });

  test("writes up to the capacity and no further, and needs all of it", () => {
    const needed = new Block(8);
    for (const capacity of [0, 1, 159, 160, 161]) {
      const buffer = new Uint8Array(170).fill(0xa5);
      expect(native.ma_pass_argument_bytes(pass, 0, 4, buffer, BigInt(capacity), needed.bytes)).toBe(statusCodes.ok);
      expect(needed.getU64(0)).toBe(160);
      const written = Math.min(capacity, 160);
      expect(buffer.subarray(0, written)).toEqual(bytesOf(first.struct, first.fields).subarray(0, written));
      expect(buffer.subarray(written).every((byte) => byte === 0xa5)).toBe(true);
    }
  });

  test("after the commit too", () => {
    scene.commitAndWait(pass);
    expect(scene.argumentBytes(pass, 1, 2)).toEqual(bytesOf(second.struct, second.fields));
  });

  test("is refused for no such dispatch, for NULL and for no pass", () => {
    const needed = new Block(8);
    needed.bytes.fill(0xa5);
    const call = (handle: number, dispatch: number, buffer: Uint8Array<ArrayBuffer> | null, capacity: bigint) =>
      native.ma_pass_argument_bytes(handle, dispatch, 4, buffer, capacity, needed.bytes);
    expect(call(pass, 2, null, 0n)).toBe(statusCodes.invalidArgument);
    expect(scene.lastFailure()).toMatchObject({ argument: "dispatch", function: "ma_pass_argument_bytes" });
    expect(call(pass, 2 ** 32 - 1, null, 0n)).toBe(statusCodes.invalidArgument);
    expect(call(pass, 0, null, 1n)).toBe(statusCodes.invalidArgument);
    expect(call(0, 0, null, 0n)).toBe(statusCodes.invalidHandle);
    expect(native.ma_pass_argument_bytes(pass, 0, 4, null, 0n, null)).toBe(statusCodes.invalidArgument);
    expect(needed.bytes.every((byte) => byte === 0xa5)).toBe(true);
  });
});
