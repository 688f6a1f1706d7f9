import { checkFlag, checkObject, checkOptionalU32, checkPositive, checkU32, refused } from "../../checks.ts";
import { Pass } from "../../device/pass.ts";
import { noRange, Tensor, type TensorRange } from "../../device/tensor.ts";
import { Block } from "../../ffi/block.ts";
import { packMAFlashAttnPrefillArgs, structSizes } from "../../ffi/generated/structs.ts";
import { checkStatus } from "../../ffi/status.ts";
import { OptionNames } from "../../optionNames.ts";
import { TileClasses } from "../masks/tileClasses.ts";
import { batchOf, checkAxis, checkI32, checkPlanes, fromEnd } from "../shapes.ts";
import {
  type AttentionLayout,
  type AttentionStrides,
  checkAxisOrder,
  checkLayout,
  type StridedLayout,
} from "./attentionLayout.ts";
import type { AttentionDType } from "./flashAttnPrefillSupport.ts";

/**
 * Arguments of {@link flashAttnPrefill}. Shapes are written head-major; see
 * `layout`. A tensor without the axis B has one batch.
 */
export interface FlashAttnPrefillArgs {
  /** Queries, [B, H, qL, D]. */
  readonly q: Tensor<AttentionDType>;
  /** Keys, [B, Hkv, kvCapacity, D]; H is a multiple of Hkv (grouped-query attention). */
  readonly k: Tensor<AttentionDType>;
  /** Values, of the same shape as `k`. */
  readonly v: Tensor<AttentionDType>;
  /** Written: [B, H, qL, D]. Must overlap no input. */
  readonly out: Tensor<AttentionDType>;
  /**
   * [qL, kL] for all batches and heads, or [B, H, qL, kL], where B or H may be
   * 1 to be shared. In the dtype of q it is added to the scores (0 attends,
   * -infinity blocks, finite biases are allowed); of bool, true attends.
   */
  readonly mask?: Tensor<AttentionDType | "bool">;
  /** What {@link classifyMaskTiles} made of `mask`, to skip the tiles that it blocks. */
  readonly tileClasses?: TileClasses;
  /** Whether query i attends only keys j <= i + qOffsetInK. False unless given. */
  readonly causal?: boolean;
  /** Factor of the scores; 1 / sqrt(D) unless given. (Not to be multiplied by log2(e).) */
  readonly scale?: number;
  /** Position of query 0 among the keys, for a prompt that goes on; 0 unless given. */
  readonly qOffsetInK?: number;
  /** Keys in use, kL: those after it in `k` and `v` are not read. The whole axis unless given. */
  readonly seqLenK?: number;
  /** Slots per head in `k` and `v`. It follows from their shapes, and is checked against them when given. */
  readonly kvCapacity?: number;
  /** Order of the axes of q, k, v and out, or explicit strides; `head-major` unless given. */
  readonly layout?: AttentionLayout | StridedLayout;
  /** Order of the axes of q and out, where it differs from that of k and v: tokens over a head-major cache. */
  readonly qLayout?: AttentionLayout;
  /** Order of the axes of k and v. */
  readonly kvLayout?: AttentionLayout;
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
});

const block = new Block(structSizes.MAFlashAttnPrefillArgs);

/** Filled again by each call, so that a call allocates nothing. Strides are (batch, head, token). */
const params = {
  B: 0,
  H: 0,
  D: 0,
  qL: 0,
  kL: 0,
  scale: 0,
  softcapping: 1,
  qL_off: 0,
  Q_strides: [0, 0, 0] as Strides,
  K_strides: [0, 0, 0] as Strides,
  V_strides: [0, 0, 0] as Strides,
  O_strides: [0, 0, 0] as Strides,
};
const maskParams = { M_strides: [0, 0, 0] as Strides };
const record = {
  q: noRange,
  k: noRange,
  v: noRange,
  out: noRange,
  mask: undefined as TensorRange | undefined,
  tileClasses: undefined as TensorRange | undefined,
  params,
  maskParams,
  nKvHeads: 0,
  causal: 0,
};

type Strides = [batch: number, head: number, token: number];

/**
 * Attention over whole sequences: out = softmax(scale * q k^T + mask) v, one
 * dispatch for all batches and heads. Sums are in f32. A query that may attend
 * nothing gives exactly 0.
 *
 * {@link flashAttnPrefillSupport} lists the dtypes, head sizes and masks that
 * have kernels; causal or not, grouped queries, any lengths, any batch.
 *
 * A prompt may be done in chunks: give `k` and `v` as slots with room to
 * spare, `seqLenK` as the keys written so far, and `qOffsetInK` as those
 * before this chunk. The result has the bits of the prompt done at once.
 *
 * Errors: `invalid-argument` for shapes that disagree, H not a multiple of
 * Hkv, a scale that is no positive number, qOffsetInK + qL > kL where qOffsetInK
 * is above 0 (from 0 on, queries may outnumber keys), an output that overlaps an
 * input, or tile classes without a mask, of another one or of an earlier state of it;
 * `unsupported` for another dtype or head size, with those supported;
 * `buffer-too-small` for strides that leave a tensor.
 *
 * @example
 * using q = device.tensor("bf16", [1, 8, 128, 256]);
 * using k = device.tensor("bf16", [1, 4, 128, 256]);
 * using v = device.tensor("bf16", [1, 4, 128, 256]);
 * using out = device.tensor("bf16", [1, 8, 128, 256]);
 * flashAttnPrefill(pass, { q, k, v, out, causal: true });
 */
export function flashAttnPrefill(pass: Pass, args: FlashAttnPrefillArgs): void {
  const { native, handle, device } = Pass.use(pass);
  argNames.check(checkObject(args, "args"));
  const layout = checkLayout(args.layout);
  const isStrided = typeof layout !== "boolean";
  const isTokenMajorQ = checkAxisOrder(args.qLayout, layout, "qLayout");
  const isTokenMajorKv = checkAxisOrder(args.kvLayout, layout, "kvLayout");
  const q = Tensor.use(args.q, device, "q");
  const k = Tensor.use(args.k, device, "k");
  const v = Tensor.use(args.v, device, "v");
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

  // From here on no code of the caller runs, so that no other call can fill the record.
  record.q = q;
  record.k = k;
  record.v = v;
  record.out = out;
  record.mask = mask;
  record.causal = causal;
  if (isStrided) fillStrided(layout, kvCapacity, seqLenK);
  else fillDense(q, k, v, out, isTokenMajorQ, isTokenMajorKv, kvCapacity, seqLenK);
  const { D, H } = params;
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

/** Extents and strides from the shapes of the tensors. */
function fillDense(
  q: TensorRange,
  k: TensorRange,
  v: TensorRange,
  out: TensorRange,
  isTokenMajorQ: boolean,
  isTokenMajorKv: boolean,
  kvCapacity: number | undefined,
  seqLenK: number | undefined,
): void {
  const queryAxes = isTokenMajorQ ? "[B, qL, H, D]" : "[B, H, qL, D]";
  const keyAxes = isTokenMajorKv ? "[B, kvCapacity, Hkv, D]" : "[B, Hkv, kvCapacity, D]";
  checkPlanes(q, "q", queryAxes);
  checkPlanes(k, "k", keyAxes);
  checkPlanes(v, "v", keyAxes);
  checkPlanes(out, "out", queryAxes);
  params.B = checkExtent(batchOf(q, 3), "q", "B");
  params.H = checkExtent(fromEnd(q, isTokenMajorQ ? 2 : 3), "q", "H");
  params.qL = checkExtent(fromEnd(q, isTokenMajorQ ? 3 : 2), "q", "qL");
  params.D = checkExtent(fromEnd(q, 1), "q", "D");
  record.nKvHeads = checkExtent(fromEnd(k, isTokenMajorKv ? 2 : 3), "k", "Hkv");
  const capacity = checkExtent(fromEnd(k, isTokenMajorKv ? 3 : 2), "k", "kvCapacity");
  checkAxis("k", "B", batchOf(k, 3), params.B, "q");
  checkAxis("k", "D", fromEnd(k, 1), params.D, "q");
  checkSameShape("v", v, k, "k");
  checkSameShape("out", out, q, "q");
  if (kvCapacity !== undefined) checkAxis("kvCapacity", "the value", kvCapacity, capacity, "the shape of k");
  params.kL = seqLenK ?? capacity;
  if (params.kL > capacity) throw refused("seqLenK", `${seqLenK} is beyond the kvCapacity ${capacity} of k and v`);
  setStrides(params.Q_strides, q, isTokenMajorQ);
  setStrides(params.K_strides, k, isTokenMajorKv);
  setStrides(params.V_strides, v, isTokenMajorKv);
  setStrides(params.O_strides, out, isTokenMajorQ);
}

/** Extents and strides as the caller gave them; the library checks that they stay inside the tensors. */
function fillStrided(layout: StridedLayout, kvCapacity: number | undefined, seqLenK: number | undefined): void {
  params.B = layout.batch;
  params.H = layout.heads;
  params.qL = layout.seqLenQ;
  params.D = layout.headDim;
  record.nKvHeads = layout.kvHeads;
  const keys = seqLenK ?? kvCapacity;
  if (keys === undefined) throw refused("seqLenK", "missing; with strides, no shape gives the number of keys");
  if (kvCapacity !== undefined && keys > kvCapacity)
    throw refused("seqLenK", `${keys} is beyond kvCapacity ${kvCapacity}`);
  params.kL = checkI32(keys, seqLenK === undefined ? "kvCapacity" : "seqLenK", "kL");
  copyStrides(params.Q_strides, layout.q);
  copyStrides(params.K_strides, layout.k);
  copyStrides(params.V_strides, layout.v);
  copyStrides(params.O_strides, layout.out);
}

function checkExtent(extent: number, argument: string, axis: string): number {
  if (extent === 0) throw refused(argument, `${axis} is 0; it is at least 1`);
  return checkI32(extent, argument, axis);
}

function checkSameShape(argument: string, range: TensorRange, other: TensorRange, where: string): void {
  let same = batchOf(range, 3) === batchOf(other, 3);
  for (let axis = 1; axis <= 3; axis++) same &&= fromEnd(range, axis) === fromEnd(other, axis);
  if (!same) throw refused(argument, `expected the shape [${other.shape}] of ${where}, got [${range.shape}]`);
}

function copyStrides(to: Strides, { batch, head, token }: AttentionStrides): void {
  to[0] = batch;
  to[1] = head;
  to[2] = token;
}

/** Strides of a dense tensor, token-major or head-major. */
function setStrides(strides: Strides, range: TensorRange, isTokenMajor: boolean): void {
  const D = fromEnd(range, 1);
  const plane = fromEnd(range, 2) * D;
  strides[0] = fromEnd(range, 3) * plane;
  strides[1] = isTokenMajor ? D : plane;
  strides[2] = isTokenMajor ? plane : D;
}

/** Strides of [qL, kL] or [B, H, qL, kL]; 0 repeats the one plane for every batch or head. */
function setMaskStrides(mask: TensorRange): void {
  const { shape } = mask;
  const rank = shape.length;
  const [batches, heads] = rank === 2 ? [1, 1] : (shape as readonly [number, number]);
  const fits = (batches === 1 || batches === params.B) && (heads === 1 || heads === params.H);
  if ((rank !== 2 && rank !== 4) || !fits || shape[rank - 2] !== params.qL || shape[rank - 1] !== params.kL) {
    const { B, H, qL, kL } = params;
    throw refused("mask", `expected shape [${qL}, ${kL}] or [${B}, ${H}, ${qL}, ${kL}], got [${shape}]`);
  }
  const plane = params.qL * params.kL;
  const { M_strides } = maskParams;
  M_strides[0] = batches === 1 ? 0 : heads * plane;
  M_strides[1] = heads === 1 ? 0 : plane;
  M_strides[2] = params.kL;
}
