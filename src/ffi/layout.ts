import type { Block } from "./block.ts";

// Packers of the operations' argument structs (metal_attention.h), by 32-bit
// word; those of the quantised cache are in hadamardLayout.ts. The layout tests
// compare each with the compiled library's own layout.

/** A byte range of a buffer as `MATensor` holds it; 64-bit fields in two halves. */
export interface TensorRecord {
  readonly buffer: number;
  readonly dtype: number;
  readonly offsetLow: number;
  readonly offsetHigh: number;
  readonly lengthLow: number;
  readonly lengthHigh: number;
}

/** Bytes of each argument struct. */
export const structSizes = {
  MATensor: 24,
  MAKvCacheCopyArgs: 72,
  MAKvCacheCopyBatchArgs: 112,
  MAKvCacheCopySeqArgs: 120,
  MAKvCacheCopyHeadMajorArgs: 80,
  MAHadamardQuantizeKvArgs: 232,
  MAHadamardQuantizeKvSeqArgs: 184,
  MAHadamardDequantizeKvArgs: 184,
  MAFlashAttnPrefillArgs: 344,
  MABuildMaskArgs: 40,
  MAClassifyMaskTilesArgs: 104,
} as const;

const tensorWords = structSizes.MATensor / 4;

/** Packs `MATensor` at word `at`; undefined is the absent tensor. */
export function packTensor(words: Uint32Array, at: number, tensor: TensorRecord | undefined): void {
  if (tensor === undefined) {
    for (let i = 0; i < tensorWords; i++) words[at + i] = 0;
    return;
  }
  words[at] = tensor.buffer;
  words[at + 1] = tensor.dtype;
  words[at + 2] = tensor.offsetLow;
  words[at + 3] = tensor.offsetHigh;
  words[at + 4] = tensor.lengthLow;
  words[at + 5] = tensor.lengthHigh;
}

/** Packs `MAKvCacheCopyArgs`. */
export function packKvCacheCopy(
  { u32 }: Block,
  src: TensorRecord,
  cache: TensorRecord,
  writePos: number,
  rowSize: number,
  nNew: number,
  cacheCap: number,
  isSliding: number,
): void {
  packTensor(u32, 0, src);
  packTensor(u32, 6, cache);
  u32[12] = writePos;
  u32[13] = rowSize;
  u32[14] = nNew;
  u32[15] = cacheCap;
  u32[16] = isSliding;
}

/** Packs the four tensors that `MAKvCacheCopyBatchArgs` and `MAKvCacheCopySeqArgs` begin with. */
export function packStreams(
  { u32 }: Block,
  srcK: TensorRecord,
  cacheK: TensorRecord,
  srcV: TensorRecord | undefined,
  cacheV: TensorRecord | undefined,
): void {
  packTensor(u32, 0, srcK);
  packTensor(u32, 6, cacheK);
  packTensor(u32, 12, srcV);
  packTensor(u32, 18, cacheV);
}

/** Packs the parameters of `MAKvCacheCopyBatchArgs`. */
export function packKvCacheCopyBatch(
  { u32 }: Block,
  nHeads: number,
  headDim: number,
  capacity: number,
  seqPos: number,
): void {
  u32[24] = nHeads;
  u32[25] = headDim;
  u32[26] = capacity;
  u32[27] = seqPos;
}

/** Packs the parameters of `MAKvCacheCopySeqArgs`. */
export function packKvCacheCopySeq(
  { u32 }: Block,
  nHeads: number,
  headDim: number,
  capacity: number,
  seqPosStart: number,
  nTokens: number,
  srcTokOffset: number,
): void {
  u32[24] = nHeads;
  u32[25] = headDim;
  u32[26] = capacity;
  u32[27] = seqPosStart;
  u32[28] = nTokens;
  u32[29] = srcTokOffset;
}

/** Packs `MAKvCacheCopyHeadMajorArgs`. */
export function packKvCacheCopyHeadMajor(
  { u32 }: Block,
  src: TensorRecord,
  cache: TensorRecord,
  nHeads: number,
  headDim: number,
  capacity: number,
  seqPosStart: number,
  nTokens: number,
  srcTokOffset: number,
  srcSeqLen: number,
): void {
  packTensor(u32, 0, src);
  packTensor(u32, 6, cache);
  u32[12] = nHeads;
  u32[13] = headDim;
  u32[14] = capacity;
  u32[15] = seqPosStart;
  u32[16] = nTokens;
  u32[17] = srcTokOffset;
  u32[18] = srcSeqLen;
}

/** Strides of one attention tensor in elements; the innermost is 1. */
export interface AttentionStrides {
  batch: number;
  head: number;
  /** From one token (for a mask: one query row) to the next. */
  token: number;
}

/** `AttnParams` as numbers, field by field. */
export interface AttentionParams {
  B: number;
  H: number;
  D: number;
  qL: number;
  kL: number;
  gqaFactor: number;
  scale: number;
  softcapping: number;
  NQ: number;
  NK: number;
  NQAligned: number;
  NKAligned: number;
  qLRem: number;
  kLRem: number;
  qLOff: number;
  readonly qStrides: AttentionStrides;
  readonly kStrides: AttentionStrides;
  readonly vStrides: AttentionStrides;
  readonly oStrides: AttentionStrides;
}

/** What `MAFlashAttnPrefillArgs` holds. */
export interface FlashAttnPrefillRecord {
  q: TensorRecord;
  k: TensorRecord;
  v: TensorRecord;
  out: TensorRecord;
  mask: TensorRecord | undefined;
  tileClasses: TensorRecord | undefined;
  readonly params: AttentionParams;
  readonly maskStrides: AttentionStrides;
  nKvHeads: number;
  causal: number;
}

/** Packs `MAFlashAttnPrefillArgs`. */
export function packFlashAttnPrefill(block: Block, record: FlashAttnPrefillRecord): void {
  const { u32, f32 } = block;
  const { params } = record;
  packTensor(u32, 0, record.q);
  packTensor(u32, 6, record.k);
  packTensor(u32, 12, record.v);
  packTensor(u32, 18, record.out);
  packTensor(u32, 24, record.mask);
  packTensor(u32, 30, record.tileClasses);
  u32[36] = params.B;
  u32[37] = params.H;
  u32[38] = params.D;
  u32[39] = params.qL;
  u32[40] = params.kL;
  u32[41] = params.gqaFactor;
  f32[42] = params.scale;
  f32[43] = params.softcapping;
  u32[44] = params.NQ;
  u32[45] = params.NK;
  u32[46] = params.NQAligned;
  u32[47] = params.NKAligned;
  u32[48] = params.qLRem;
  u32[49] = params.kLRem;
  u32[50] = params.qLOff;
  packStrides(block, 52, params.qStrides);
  packStrides(block, 58, params.kStrides);
  packStrides(block, 64, params.vStrides);
  packStrides(block, 70, params.oStrides);
  packStrides(block, 76, record.maskStrides);
  u32[82] = record.nKvHeads;
  u32[83] = record.causal;
}

function packStrides(block: Block, at: number, strides: AttentionStrides): void {
  block.setU64(at, strides.batch);
  block.setU64(at + 2, strides.head);
  block.setU64(at + 4, strides.token);
}

/** Packs `MABuildMaskArgs`. */
export function packBuildMask(
  { u32 }: Block,
  mask: TensorRecord,
  qL: number,
  kL: number,
  qLOff: number,
  window: number,
): void {
  packTensor(u32, 0, mask);
  u32[6] = qL;
  u32[7] = kL;
  u32[8] = qLOff;
  u32[9] = window;
}

/** What `MAClassifyMaskTilesArgs` holds. */
export interface ClassifyMaskTilesRecord {
  readonly mask: TensorRecord;
  readonly tileClasses: TensorRecord;
  readonly B: number;
  readonly H: number;
  readonly qL: number;
  readonly kL: number;
  readonly NQ: number;
  readonly NK: number;
  readonly strides: AttentionStrides;
  readonly headDim: number;
}

/** Packs `MAClassifyMaskTilesArgs`. */
export function packClassifyMaskTiles(block: Block, record: ClassifyMaskTilesRecord): void {
  const { u32 } = block;
  packTensor(u32, 0, record.mask);
  packTensor(u32, 6, record.tileClasses);
  u32[12] = record.B;
  u32[13] = record.H;
  u32[14] = record.qL;
  u32[15] = record.kL;
  u32[16] = record.NQ;
  u32[17] = record.NK;
  packStrides(block, 18, record.strides);
  u32[24] = record.headDim;
}
