import { ptr } from "bun:ffi";
import { afterAll } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { packingCodes, pairingCodes } from "../../src/ffi/generated/codes.ts";
import {
  packMAApplyRopeArgs,
  packMAFlashAttnDecodeArgs,
  packMAFlashAttnPrefillArgs,
  packMAKvCacheAppendArgs,
  packMAMergeAttentionArgs,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { dtypeCodes, NativeScene, noAttentionOptions } from "../helpers/abi.ts";
import { ownTensor, type PlainSample, type Sample, testArguments, testDerived } from "../helpers/derivedFields.ts";

// What the kernels of prefill's options, of codes, of decode, of its merge, of rotary positions and of the cache write get.

const scene = new NativeScene();
afterAll(() => scene.close());
const { native } = scene;
const tensor = (dtype: keyof typeof dtypeCodes, elements: number) => ownTensor(scene, dtype, elements);
const tensorBytes = structSizes.MATensor;
const present = { causal: 1, sinks: 2, alibi: 4, lse: 8, seqLens: 16, seqOffsets: 32, packedKeys: 64 };

const [B, H, nKvHeads, D, qL, kL] = [2, 6, 2, 64, 5, 12];
const strides = (heads: number, tokens: number) => [heads * tokens * D, tokens * D, D];
const f16 = (...extents: readonly number[]) =>
  tensor(
    "f16",
    extents.reduce((product, each) => product * each, D),
  );
const dense = {
  ...{ q: f16(B, H, qL), k: f16(B, nKvHeads, kL), v: f16(B, nKvHeads, kL), out: f16(B, H, qL) },
  ...noAttentionOptions,
  ...{ mask: undefined, tileClasses: undefined, maskParams: undefined, nKvHeads, causal: 1 },
  params: {
    ...{ B, H, D, qL, kL, scale: 0.125, softcapping: 1, qL_off: 0 },
    ...{ Q_strides: strides(H, qL), O_strides: strides(H, qL) },
    ...{ K_strides: strides(nKvHeads, kL), V_strides: strides(nKvHeads, kL) },
  },
};
const noOption = { window: 0, softcap: 0, capacity: 0, is_sliding: 0, page_tokens: 0, n_pages: 0 };
const noStrides = { L_strides: [0, 0, 0] };

type PrefillArgs = typeof packMAFlashAttnPrefillArgs extends (block: Block, at: number, record: infer R) => void
  ? NonNullable<R>
  : never;

const prefill =
  (change: Partial<PrefillArgs>): Sample["call"] =>
  (pass, poke) => {
    const block = new Block(structSizes.MAFlashAttnPrefillArgs);
    packMAFlashAttnPrefillArgs(block, 0, { ...(dense as PrefillArgs), ...change });
    poke?.(block);
    return native.ma_flash_attn_prefill(pass, block.bytes);
  };

const optionsAt = {
  index: 8,
  struct: "AttnOptionParams",
  // Six tensors, the parameters and those of the mask, four words, six tensors.
  start: 12 * tensorBytes + structSizes.AttnParams + structSizes.AttnMaskParams + 16,
};
const optionSamples: readonly Sample[] = [
  {
    name: "a window, a softcap, sinks, slopes and logarithms",
    call: prefill({
      ...{ sinks: tensor("f32", H), alibiSlopes: tensor("f32", H), lse: tensor("f32", B * H * qL) },
      options: { ...noOption, window: 7, softcap: 2.5, L_strides: [H * qL, qL, 1] },
    }),
    ...optionsAt,
    fields: {
      ...{ window: 7, softcap: 2.5, present: present.causal | present.sinks | present.alibi | present.lse },
      ...{ capacity: kL, is_sliding: 0, page_tokens: 0, n_pages: 0, L_strides: [H * qL, qL, 1] },
    },
    derived: ["present", "capacity"],
    // The slots of k.
    named: { capacity: "k" },
  },
  {
    name: "packed rows and keys",
    call: prefill({
      ...{ q: f16(kL, H), out: f16(kL, H), k: f16(kL, nKvHeads), v: f16(kL, nKvHeads), packedKeys: 1 },
      ...{ seqOffsets: tensor("i32", B + 1), causal: 0 },
      params: {
        ...{ ...dense.params, qL: kL, Q_strides: [0, D, H * D], O_strides: [0, D, H * D] },
        ...{ K_strides: [0, D, nKvHeads * D], V_strides: [0, D, nKvHeads * D] },
      },
      options: { ...noOption, ...noStrides, softcap: 1 },
    }),
    ...optionsAt,
    fields: {
      ...{ window: 0, softcap: 1, present: present.seqOffsets | present.packedKeys },
      ...{ capacity: kL, is_sliding: 0, page_tokens: 0, n_pages: 0, ...noStrides },
    },
    derived: ["present", "capacity"],
    // The slots of k.
    named: { capacity: "k" },
  },
  {
    name: "a ring with lengths",
    call: prefill({
      seqLens: tensor("i32", B),
      options: { ...noOption, ...noStrides, window: 3, is_sliding: 1, capacity: kL },
    }),
    ...optionsAt,
    fields: {
      ...{ window: 3, softcap: 0, present: present.causal | present.seqLens },
      ...{ capacity: kL, is_sliding: 1, page_tokens: 0, n_pages: 0, ...noStrides },
    },
    derived: ["present"],
  },
];

// Codes of K at 4 bits and of V at 8: a dispatch that decodes each, then attention over their rows.
const codesOf = (rows: number) => ({
  ...{ k: tensor("u8", (rows * D) / 2), normsK: tensor("f32", rows), packingK: packingCodes.nibble, bitsK: 4 },
  ...{ v: tensor("u8", rows * D), normsV: tensor("f32", rows), packingV: packingCodes.byte, bitsV: 8 },
});
const codesAt = {
  dispatches: 3,
  index: 2,
  struct: "AttnCodeParams",
  start: optionsAt.start + structSizes.AttnOptionParams + 2 * tensorBytes,
  derived: [
    ...["n_kv_heads", "n_slots", "is_sliding", "has_pages", "max_pages", "n_pages", "seq_len", "has_lengths"],
    ...["keys_seen", "out_dtype"],
  ],
  // The pages of k.
  named: { is_sliding: "isSliding", n_pages: "k" },
};
const slots = 15;
const line = prefill({
  ...codesOf(B * nKvHeads * slots),
  codes: { capacity: slots, scale_factor_d512: 1.5 },
  params: { ...dense.params, qL_off: kL - qL },
  options: { ...noOption, ...noStrides, window: 3 },
});
const lineFields = {
  ...{ capacity: slots, scale_factor_d512: 1.5, n_kv_heads: nKvHeads, n_slots: kL, is_sliding: 0 },
  // Five rows, the first of which sees two keys before it.
  ...{ has_pages: 0, max_pages: 0, n_pages: 0, seq_len: kL, has_lengths: 0, keys_seen: 7, out_dtype: dtypeCodes.f16 },
};
const [pageTokens, nPages] = [4, 9];
const paged = prefill({
  ...codesOf(nPages * nKvHeads * pageTokens),
  ...{ blockTable: tensor("i32", (B * kL) / pageTokens), seqLens: tensor("i32", B) },
  codes: { capacity: pageTokens, scale_factor_d512: 1 },
  options: { ...noOption, ...noStrides, capacity: kL, page_tokens: pageTokens, n_pages: nPages },
});
const ring = prefill({
  ...codesOf(B * nKvHeads * kL),
  codes: { capacity: kL, scale_factor_d512: 1 },
  params: { ...dense.params, kL: 40, qL_off: 35 },
  options: { ...noOption, ...noStrides, capacity: kL, is_sliding: 1 },
});
const codeSamples: readonly Sample[] = [
  { name: "codes in a line, K", call: line, ...codesAt, fields: lineFields },
  { name: "codes in a line, V", call: line, ...codesAt, dispatch: 1, fields: lineFields, derived: ["keys_seen"] },
  {
    name: "codes in pages",
    call: paged,
    ...codesAt,
    fields: {
      ...{ capacity: pageTokens, scale_factor_d512: 1, n_kv_heads: nKvHeads, n_slots: kL, is_sliding: 0 },
      ...{ has_pages: 1, max_pages: kL / pageTokens, n_pages: nPages, seq_len: kL, has_lengths: 1, keys_seen: 0 },
      out_dtype: dtypeCodes.f16,
    },
  },
  {
    name: "codes in a ring",
    call: ring,
    ...codesAt,
    fields: {
      ...{ capacity: kL, scale_factor_d512: 1, n_kv_heads: nKvHeads, n_slots: kL, is_sliding: 1, has_pages: 0 },
      ...{ max_pages: 0, n_pages: 0, seq_len: 40, has_lengths: 0, keys_seen: 0, out_dtype: dtypeCodes.f16 },
    },
  },
];

const decodeParams = {
  ...{ n_heads: H, n_kv_heads: nKvHeads, head_dim: D, n_q: 1, capacity: 700, seq_len: 600, is_sliding: 0 },
  ...{ window: 0, page_tokens: 0, n_pages: 0, tree_columns: 0, alibi_distance: 5 },
  ...{ scale: 0.125, softcap: 0.5, scale_factor_d512: 1 },
};
const decodeSample: Sample = {
  name: "decode over 600 keys",
  call: (pass, poke) => {
    const block = new Block(structSizes.MAFlashAttnDecodeArgs);
    // Over 16 bits a block may have 1,024 keys, where matrices have units of their own; over f32 it has 256 everywhere.
    const f32 = (capacity: number) => tensor("f32", B * nKvHeads * capacity * D);
    packMAFlashAttnDecodeArgs(block, 0, {
      ...{ q: tensor("bf16", B * H * D), k: f32(700), v: f32(700) },
      ...{ out: tensor("f32", B * H * D), lse: tensor("f32", B * H), seqLens: undefined, blockTable: undefined },
      ...{ sinks: tensor("f32", H), alibiSlopes: undefined, treeMask: undefined, normsK: undefined },
      ...{ normsV: undefined, params: decodeParams, batch: B, packingK: 0, bitsK: 0, packingV: 0, bitsV: 0 },
    });
    poke?.(block);
    return native.ma_flash_attn_decode(pass, block.bytes);
  },
  dispatches: 2,
  index: 5,
  struct: "FlashAttnDecodeParams",
  // MA_DECODE_SINKS and MA_DECODE_LSE; 600 keys are three blocks of 256.
  fields: {
    ...{ ...decodeParams, q_dtype: dtypeCodes.bf16, out_dtype: dtypeCodes.f32, present: 2 | 16 },
    ...{ n_blocks: 3, n_tiles: 1 },
  },
  start: 12 * tensorBytes,
  derived: ["q_dtype", "out_dtype", "present", "n_blocks", "n_tiles"],
};

function merge(parts: 1 | 3, partType: "f16" | "bf16", outType: "f32" | "f16", hasLse: boolean): Sample {
  const [rows, row_size] = [6, 10];
  const part = (given: boolean) => ({
    out: given ? tensor(partType, rows * row_size) : undefined,
    lse: given ? tensor("f32", rows) : undefined,
  });
  const [first, second, third] = [part(true), part(parts > 1), part(parts > 2)];
  const absent = {
    ...{ out3: undefined, lse3: undefined, out4: undefined, lse4: undefined, out5: undefined, lse5: undefined },
    ...{ out6: undefined, lse6: undefined, out7: undefined, lse7: undefined },
  };
  return {
    name: `merge of parts: ${parts}, ${partType}, out in ${outType}${hasLse ? ", with lse" : ""}`,
    call: (pass, poke) => {
      const block = new Block(structSizes.MAMergeAttentionArgs);
      packMAMergeAttentionArgs(block, 0, {
        ...{ out0: first.out, lse0: first.lse, out1: second.out, lse1: second.lse, out2: third.out, lse2: third.lse },
        ...{ ...absent, out: tensor(outType, rows * row_size), lse: hasLse ? tensor("f32", rows) : undefined },
        params: { rows, row_size },
      });
      poke?.(block);
      return native.ma_merge_attention(pass, block.bytes);
    },
    index: 16,
    struct: "MergeAttentionParams",
    fields: {
      ...{ rows, row_size, n_parts: parts, part_dtype: dtypeCodes[partType], out_dtype: dtypeCodes[outType] },
      has_lse: hasLse ? 1 : 0,
    },
    start: 18 * tensorBytes,
    derived: ["n_parts", "part_dtype", "out_dtype", "has_lse"],
  };
}
const mergeSamples = [merge(3, "bf16", "f32", true), merge(1, "f16", "f16", false)];

testDerived(scene, [...optionSamples, ...codeSamples, decodeSample, ...mergeSamples]);

const invFreq = Float32Array.of(1, 0.5, 0.25);
const angles = { invFreq: ptr(invFreq), invFreqCount: invFreq.length };
const ropeParams = {
  ...{ batch: 2, nHeads: 3, nKvHeads: 1, nTokens: 5, headDim: 8, rotaryDim: 6, sequenceMajor: 1 },
  ...{ positionsPerBatch: 0, start: -9, attentionScale: 1.25 },
};
const appendParams = {
  ...{ batch: 2, nTokens: 4, nHeads: 3, headDim: 8, capacity: 12, isSliding: 0, pageTokens: 4, nPages: 7 },
  ...{ start: 5, positionsPerBatch: 0, rotaryDim: 6, ropeOffset: -3, attentionScale: 0.75 },
};
const plainSamples: readonly PlainSample[] = [
  {
    name: "rotary positions of q and k",
    call: (pass) => {
      const block = new Block(structSizes.MAApplyRopeArgs);
      packMAApplyRopeArgs(block, 0, {
        ...{ q: tensor("f32", 240), outQ: tensor("bf16", 240), k: tensor("f32", 80), outK: tensor("bf16", 80) },
        ...{ positions: undefined, params: ropeParams, pairing: pairingCodes.half, ...angles },
      });
      return native.ma_apply_rope(pass, block.bytes);
    },
    index: 6,
    struct: "RopeParams",
    fields: ropeParams,
  },
  {
    name: "an append to pages",
    call: (pass) => {
      const block = new Block(structSizes.MAKvCacheAppendArgs);
      packMAKvCacheAppendArgs(block, 0, {
        ...{ srcK: tensor("f32", 192), cacheK: tensor("f16", 672), srcV: tensor("f32", 192) },
        ...{ cacheV: tensor("f16", 672), positions: undefined, blockTable: tensor("i32", 6) },
        ...{ params: appendParams, pairing: pairingCodes.interleaved, ...angles },
      });
      return native.ma_kv_cache_append(pass, block.bytes);
    },
    index: 7,
    struct: "KvCacheAppendParams",
    fields: appendParams,
  },
];

testArguments(scene, "what the kernel gets of calls without derived fields", plainSamples);
