import { ptr } from "bun:ffi";
import { attentionTiles } from "../../src/ops/attention/attentionTiles.ts";
import { dtypeCodes } from "../helpers/abi.ts";
import { decode, hasOddCodes, merge, prefill } from "./attention.ts";
import { type DType, givenOrDerived, Places, params, strides } from "./places.ts";
import type { Random } from "./random.ts";
import type { Fields } from "./structs.ts";
import type { LivePass } from "./world.ts";

/** An operation of the C ABI with calls that the header allows, and changes of them that it does not. */
export interface FuzzedOperation {
  readonly name: string;
  readonly struct: string;
  /** Arguments of a valid call; undefined where the open buffers do not allow one. Without it, bytes are made up. */
  readonly valid?: (pass: LivePass, random: Random) => Fields | undefined;
  /** Whether a valid call may be refused for what others did before it. */
  readonly mayBeRefused?: (fields: Fields) => boolean;
  /** Values that are refused whatever the rest is. */
  readonly refused?: readonly (readonly [path: string, value: number])[];
}

const most = 2 ** 32 - 1;

/** Every operation: a new one needs its line here. */
export const operations: readonly FuzzedOperation[] = [
  {
    name: "ma_copy",
    struct: "MACopyArgs",
    valid: copy,
    refused: [
      ["from.length", 61_440],
      ["to.offset", most],
      ["to.dtype", 99],
    ],
  },
  {
    name: "ma_kv_cache_copy",
    struct: "MAKvCacheCopyArgs",
    valid: rows,
    refused: [
      ["params.isSliding", 2],
      ["params.cacheCap", 0],
      ["params.nNew", most],
    ],
  },
  {
    name: "ma_kv_cache_copy_batch",
    struct: "MAKvCacheCopyBatchArgs",
    valid: batch,
    refused: [
      ["params.capacity", 0],
      ["isSliding", 2],
      ["batch", 0],
    ],
  },
  {
    name: "ma_kv_cache_copy_seq",
    struct: "MAKvCacheCopySeqArgs",
    valid: sequence,
    refused: [
      ["params.capacity", 0],
      ["params.nTokens", most],
      ["params.srcTokOffset", most],
      ["params.nSrcTokens", 0],
      ["isSliding", 2],
      ["batch", 0],
    ],
  },
  {
    name: "ma_kv_cache_copy_head_major",
    struct: "MAKvCacheCopyHeadMajorArgs",
    valid: headMajor,
    refused: [
      ["params.capacity", 0],
      ["params.nTokens", most],
      ["params.srcSeqLen", 0],
      ["isSliding", 2],
      ["batch", 0],
    ],
  },
  {
    name: "ma_kv_cache_append",
    struct: "MAKvCacheAppendArgs",
    valid: append,
    refused: [
      ["params.capacity", 0],
      ["params.headDim", 7],
      ["params.isSliding", 2],
      ["params.positionsPerBatch", 2],
      ["params.batch", 0],
      ["params.nTokens", most],
      ["pairing", 3],
      ["invFreqCount", 2 ** 20],
      ["params.pageTokens", most],
    ],
  },
  {
    name: "ma_hadamard_quantize_kv",
    struct: "MAHadamardQuantizeKvArgs",
    valid: quantizeToken,
    refused: [
      ["packing", 0],
      ["batch", 0],
      ["rmsScratch.buffer", most],
    ],
  },
  {
    name: "ma_hadamard_quantize_kv_seq",
    struct: "MAHadamardQuantizeKvSeqArgs",
    valid: quantizeRun,
    refused: [
      ["packing", 4],
      ["packingV", 4],
      ["bitsV", 7],
      ["params.codebook_bits", 7],
      ["params.codebook_bits_v", most],
      ["params.n_tokens", most],
      ["params.head_dim", 63],
      ["params.src_tok_offset", most],
      ["params.n_src_tokens", 0],
      ["params.rotaryDim", 3],
      ["params.rotaryDim", 66],
      ["params.heads_of_thread", most],
      ["pairing", 3],
      ["invFreqCount", 2 ** 20],
      ["batch", 0],
    ],
  },
  {
    name: "ma_hadamard_dequantize_kv",
    struct: "MAHadamardDequantizeKvArgs",
    valid: dequantizeRun,
    refused: [
      ["packing", 0],
      ["params.is_sliding", 2],
      ["params.out_dtype", 4],
      ["params.cache_capacity", 0],
      ["params.scale_factor_d512", -1],
      ["batch", 0],
    ],
  },
  {
    name: "ma_flash_attn_prefill",
    struct: "MAFlashAttnPrefillArgs",
    valid: prefill,
    // The bytes may hold what an earlier call made of another mask.
    mayBeRefused: (fields) => "tileClasses.buffer" in fields || hasOddCodes(fields),
    refused: [
      ["params.B", 0],
      ["params.qL", most],
      ["params.D", 63],
      ["params.softcapping", 2],
      ["nKvHeads", 0],
      ["causal", 2],
      ["packedKeys", 2],
      ["packingK", 4],
      ["bitsV", 9],
      ["options.window", -1],
      ["options.softcap", -1],
      ["options.is_sliding", 2],
      ["params.gqa_factor", 9],
      ["params.NQ", 99],
      ["params.kL_rem", -1],
    ],
  },
  {
    name: "ma_flash_attn_decode",
    struct: "MAFlashAttnDecodeArgs",
    valid: decode,
    mayBeRefused: hasOddCodes,
    refused: [
      ["batch", 0],
      ["params.n_q", 17],
      ["params.n_kv_heads", 0],
      ["params.head_dim", 63],
      ["params.capacity", 0],
      ["params.is_sliding", 2],
      ["params.scale", 0],
      ["params.softcap", -1],
      ["params.window", most],
      ["params.tree_columns", 33],
      ["params.alibi_distance", most],
      ["params.page_tokens", most],
      ["params.n_blocks", most],
      ["packingK", 4],
    ],
  },
  {
    name: "ma_merge_attention",
    struct: "MAMergeAttentionArgs",
    valid: merge,
    refused: [
      ["params.rows", 0],
      ["params.row_size", most],
      ["params.n_parts", 9],
      ["lse0.dtype", dtypeCodes.f16],
    ],
  },
  {
    name: "ma_apply_rope",
    struct: "MAApplyRopeArgs",
    valid: rope,
    refused: [
      ["pairing", 0],
      ["params.rotaryDim", 3],
      ["params.headDim", 7],
      ["params.sequenceMajor", 2],
      ["params.positionsPerBatch", 2],
      ["params.attentionScale", 0],
      ["invFreqCount", 2 ** 20],
      ["invFreq", 0],
    ],
  },
  {
    name: "ma_build_mask",
    struct: "MABuildMaskArgs",
    valid: buildMask,
    refused: [
      ["params.qL", 0],
      ["params.kL", most],
      ["params.window", most],
      ["params.qL_off", 2 ** 31 - 1],
    ],
  },
  {
    name: "ma_classify_mask_tiles",
    struct: "MAClassifyMaskTilesArgs",
    valid: classify,
    refused: [
      ["params.NQ", 99],
      ["params.NK", 99],
      ["params.qL", 0],
      ["headDim", 63],
    ],
  },
];

function rows(pass: LivePass, random: Random): Fields | undefined {
  const dtype = random.pick<DType>(["f32", "f16", "bf16"]);
  const [rowSize, nNew] = [random.between(1, 16), random.between(1, 4)];
  const cacheCap = nNew + random.below(5);
  const isSliding = random.below(2);
  const writePos = random.below(isSliding ? 1000 : cacheCap - nNew + 1);
  const tensors = new Places(pass, random).tensors(
    ["src", dtype, nNew * rowSize],
    ["cache", dtype, cacheCap * rowSize],
  );
  return tensors && { ...tensors, ...params({ writePos, rowSize, nNew, cacheCap, isSliding }) };
}

/** K alone, or K and V. */
function streams(
  pass: LivePass,
  random: Random,
  [from, to]: readonly [DType, DType],
  source: number,
  cache: number,
): Fields | undefined {
  const names = random.chance(0.5) ? ["K", "V"] : ["K"];
  return new Places(pass, random).tensors(
    ...names.flatMap((name) => [[`src${name}`, from, source] as const, [`cache${name}`, to, cache] as const]),
  );
}

/** Dtypes of a token-major source and a head-major cache. */
const headCopyPairs = [
  ["f32", "f32"],
  ["f32", "f16"],
  ["f32", "bf16"],
  ["bf16", "f32"],
  ["bf16", "bf16"],
  ["f16", "f16"],
] as const;

/** A linear cache or a ring of `capacity` slots, and a first position from which `tokens` fit. */
function positions(random: Random, capacity: number, tokens: number) {
  const isSliding = random.below(2);
  return { isSliding, start: random.below(isSliding ? 1000 : capacity - tokens + 1) };
}

function batch(pass: LivePass, random: Random): Fields | undefined {
  const [nHeads, headDim, capacity] = [random.between(1, 4), random.between(1, 16), random.between(1, 8)];
  const batches = random.between(1, 3);
  const token = batches * nHeads * headDim;
  const tensors = streams(pass, random, random.pick<readonly [DType, DType]>(headCopyPairs), token, token * capacity);
  const { isSliding, start: seqPos } = positions(random, capacity, 1);
  return tensors && { ...tensors, ...params({ nHeads, headDim, capacity, seqPos }), isSliding, batch: batches };
}

function sequence(pass: LivePass, random: Random): Fields | undefined {
  const [nHeads, headDim, capacity] = [random.between(1, 4), random.between(1, 16), random.between(1, 8)];
  const [nTokens, srcTokOffset] = [random.between(1, capacity), random.below(4)];
  const nSrcTokens = srcTokOffset + nTokens + random.below(3);
  const tensors = streams(
    pass,
    random,
    random.pick<readonly [DType, DType]>(headCopyPairs),
    nSrcTokens * nHeads * headDim,
    nHeads * capacity * headDim,
  );
  const { isSliding, start: seqPosStart } = positions(random, capacity, nTokens);
  const numbers = { nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset, nSrcTokens };
  return tensors && { ...tensors, ...params(numbers), isSliding, batch: 1 };
}

function headMajor(pass: LivePass, random: Random): Fields | undefined {
  const [nHeads, headDim, capacity] = [random.between(1, 4), random.between(1, 16), random.between(1, 8)];
  const [nTokens, srcTokOffset] = [random.between(1, capacity), random.below(4)];
  const srcSeqLen = srcTokOffset + nTokens + random.below(3);
  const batches = random.between(1, 3);
  const tensors = new Places(pass, random).tensors(
    ["src", "bf16", batches * nHeads * srcSeqLen * headDim],
    ["cache", "bf16", batches * nHeads * capacity * headDim],
  );
  const { isSliding, start: seqPosStart } = positions(random, capacity, nTokens);
  const numbers = { nHeads, headDim, capacity, seqPosStart, nTokens, srcTokOffset, srcSeqLen };
  return tensors && { ...tensors, ...params(numbers), isSliding, batch: batches };
}

/** Bits and packing of codes, and the bits that one takes. */
const codeFormats = [
  [4, 1, 4],
  [8, 2, 8],
  [5, 2, 8],
  [2, 3, 2],
  [6, 3, 6],
] as const;

/**
 * A quantized cache of 64 values a row: its format, and the tensors of K alone or of K and V, in a format of its own where
 * `mayDiffer`.
 */
function quantized(
  pass: LivePass,
  random: Random,
  values: readonly [name: string, dtype: DType, tokens: number],
  nHeads: number,
  capacity: number,
  mayDiffer = false,
): { readonly tensors: Fields; readonly bits: number; readonly packing: number; readonly ofV: Fields } | undefined {
  const headDim = 64;
  const [bits, packing, width] = random.pick<readonly [number, number, number]>(codeFormats);
  const hasV = random.chance(0.5);
  const own =
    hasV && mayDiffer && random.chance(0.7) ? random.pick<readonly [number, number, number]>(codeFormats) : undefined;
  const [name, dtype, tokens] = values;
  const tensors = new Places(pass, random).tensors(
    ...(hasV ? (["K", "V"] as const) : (["K"] as const)).flatMap((stream) => {
      const codeWidth = stream === "V" && own !== undefined ? own[2] : width;
      return [
        [`${name}${stream}`, dtype, tokens * nHeads * headDim] as const,
        [`packed${stream}`, "u8", (nHeads * capacity * headDim * codeWidth) / 8] as const,
        [`norms${stream}`, "f32", nHeads * capacity] as const,
      ];
    }),
  );
  return tensors && { tensors, bits, packing, ofV: { bitsV: own?.[0] ?? 0, packingV: own?.[1] ?? 0 } };
}

const sourceDTypes = ["f32", "f16", "bf16"] as const;

/** The parameters that every call of the quantized cache has. */
const quantizedParams = (num_kv_heads: number, cache_capacity: number, codebook_bits: number) => ({
  head_dim: 64,
  num_kv_heads,
  cache_capacity,
  is_sliding: 1,
  scale_factor_d512: 1,
  codebook_bits,
});

function quantizeToken(pass: LivePass, random: Random): Fields | undefined {
  const [nHeads, capacity, write_pos] = [random.between(1, 3), random.between(1, 6), random.below(1000)];
  const batches = random.between(1, 2);
  const cache = quantized(pass, random, ["src", random.pick(sourceDTypes), 1], batches * nHeads, capacity);
  if (cache === undefined) return undefined;
  const { codebook_bits, ...shared } = { ...quantizedParams(nHeads, capacity, cache.bits), write_pos };
  // Codes of 4 bits have parameters of their own, the others state their width.
  const own = Object.entries(cache.packing === 1 ? shared : { ...shared, codebook_bits });
  const struct = cache.packing === 1 ? "params" : "hbParams";
  const fields = Object.fromEntries(own.map(([name, value]) => [`${struct}.${name}`, value]));
  return { ...cache.tensors, ...fields, packing: cache.packing, batch: batches };
}

function quantizeRun(pass: LivePass, random: Random): Fields | undefined {
  const [nHeads, capacity, src_tok_offset] = [random.between(1, 3), random.between(1, 6), random.below(4)];
  const n_tokens = random.between(1, capacity);
  const source = ["src", random.pick(sourceDTypes), src_tok_offset + n_tokens] as const;
  const cache = quantized(pass, random, source, nHeads, capacity, true);
  const rotaryDim = random.chance(0.5) ? 0 : 2 * random.between(1, 32);
  const run = {
    write_pos_start: random.below(1000),
    n_tokens,
    src_tok_offset,
    n_src_tokens: src_tok_offset + n_tokens,
    rotaryDim,
    ropeOffset: rotaryDim === 0 ? 0 : random.below(2000) - 1000,
    attentionScale: rotaryDim === 0 ? 0 : 1,
  };
  return (
    cache && {
      ...cache.tensors,
      ...params({ ...quantizedParams(nHeads, capacity, cache.bits), ...run }),
      ...cache.ofV,
      packing: cache.packing,
      batch: 1,
      pairing: rotaryDim === 0 ? 0 : random.between(1, 2),
      invFreq: rotaryDim === 0 ? 0 : ptr(frequencies),
      invFreqCount: rotaryDim / 2,
    }
  );
}

function dequantizeRun(pass: LivePass, random: Random): Fields | undefined {
  const [nHeads, capacity] = [random.between(1, 3), random.between(1, 6)];
  const [n_tokens, dtype] = [random.between(1, capacity), random.pick<DType>(["f32", "f16", "bf16"])];
  const batches = random.between(1, 2);
  const cache = quantized(pass, random, ["out", dtype, n_tokens], batches * nHeads, capacity);
  const out_dtype = givenOrDerived(random, dtypeCodes[dtype]);
  const run = { read_pos_start: random.below(1000), n_tokens, out_dtype };
  return (
    cache && {
      ...cache.tensors,
      ...params({ ...quantizedParams(nHeads, capacity, cache.bits), ...run }),
      packing: cache.packing,
      batch: batches,
    }
  );
}

/** As many frequencies as a call may read, whatever a change makes of its numbers. */
const frequencies = new Float32Array(new ArrayBuffer(4096)).fill(0.5);

/** One stream, or two with heads of their own. */
function rope(pass: LivePass, random: Random): Fields | undefined {
  const dtypes = ["f32", "f16", "bf16"] as const;
  const [from, to] = [random.pick<DType>(dtypes), random.pick<DType>(dtypes)];
  const [batch, nTokens, nHeads, nKvHeads] = [3, 4, 5, 3].map((end) => random.between(1, end)) as [
    number,
    number,
    number,
    number,
  ];
  const rotaryDim = 2 * random.between(1, 4);
  const headDim = rotaryDim + 2 * random.below(3);
  const [hasK, hasPositions] = [random.chance(0.5), random.chance(0.5)];
  const vectors = batch * nTokens * headDim;
  const tensors = new Places(pass, random).tensors(
    ["q", from, vectors * nHeads],
    ["outQ", to, vectors * nHeads],
    ...(hasK ? [["k", from, vectors * nKvHeads] as const, ["outK", to, vectors * nKvHeads] as const] : []),
    ...(hasPositions ? [["positions", "i32", batch * nTokens] as const] : []),
  );
  const numbers = {
    batch,
    nHeads,
    nKvHeads: hasK ? nKvHeads : 0,
    nTokens,
    headDim,
    rotaryDim,
    sequenceMajor: random.below(2),
    positionsPerBatch: hasPositions ? 1 : 0,
    start: random.below(1000),
    attentionScale: 1,
  };
  return (
    tensors && {
      ...tensors,
      ...params(numbers),
      pairing: random.between(1, 2),
      invFreq: ptr(frequencies.buffer),
      invFreqCount: rotaryDim / 2,
    }
  );
}

/** K alone, or K and V, turned or not, into any kind of cache; what lies in positions and tables is anything. */
function append(pass: LivePass, random: Random): Fields | undefined {
  const dtypes = ["f32", "f16", "bf16"] as const;
  const [from, to] = [random.pick<DType>(dtypes), random.pick<DType>(dtypes)];
  const between = (end: number) => random.between(1, end);
  const [batch, nTokens, nHeads, nPages] = [between(3), between(4), between(4), between(4)];
  const rotaryDim = random.chance(0.5) ? 2 * between(4) : 0;
  const headDim = Math.max(rotaryDim, 2) + 2 * random.below(3);
  const [hasV, hasPositions, hasPages] = [random.chance(0.5), random.chance(0.5), random.chance(0.5)];
  const pageTokens = hasPages ? 2 * between(2) : 0;
  const capacity = hasPages ? pageTokens * (nTokens + random.below(2)) : nTokens + random.below(4);
  const isSliding = random.below(2);
  const source = batch * nTokens * nHeads * headDim;
  const cache = (hasPages ? nPages * pageTokens : batch * capacity) * nHeads * headDim;
  const tensors = new Places(pass, random).tensors(
    ["srcK", from, source],
    ["cacheK", to, cache],
    ...(hasV ? [["srcV", from, source] as const, ["cacheV", to, cache] as const] : []),
    ...(hasPositions ? [["positions", "i32", batch * nTokens] as const] : []),
    ...(hasPages ? [["blockTable", "i32", (batch * capacity) / pageTokens] as const] : []),
  );
  const numbers = {
    ...{ batch, nTokens, nHeads, headDim, capacity, isSliding, pageTokens, rotaryDim },
    nPages: hasPages ? nPages : 0,
    start: hasPositions ? 0 : random.below(isSliding ? 1000 : capacity - nTokens + 1),
    positionsPerBatch: hasPositions ? 1 : 0,
    ropeOffset: rotaryDim > 0 ? random.below(100) : 0,
    attentionScale: 1,
  };
  return (
    tensors && {
      ...tensors,
      ...params(numbers),
      pairing: rotaryDim > 0 ? between(2) : 0,
      invFreq: rotaryDim > 0 ? ptr(frequencies.buffer) : 0,
      invFreqCount: rotaryDim / 2,
    }
  );
}

function copy(pass: LivePass, random: Random): Fields | undefined {
  const dtype = random.pick<DType>(["f32", "bf16", "u8", "i64"]);
  const elements = random.below(2000);
  return new Places(pass, random).tensors(["from", dtype, elements], ["to", dtype, elements]);
}

function buildMask(pass: LivePass, random: Random): Fields | undefined {
  const [qL, kL] = [random.between(1, 40), random.between(1, 40)];
  const tensors = new Places(pass, random).tensors(["mask", random.pick<DType>(["bf16", "f16", "bool"]), qL * kL]);
  return tensors && { ...tensors, ...params({ qL, kL, qL_off: random.below(50), window: random.below(20) }) };
}

function classify(pass: LivePass, random: Random): Fields | undefined {
  const [qL, kL, headDim] = [random.between(1, 40), random.between(1, 40), random.pick([64, 128, 512])];
  const { queryTile, keyTile } = attentionTiles(headDim);
  const [NQ, NK] = [Math.ceil(qL / queryTile), Math.ceil(kL / keyTile)];
  const mask = random.pick<DType>(["bf16", "f16", "bool"]);
  const tensors = new Places(pass, random).tensors(["mask", mask, qL * kL], ["tileClasses", "u8", NQ * NK]);
  const shape = {
    B: random.between(1, 3),
    H: random.between(1, 3),
    qL,
    kL,
    NQ: givenOrDerived(random, NQ),
    NK: givenOrDerived(random, NK),
  };
  return tensors && { ...tensors, ...params({ ...shape, ...strides("M_strides", 0, 0, kL) }), headDim };
}
