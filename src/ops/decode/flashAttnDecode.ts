import {
  checkFlag,
  checkObject,
  checkOptionalU32,
  checkPositive,
  checkU32,
  checkWindow,
  refused,
} from "../../checks.ts";
import type { DeviceLifetime, PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { noRange, type Tensor, type TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAFlashAttnDecodeArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { batchOf, checkAxis, fromEnd, slotsOfSequence, useBatched, useTensor } from "../shapes.ts";
import { checkSameRows, type DecodeCache, type DecodeDType, type DecodeStream, useCache } from "./decodeCache.ts";

/** Arguments of {@link flashAttnDecode}. A tensor without the axis B has one sequence. */
export interface FlashAttnDecodeArgs {
  /** Queries, [B, H, nQ, D], nQ from 1 to 16: the last tokens of each sequence. */
  readonly q: Tensor<DecodeDType>;
  /**
   * Keys, [B, Hkv, capacity, D] in f32, f16 or bf16, or codes; H is a multiple of Hkv. With a `blockTable` pages,
   * [nPages, Hkv, pageTokens, D].
   */
  readonly k: DecodeCache;
  /**
   * Values, of the shape of `k`, in a format of their own. Left out where D is 576 (multi-head latent attention): V is
   * then the first 512 columns of K.
   */
  readonly v?: DecodeCache | undefined;
  /** Written: [B, H, nQ, D] (512 in place of 576), in a dtype of its own. Must overlap no input. */
  readonly out: Tensor<DecodeDType>;
  /**
   * Written: [B, H, nQ], the natural logarithm of each row's sum of exponentials, the sink's among them; -infinity
   * where it has none.
   */
  readonly lse?: Tensor<"f32"> | undefined;
  /** Keys of each sequence, those of its queries included: positions 0 to seqLen - 1. Either this or `seqLens`. */
  readonly seqLen?: number | undefined;
  /**
   * [B], the same for each sequence, as the device has it when it runs. Values that the cache has no room for are
   * clamped to those that it has.
   */
  readonly seqLens?: Tensor<"i32"> | undefined;
  /** True for a ring: slot = position mod capacity, with the last capacity positions. False unless given. */
  readonly isSliding?: boolean | undefined;
  /** [B, maxPages]: the page of each pageTokens positions. Numbers outside the pool are clamped to it. */
  readonly blockTable?: Tensor<"i32"> | undefined;
  /** Factor of the scores; 1 / sqrt(D) unless given. */
  readonly scale?: number | undefined;
  /** Keys that a row sees, its own position the last of them; all unless given. */
  readonly window?: number | undefined;
  /** Makes of a score s softcap * tanh(s / softcap). */
  readonly softcap?: number | undefined;
  /** [H]: one extra logit per head in the softmax, with no value; neither scaled nor soft-capped. */
  readonly sinks?: Tensor<"f32"> | undefined;
  /** [H]: adds slope * (j - p) to the score of key j for a row at position p. */
  readonly alibiSlopes?: Tensor<"f32"> | undefined;
  /**
   * Positions from the last of these keys to the last query row, by which p of `alibiSlopes` grows: that of a part of the
   * keys whose results `mergeAttention` joins. 0 unless given: the last key is that of the last row.
   */
  readonly alibiDistance?: number | undefined;
  /**
   * [B, nQ]: a bit mask for each row; bit c says whether it sees key seqLen - treeColumns + c. For these last keys it
   * replaces the causal order; all earlier keys are seen.
   */
  readonly treeMask?: Tensor<"u32"> | undefined;
  /** Keys that `treeMask` tells, at most 32; nQ unless given. */
  readonly treeColumns?: number | undefined;
  /** That of the encoding, for codes and D above 256; 1 unless given. */
  readonly scaleFactorD512?: number;
}

const argNames = new OptionNames<FlashAttnDecodeArgs>("flashAttnDecode", {
  q: true,
  k: true,
  v: true,
  out: true,
  lse: true,
  seqLen: true,
  seqLens: true,
  isSliding: true,
  blockTable: true,
  scale: true,
  window: true,
  softcap: true,
  sinks: true,
  alibiSlopes: true,
  alibiDistance: true,
  treeMask: true,
  treeColumns: true,
  scaleFactorD512: true,
});

/** The head size whose V is a part of K, and how much of it. */
const latentHeadDim = 576;
const latentValueDim = 512;

const block = new Block(structSizes.MAFlashAttnDecodeArgs);

/** Filled again by each call, so that a call allocates little. */
const params = {
  n_heads: 0,
  n_kv_heads: 0,
  head_dim: 0,
  n_q: 0,
  capacity: 0,
  seq_len: 0,
  is_sliding: 0,
  window: 0,
  page_tokens: 0,
  n_pages: 0,
  tree_columns: 0,
  alibi_distance: 0,
  scale: 0,
  softcap: 0,
  scale_factor_d512: 1,
};
const record = {
  q: noRange,
  k: noRange,
  normsK: undefined as TensorRange | undefined,
  v: undefined as TensorRange | undefined,
  normsV: undefined as TensorRange | undefined,
  out: noRange,
  lse: undefined as TensorRange | undefined,
  seqLens: undefined as TensorRange | undefined,
  blockTable: undefined as TensorRange | undefined,
  sinks: undefined as TensorRange | undefined,
  alibiSlopes: undefined as TensorRange | undefined,
  treeMask: undefined as TensorRange | undefined,
  params,
  batch: 0,
  packingK: 0,
  bitsK: 0,
  packingV: 0,
  bitsV: 0,
};

/**
 * Attention of the last one to 16 tokens of each sequence over its cache: row i of nQ is at position
 * p = seqLen - nQ + i and sees the keys j <= p, with a window of these only p - window < j.
 *
 * The cache may be dense or quantized, K and V each its own, linear, a ring or in pages, and is read as it lies: codes
 * are never decoded to memory. Computed in f32. A row that sees no key gives exactly 0. One dispatch where all keys that
 * rows see lie in one block of 256 positions (1,024 where products of matrices attend), two otherwise; with `seqLens`
 * that depends on capacity and window alone.
 *
 * The bits of a result depend on the row's own keys, values and positions alone, in their format: not on the batch, on
 * heads that share K and V, on the capacity, on pages or a ring, nor on how many rows a call has.
 *
 * Errors: `invalid-argument` for shapes that disagree, H not a multiple of Hkv, a window of 0 or above 2^30, a scale or
 * softcap that is no positive number, treeColumns above 32, an alibiDistance above 2^30 or without alibiSlopes, an
 * output that overlaps an input, codes at an odd offset, a pool of no pages; `overflow` when seqLen exceeds the capacity
 * of a cache that is no ring, or either 2^30 positions; `unsupported` for more than 16 rows, another head size, dtype or
 * format, codes or f32 with a D of 576, and a ring with pages; `out-of-memory` for scratch between two dispatches.
 * {@link flashAttnDecodeSupport} lists what there is.
 *
 * @example
 * // Three tokens are in the cache, the last of them asks.
 * flashAttnDecode(pass, { q, k: kCache, v: vCache, out, seqLen: 3 });
 */
export function flashAttnDecode(pass: Pass, args: FlashAttnDecodeArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: FlashAttnDecodeArgs): void {
  argNames.check(checkObject(args, "args"));
  const { k, v } = args;
  const q = useBatched(args.q, device, "q", 3, "[H, nQ, D]");
  const batch = batchOf(q, 3);
  const heads = fromEnd(q, 3);
  const rows = fromEnd(q, 2);
  const headDim = fromEnd(q, 1);
  const isLatent = headDim === latentHeadDim;
  const valueDim = isLatent ? latentValueDim : headDim;
  const out = useOut(args.out, device, q, valueDim);
  const givenLse = args.lse;
  const lse = givenLse === undefined ? undefined : useLse(givenLse, device, batch, heads, rows);
  const givenLengths = args.seqLens;
  const seqLens = givenLengths === undefined ? undefined : useVector(givenLengths, device, "seqLens", batch, "B");
  const givenSinks = args.sinks;
  const sinks = givenSinks === undefined ? undefined : useVector(givenSinks, device, "sinks", heads, "H");
  const givenSlopes = args.alibiSlopes;
  const alibiSlopes = givenSlopes === undefined ? undefined : useVector(givenSlopes, device, "alibiSlopes", heads, "H");
  const givenTable = args.blockTable;
  const blockTable = givenTable === undefined ? undefined : useBlockTable(givenTable, device, batch);
  const givenMask = args.treeMask;
  const treeMask = givenMask === undefined ? undefined : useTreeMask(givenMask, device, batch, rows);

  const axes = blockTable === undefined ? "B, Hkv, capacity" : "nPages, Hkv, pageTokens";
  const streamOfK = useCache(k, device, "k", headDim, axes);
  if (isLatent && v !== undefined) {
    throw refused("v", `given with a D of ${headDim}, where V is the first ${valueDim} columns of K`);
  }
  const streamOfV = isLatent ? undefined : useValues(v, device, streamOfK, headDim, axes);
  const slots = fromEnd(streamOfK.rows, 2);
  const { shape } = streamOfK.rows;
  const planes = shape.length === 4 ? (shape[0] as number) : 1;
  if (blockTable === undefined) checkAxis("k", "B", planes, batch, "q");
  const isSliding = checkFlag(args.isSliding, "isSliding");
  const givenLength = args.seqLen;
  if ((givenLength === undefined) === (seqLens === undefined)) {
    throw refused("seqLen", "expected either seqLen, or seqLens, the lengths in a tensor");
  }
  const seqLen = givenLength === undefined ? 0 : checkU32(givenLength, "seqLen");
  const givenWindow = args.window;
  const window = givenWindow === undefined ? 0 : checkWindow(givenWindow);
  const softcap = args.softcap === undefined ? 0 : checkPositive(args.softcap, "softcap");
  const scale = args.scale === undefined ? 1 / Math.sqrt(headDim) : checkPositive(args.scale, "scale");
  const scaleFactor = args.scaleFactorD512 === undefined ? 1 : checkPositive(args.scaleFactorD512, "scaleFactorD512");
  const treeColumns = checkOptionalU32(args.treeColumns, treeMask === undefined ? 0 : rows, "treeColumns");
  const capacity = slotsOfSequence(slots, blockTable);
  const alibiDistance = checkOptionalU32(args.alibiDistance, 0, "alibiDistance");
  if (args.alibiDistance !== undefined && alibiSlopes === undefined)
    throw refused("alibiDistance", "given without alibiSlopes, which alone ask for it");

  // From here on no code of the caller runs, so that no other call can fill the record.
  params.n_heads = heads;
  params.n_kv_heads = fromEnd(streamOfK.rows, 3);
  params.head_dim = headDim;
  params.n_q = rows;
  params.capacity = capacity;
  params.seq_len = seqLen;
  params.is_sliding = isSliding;
  params.window = window;
  params.page_tokens = blockTable === undefined ? 0 : slots;
  params.n_pages = blockTable === undefined ? 0 : planes;
  params.tree_columns = treeColumns;
  params.alibi_distance = alibiDistance;
  params.scale = scale;
  params.softcap = softcap;
  params.scale_factor_d512 = scaleFactor;
  record.q = q;
  record.k = streamOfK.rows;
  record.normsK = streamOfK.norms;
  record.v = streamOfV?.rows;
  record.normsV = streamOfV?.norms;
  record.out = out;
  record.lse = lse;
  record.seqLens = seqLens;
  record.blockTable = blockTable;
  record.sinks = sinks;
  record.alibiSlopes = alibiSlopes;
  record.treeMask = treeMask;
  record.batch = batch;
  record.packingK = streamOfK.packingCode;
  record.bitsK = streamOfK.bits;
  record.packingV = streamOfV?.packingCode ?? 0;
  record.bitsV = streamOfV?.bits ?? 0;
  packMAFlashAttnDecodeArgs(block, 0, record);
  checkStatus(native, native.ma_flash_attn_decode(handle, block.address));
}

function useOut(value: unknown, device: DeviceLifetime, q: TensorRange, valueDim: number): TensorRange {
  const range = useBatched(value, device, "out", 3, "[H, nQ, D]");
  checkAxis("out", "B", batchOf(range, 3), batchOf(q, 3), "q");
  checkAxis("out", "H", fromEnd(range, 3), fromEnd(q, 3), "q");
  checkAxis("out", "nQ", fromEnd(range, 2), fromEnd(q, 2), "q");
  checkAxis("out", "D", fromEnd(range, 1), valueDim, valueDim === fromEnd(q, 1) ? "q" : "V, the first columns of K");
  return range;
}

function useValues(
  value: unknown,
  device: DeviceLifetime,
  keys: DecodeStream,
  headDim: number,
  axes: string,
): DecodeStream {
  const stream = useCache(value, device, "v", headDim, axes);
  checkSameRows("v", stream.rows.shape, "k", keys.rows.shape);
  return stream;
}

function useLse(value: unknown, device: DeviceLifetime, batch: number, heads: number, rows: number): TensorRange {
  const range = useBatched(value, device, "lse", 2, "[H, nQ]");
  checkAxis("lse", "B", batchOf(range, 2), batch, "q");
  checkAxis("lse", "H", fromEnd(range, 2), heads, "q");
  checkAxis("lse", "nQ", fromEnd(range, 1), rows, "q");
  return range;
}

function useVector(value: unknown, device: DeviceLifetime, name: string, length: number, axis: string): TensorRange {
  const range = useTensor(value, device, name, 1, `[${axis}]`);
  checkAxis(name, axis, fromEnd(range, 1), length, "q");
  return range;
}

function useBlockTable(value: unknown, device: DeviceLifetime, batch: number): TensorRange {
  const range = useBatched(value, device, "blockTable", 1, "[maxPages]");
  checkAxis("blockTable", "B", batchOf(range, 1), batch, "q");
  return range;
}

function useTreeMask(value: unknown, device: DeviceLifetime, batch: number, rows: number): TensorRange {
  const range = useBatched(value, device, "treeMask", 1, "[nQ]");
  checkAxis("treeMask", "B", batchOf(range, 1), batch, "q");
  checkAxis("treeMask", "nQ", fromEnd(range, 1), rows, "q");
  return range;
}
