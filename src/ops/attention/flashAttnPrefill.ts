import { checkFlag, checkObject, checkOptionalU32, checkPositive, checkU32, refused } from "../../checks.ts";
import type { DeviceLifetime, PassLifetime } from "../../device/lifetime.ts";
import { Pass } from "../../device/pass.ts";
import { isTensor, Tensor } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAFlashAttnPrefillArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { type DecodeCodes, type DecodeStream, useCache } from "../decode/decodeCache.ts";
import { TileClasses } from "../masks/tileClasses.ts";
import { checkI32 } from "../shapes.ts";
import { type AttentionLayout, checkAxisOrder, checkLayout, type StridedLayout } from "./attentionLayout.ts";
import { type AttentionOptionArgs, checkOptionShapes, useOptions } from "./attentionOptions.ts";
import type { AttentionDType } from "./flashAttnPrefillSupport.ts";
import {
  copyStrides,
  fillDense,
  fillKeys,
  fillOptions,
  fillPacked,
  fillStrided,
  maskParams,
  params,
  record,
  setMaskStrides,
} from "./prefillRecord.ts";

/**
 * Arguments of {@link flashAttnPrefill}. Shapes are written head-major; see
 * `layout`. A tensor without the axis B has one batch.
 */
export interface FlashAttnPrefillArgs extends AttentionOptionArgs {
  /** Queries, [B, H, qL, D]. */
  readonly q: Tensor<AttentionDType>;
  /**
   * Keys, [B, Hkv, kvCapacity, D], or Hadamard-quantized codes of them; H is a multiple of Hkv (grouped-query
   * attention).
   */
  readonly k: Tensor<AttentionDType> | DecodeCodes;
  /** Values, of the same shape as `k`, in a format of their own. */
  readonly v: Tensor<AttentionDType> | DecodeCodes;
  /** Written: [B, H, qL, D]. Must overlap no input. */
  readonly out: Tensor<AttentionDType>;
  /**
   * [qL, kL] for all batches and heads, or [B, H, qL, kL], where B or H may be
   * 1 to be shared. In the dtype of q it is added to the scores (0 attends,
   * -infinity blocks, finite biases are allowed); of bool, true attends.
   */
  readonly mask?: Tensor<AttentionDType | "bool"> | undefined;
  /** What {@link classifyMaskTiles} made of `mask`, to skip the tiles that it blocks. */
  readonly tileClasses?: TileClasses | undefined;
  /** Whether query i attends only keys j <= i + qOffsetInK. False unless given. */
  readonly causal?: boolean | undefined;
  /** Factor of the scores; 1 / sqrt(D) unless given. (Not to be multiplied by log2(e).) */
  readonly scale?: number | undefined;
  /** Position of query 0 among the keys, for a prompt that goes on; 0 unless given. */
  readonly qOffsetInK?: number | undefined;
  /** Keys in use, kL: those after it in `k` and `v` are not read. The whole axis unless given. */
  readonly seqLenK?: number | undefined;
  /** Slots per head in `k` and `v`. It follows from their shapes, and is checked against them when given. */
  readonly kvCapacity?: number | undefined;
  /** Order of the axes of q, k, v and out, or explicit strides; `head-major` unless given. */
  readonly layout?: AttentionLayout | StridedLayout | undefined;
  /** Order of the axes of q and out, where it differs from that of k and v: tokens over a head-major cache. */
  readonly qLayout?: AttentionLayout | undefined;
  /** Order of the axes of k and v. */
  readonly kvLayout?: AttentionLayout | undefined;
  /** That of the encoding, for codes and D above 256; 1 unless given. */
  readonly scaleFactorD512?: number;
}

const argNames = new OptionNames<FlashAttnPrefillArgs>("flashAttnPrefill", {
  q: true,
  k: true,
  v: true,
  out: true,
  mask: true,
  tileClasses: true,
  causal: true,
  scale: true,
  qOffsetInK: true,
  seqLenK: true,
  kvCapacity: true,
  layout: true,
  qLayout: true,
  kvLayout: true,
  scaleFactorD512: true,
  window: true,
  softcap: true,
  sinks: true,
  alibiSlopes: true,
  lse: true,
  seqLens: true,
  seqOffsets: true,
  isSliding: true,
  blockTable: true,
  tail: true,
});

const block = new Block(structSizes.MAFlashAttnPrefillArgs);
/**
 * Attention over whole sequences: out = softmax(scale * q k^T + mask) v, one
 * dispatch for all batches and heads, after one that decodes them for each of
 * K and V that are codes. Sums are in f32. A query that may attend nothing
 * gives exactly 0.
 *
 * {@link flashAttnPrefillSupport} lists the dtypes, head sizes and masks that
 * have kernels; causal or not, grouped queries, any lengths, any batch.
 *
 * A prompt may be done in chunks: give `k` and `v` as slots with room to
 * spare, `seqLenK` as the keys written so far, and `qOffsetInK` as those
 * before this chunk. The result has the bits of the prompt done at once.
 *
 * A window, a soft cap, sinks, ALiBi and logarithms of the rows' sums need no mask
 * and go with any. Sequences may have lengths of their own, `seqLens`, and be packed,
 * `seqOffsets`; keys may lie in a ring or in pages. Neither changes a bit of what
 * the same keys in a line give. The newest keys may lie apart from the others, `tail`,
 * as those that a cache has yet to quantize.
 *
 * Errors: `invalid-argument` for shapes that disagree, H not a multiple of
 * Hkv, a scale that is no positive number, qOffsetInK + qL > kL where qOffsetInK
 * is above 0 (from 0 on, queries may outnumber keys), an output that overlaps an
 * input, tile classes without a mask, of another one or of an earlier state of it,
 * a window of 0, above 2^30 or without `causal`, a softcap that is no positive number,
 * a tail without `causal`, a seqLenK beyond the slots of a cache that is no ring, codes
 * at an odd offset, a pool of no pages; `overflow` for more than 2^30 positions and
 * extents from 2^31 on; `unsupported` for another dtype or head size, with those
 * supported, for a mask with sequences, a ring, pages or a tail, a tail of several
 * sequences or with seqLens, a ring with pages, and pages where one of K and V alone
 * is codes; `buffer-too-small` for strides that leave a tensor; `out-of-memory` for
 * the scratch of codes.
 *
 * @example
 * using q = device.tensor("bf16", [1, 8, 128, 256]);
 * using k = device.tensor("bf16", [1, 4, 128, 256]);
 * using v = device.tensor("bf16", [1, 4, 128, 256]);
 * using out = device.tensor("bf16", [1, 8, 128, 256]);
 * flashAttnPrefill(pass, { q, k, v, out, causal: true });
 */
export function flashAttnPrefill(pass: Pass, args: FlashAttnPrefillArgs): void {
  Pass.encode(pass, args, encode);
}

function encode({ native, handle, device }: PassLifetime, args: FlashAttnPrefillArgs): void {
  argNames.check(checkObject(args, "args"));
  const layout = checkLayout(args.layout);
  const isStrided = typeof layout !== "boolean";
  const { qLayout } = args;
  const isTokenMajorQ = checkAxisOrder(qLayout, layout, "qLayout");
  const isTokenMajorKv = checkAxisOrder(args.kvLayout, layout, "kvLayout");
  const q = Tensor.use(args.q, device, "q");
  const k = useKeys(args.k, device, "k", q.shape.at(-1) as number);
  const v = useKeys(args.v, device, "v", q.shape.at(-1) as number);
  const out = Tensor.use(args.out, device, "out");
  const givenMask = args.mask;
  const mask = givenMask === undefined ? undefined : Tensor.use(givenMask, device, "mask");
  const givenClasses = args.tileClasses;
  const tileClasses = givenClasses === undefined ? undefined : TileClasses.use(givenClasses, device, "tileClasses");
  const causal = checkFlag(args.causal, "causal");
  const givenCapacity = args.kvCapacity;
  const kvCapacity = givenCapacity === undefined ? undefined : checkU32(givenCapacity, "kvCapacity");
  const givenLength = args.seqLenK;
  const seqLenK = givenLength === undefined ? undefined : checkU32(givenLength, "seqLenK");
  if (seqLenK === 0) throw refused("seqLenK", "0 leaves no key to attend; it is at least 1");
  const givenScale = args.scale;
  const scale = givenScale === undefined ? 0 : checkPositive(givenScale, "scale");
  const qLOff = checkI32(checkOptionalU32(args.qOffsetInK, 0, "qOffsetInK"), "qOffsetInK", "the offset");
  const options = useOptions(args, device);
  const scaleFactor = args.scaleFactorD512 === undefined ? 1 : checkPositive(args.scaleFactorD512, "scaleFactorD512");

  // From here on no code of the caller runs, so that no other call can fill the record.
  record.q = q;
  record.out = out;
  record.mask = mask;
  record.causal = causal;
  fillOptions(options);
  fillKeys(k, v, scaleFactor);
  if (isStrided) fillStrided(layout, kvCapacity, seqLenK, options);
  else if (options.seqOffsets !== undefined) {
    if (qLayout !== undefined) throw refused("qLayout", "with seqOffsets q and out are [total, H, D]; leave it out");
    fillPacked(q, k, v, out, isTokenMajorKv, kvCapacity, seqLenK, options);
  } else fillDense(q, k, v, out, isTokenMajorQ, isTokenMajorKv, kvCapacity, seqLenK, options);
  const { D, H } = params;
  checkOptionShapes(options, { heads: H, kvHeads: record.nKvHeads, headDim: D, sequences: params.B });
  if (H % record.nKvHeads !== 0) {
    const argument = isStrided ? "layout.kvHeads" : "k";
    throw refused(argument, `${record.nKvHeads} key heads do not divide the ${H} query heads of q`);
  }
  params.scale = givenScale === undefined ? 1 / Math.sqrt(D) : scale;
  params.qL_off = qLOff;
  if (mask !== undefined) {
    const strides = isStrided ? layout.mask : undefined;
    if (strides === undefined) setMaskStrides(mask);
    else copyStrides(maskParams.M_strides, strides);
    if (strides !== undefined && tileClasses !== undefined) {
      throw refused("tileClasses", "classify the tiles of masks without strides of their own; leave out layout.mask");
    }
  }
  record.tileClasses = undefined;
  if (tileClasses !== undefined) {
    if (mask === undefined) throw refused("tileClasses", "given without the mask that they classify");
    record.tileClasses = TileClasses.rangeFor(tileClasses, mask, D, "tileClasses");
  }

  packMAFlashAttnPrefillArgs(block, 0, record);
  checkStatus(native, native.ma_flash_attn_prefill(handle, block.address));
}

/** Keys or values: a tensor, or codes. */
function useKeys(value: unknown, device: DeviceLifetime, name: "k" | "v", headDim: number): DecodeStream {
  if (isTensor(value) || typeof value !== "object" || value === null || !("packed" in value)) {
    return { rows: Tensor.use(value, device, name), norms: undefined, packingCode: 0, bits: 0 };
  }
  return useCache(value, device, name, headDim, "B, Hkv, kvCapacity");
}
