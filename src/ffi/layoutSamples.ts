import { Block } from "./block.ts";
import { packConstants } from "./constants.ts";
import {
  type HadamardCacheRecord,
  packHadamardQuantizeKv,
  packHadamardRun,
  packingCodes,
  packQuantizedStreams,
} from "./hadamardLayout.ts";
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
  type TensorRecord,
} from "./layout.ts";
import { packBindings, packKernelDispatch, recordSizes } from "./records.ts";

/** A struct as it is packed here, and what the library must read in it by the names of the fields. */
export interface LayoutSample {
  readonly struct: string;
  readonly bytes: Uint8Array;
  readonly fields: Readonly<Record<string, number>>;
}

/** A tensor whose fields all differ, and differ from those of another `seed`. */
export function sampleTensor(seed: number): TensorRecord {
  return {
    buffer: seed * 0x0101_0101,
    dtype: seed + 100,
    offsetLow: 0x8000_0000 + seed,
    offsetHigh: 0x1000 + seed,
    lengthLow: 0x9000_0000 + seed,
    lengthHigh: 0x2000 + seed,
  };
}

/** What the library must read where {@link sampleTensor} was packed; seed 0 is the absent tensor. */
export function tensorFields(name: string, seed: number): Record<string, number> {
  const none = { buffer: 0, dtype: 0, offsetLow: 0, offsetHigh: 0, lengthLow: 0, lengthHigh: 0 };
  const { buffer, dtype, offsetLow, offsetHigh, lengthLow, lengthHigh } = seed === 0 ? none : sampleTensor(seed);
  return {
    [`${name}.buffer`]: buffer,
    [`${name}.dtype`]: dtype,
    [`${name}.offset`]: offsetHigh * 2 ** 32 + offsetLow,
    [`${name}.length`]: lengthHigh * 2 ** 32 + lengthLow,
  };
}

const tensor = sampleTensor;

/** What the library must read where `tensor(first)` and the next were packed under these names. */
function tensorsOf(names: readonly string[], first = 1): Record<string, number> {
  return Object.assign({}, ...names.map((name, index) => tensorFields(name, first + index)));
}

/** A sample of one struct: `pack` fills a block of its size. */
function sample(
  struct: keyof typeof structSizes,
  fields: Readonly<Record<string, number>>,
  pack: (block: Block) => void,
): LayoutSample {
  const block = new Block(structSizes[struct]);
  pack(block);
  return { struct, bytes: block.bytes, fields };
}

const streams = ["srcK", "cacheK", "srcV", "cacheV"];
const packFour = (block: Block) => packStreams(block, tensor(1), tensor(2), tensor(3), tensor(4));

const copySamples: readonly LayoutSample[] = [
  sample(
    "MAKvCacheCopyArgs",
    {
      ...tensorsOf(["src", "cache"]),
      "params.writePos": 11,
      "params.rowSize": 12,
      "params.nNew": 13,
      "params.cacheCap": 14,
      "params.isSliding": 15,
    },
    (block) => packKvCacheCopy(block, tensor(1), tensor(2), 11, 12, 13, 14, 15),
  ),
  sample(
    "MAKvCacheCopyBatchArgs",
    {
      ...tensorsOf(streams),
      "params.nHeads": 21,
      "params.headDim": 22,
      "params.capacity": 23,
      "params.seqPos": 0xffff_ffff,
    },
    (block) => {
      packFour(block);
      packKvCacheCopyBatch(block, 21, 22, 23, 0xffff_ffff);
    },
  ),
  sample(
    "MAKvCacheCopySeqArgs",
    {
      ...tensorsOf(streams),
      "params.nHeads": 31,
      "params.headDim": 32,
      "params.capacity": 33,
      "params.seqPosStart": 34,
      "params.nTokens": 35,
      "params.srcTokOffset": 36,
    },
    (block) => {
      packFour(block);
      packKvCacheCopySeq(block, 31, 32, 33, 34, 35, 36);
    },
  ),
  sample(
    "MAKvCacheCopyHeadMajorArgs",
    {
      ...tensorsOf(["src", "cache"]),
      "params.nHeads": 41,
      "params.headDim": 42,
      "params.capacity": 43,
      "params.seqPosStart": 44,
      "params.nTokens": 45,
      "params.srcTokOffset": 46,
      "params.srcSeqLen": 47,
    },
    (block) => packKvCacheCopyHeadMajor(block, tensor(1), tensor(2), 41, 42, 43, 44, 45, 46, 47),
  ),
];

/** Strides beyond 32 bits, different for each `seed`. */
const strides = (seed: number) => ({ batch: seed * 2 ** 40 + 1, head: seed * 2 ** 33 + 2, token: seed * 1000 + 3 });
const strideFields = (name: string, seed: number) => ({
  [`${name}[0]`]: strides(seed).batch,
  [`${name}[1]`]: strides(seed).head,
  [`${name}[2]`]: strides(seed).token,
});

/** Fields of AttnParams by the names that they have here, scalars only. */
const attnScalars = {
  B: "B",
  H: "H",
  D: "D",
  qL: "qL",
  kL: "kL",
  gqaFactor: "gqa_factor",
  NQ: "NQ",
  NK: "NK",
  NQAligned: "NQ_aligned",
  NKAligned: "NK_aligned",
  qLRem: "qL_rem",
  kLRem: "kL_rem",
  qLOff: "qL_off",
} as const;
type AttnScalars = Record<keyof typeof attnScalars, number>;
const attnNames = Object.keys(attnScalars) as (keyof typeof attnScalars)[];
const attnValues = Object.fromEntries(attnNames.map((name, index) => [name, 51 + index])) as AttnScalars;

const attentionSamples: readonly LayoutSample[] = [
  sample(
    "MAFlashAttnPrefillArgs",
    {
      ...tensorsOf(["q", "k", "v", "out", "mask", "tileClasses"]),
      ...Object.fromEntries(attnNames.map((name) => [`params.${attnScalars[name]}`, attnValues[name]])),
      "params.scale": 0.0625,
      "params.softcapping": 1.5,
      ...strideFields("params.Q_strides", 1),
      ...strideFields("params.K_strides", 2),
      ...strideFields("params.V_strides", 3),
      ...strideFields("params.O_strides", 4),
      ...strideFields("maskParams.M_strides", 5),
      nKvHeads: 71,
      causal: 72,
    },
    (block) =>
      packFlashAttnPrefill(block, {
        q: tensor(1),
        k: tensor(2),
        v: tensor(3),
        out: tensor(4),
        mask: tensor(5),
        tileClasses: tensor(6),
        params: {
          ...attnValues,
          scale: 0.0625,
          softcapping: 1.5,
          qStrides: strides(1),
          kStrides: strides(2),
          vStrides: strides(3),
          oStrides: strides(4),
        },
        maskStrides: strides(5),
        nKvHeads: 71,
        causal: 72,
      }),
  ),
  sample(
    "MABuildMaskArgs",
    { ...tensorsOf(["mask"]), "params.qL": 91, "params.kL": 92, "params.qL_off": 93, "params.window": 94 },
    (block) => packBuildMask(block, tensor(1), 91, 92, 93, 94),
  ),
  sample(
    "MAClassifyMaskTilesArgs",
    {
      ...tensorsOf(["mask", "tileClasses"]),
      "params.B": 101,
      "params.H": 102,
      "params.qL": 103,
      "params.kL": 104,
      "params.NQ": 105,
      "params.NK": 106,
      ...strideFields("params.M_strides", 1),
      headDim: 107,
    },
    (block) => {
      const extents = { B: 101, H: 102, qL: 103, kL: 104, NQ: 105, NK: 106, headDim: 107 };
      packClassifyMaskTiles(block, { mask: tensor(1), tileClasses: tensor(2), strides: strides(1), ...extents });
    },
  ),
];

/** Positions and extents of a quantised cache, all different. */
export const sampleCache: HadamardCacheRecord = {
  headDim: 11,
  nKvHeads: 12,
  position: 0xffff_fff3,
  capacity: 14,
  isSliding: 1,
  scaleFactorD512: 22.625,
};

/** What the library must read where a cache was packed into the struct `params`, its position named `position`. */
export function cacheFields(params: string, position: string, cache = sampleCache): Record<string, number> {
  return {
    [`${params}.head_dim`]: cache.headDim,
    [`${params}.num_kv_heads`]: cache.nKvHeads,
    [`${params}.${position}`]: cache.position,
    [`${params}.cache_capacity`]: cache.capacity,
    [`${params}.is_sliding`]: cache.isSliding,
    [`${params}.scale_factor_d512`]: cache.scaleFactorD512,
  };
}

const noCache = { headDim: 0, nKvHeads: 0, position: 0, capacity: 0, isSliding: 0, scaleFactorD512: 0 };
const encodeNames = ["srcK", "packedK", "normsK", "srcV", "packedV", "normsV"];
const packSix = (block: Block) =>
  packQuantizedStreams(block, tensor(1), tensor(2), tensor(3), tensor(4), tensor(5), tensor(6));

const hadamardSamples: readonly LayoutSample[] = [
  sample(
    "MAHadamardQuantizeKvArgs",
    {
      ...tensorsOf([...encodeNames, "rmsScratch"]),
      ...cacheFields("params", "write_pos"),
      "params.rms_probe_enabled": 1,
      ...cacheFields("hbParams", "write_pos", noCache),
      "hbParams.codebook_bits": 0,
      packing: packingCodes.nibble,
    },
    (block) => {
      packSix(block);
      packHadamardQuantizeKv(block, tensor(7), sampleCache, 4, packingCodes.nibble);
    },
  ),
  sample(
    "MAHadamardQuantizeKvSeqArgs",
    {
      ...tensorsOf(encodeNames),
      ...cacheFields("params", "write_pos_start"),
      "params.codebook_bits": 15,
      "params.n_tokens": 16,
      "params.src_tok_offset": 17,
      packing: packingCodes.byte,
    },
    (block) => {
      packSix(block);
      packHadamardRun(block, sampleCache, 15, 16, 17, packingCodes.byte);
    },
  ),
  sample(
    "MAHadamardDequantizeKvArgs",
    {
      ...tensorsOf(["packedK", "normsK", "outK", "packedV", "normsV", "outV"]),
      ...cacheFields("params", "read_pos_start"),
      "params.codebook_bits": 15,
      "params.n_tokens": 16,
      "params.out_dtype": 18,
      packing: packingCodes.dense,
    },
    (block) => {
      packSix(block);
      packHadamardRun(block, sampleCache, 15, 16, 18, packingCodes.dense);
    },
  ),
];

function dispatchSample(): LayoutSample {
  const bindings = packBindings([]);
  const { bytes } = packKernelDispatch({
    pipeline: 71,
    form: "threads",
    grid: [72, 73, 74],
    threadsPerThreadgroup: [75, 76, 77],
    bindingCount: 78,
    bindings,
  });
  const extents = { "grid[0]": 72, "grid[1]": 73, "grid[2]": 74 };
  const threads = { "threadsPerThreadgroup[0]": 75, "threadsPerThreadgroup[1]": 76, "threadsPerThreadgroup[2]": 77 };
  const rest = { pipeline: 71, form: 1, bindingCount: 78, bindings: bindings.address };
  return { struct: "MAKernelDispatch", bytes, fields: { ...rest, ...extents, ...threads } };
}

function bindingSample(): LayoutSample {
  const { bytes } = packBindings([
    { kind: "buffer", index: 81, buffer: 82, access: 3, offset: 2 ** 40 + 83, length: 2 ** 41 + 84 },
  ]);
  const fields = { index: 81, kind: 0, buffer: 82, access: 3, offset: 2 ** 40 + 83, length: 2 ** 41 + 84, bytes: 0 };
  return { struct: "MABinding", bytes: bytes.subarray(0, recordSizes.MABinding), fields };
}

function constantSample(): LayoutSample {
  const { bytes } = packConstants([{ index: 96, dtype: "u32", value: [0x0403_0201, 0x0807_0605] }]);
  const value = Array.from({ length: 32 }, (_, i) => [`value[${i}]`, i < 8 ? i + 1 : 0]);
  const fields = { index: 96, dtype: 6, components: 2, ...Object.fromEntries(value) };
  return { struct: "MAConstant", bytes, fields };
}

/** One of every struct that is packed for the library. */
export function layoutSamples(): readonly LayoutSample[] {
  return [...copySamples, ...attentionSamples, ...hadamardSamples, dispatchSample(), bindingSample(), constantSample()];
}
