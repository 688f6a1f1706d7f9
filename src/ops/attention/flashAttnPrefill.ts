import { checkFlag, checkObject, checkOptionalU32, checkU32, display, refused } from "../../checks.ts";
import { Pass } from "../../device/pass.ts";
import { Tensor, type TensorRange } from "../../device/tensor.ts";
import type { MetalAttentionError } from "../../errors.ts";
import { Block } from "../../ffi/block.ts";
import {
  type FlashAttnPrefillRecord,
  type AttentionStrides as MutableStrides,
  packFlashAttnPrefill,
  structSizes,
} from "../../ffi/layout.ts";
import type { Native } from "../../ffi/library.ts";
import { nativeError } from "../../ffi/status.ts";
import { TileClasses } from "../masks/tileClasses.ts";
import { checkAxis, checkI32 } from "../shapes.ts";
import { type AttentionLayout, type AttentionStrides, checkLayout, type StridedLayout } from "./attentionLayout.ts";
import { attentionTiles } from "./attentionTiles.ts";

/** Arguments of {@link flashAttnPrefill}. Shapes are written head-major; see `layout`. */
export interface FlashAttnPrefillArgs {
  /** Queries, [B, H, qL, D]. */
  readonly q: Tensor;
  /** Keys, [B, Hkv, kvCapacity, D]; H is a multiple of Hkv (grouped-query attention). */
  readonly k: Tensor;
  /** Values, of the same shape as `k`. */
  readonly v: Tensor;
  /** Written: [B, H, qL, D]. Must overlap no input. */
  readonly out: Tensor;
  /**
   * [qL, kL] for all batches and heads, or [B, H, qL, kL], where B or H may be
   * 1 to be shared. In the dtype of q it is added to the scores (0 attends,
   * -infinity blocks, finite biases are allowed); of bool, true attends.
   */
  readonly mask?: Tensor;
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
  /** Order of the axes of q, k, v and out, or where everything lies; `head-major` unless given. */
  readonly layout?: AttentionLayout | StridedLayout;
}

const block = new Block(structSizes.MAFlashAttnPrefillArgs);
const none: TensorRange = {
  buffer: 0,
  dtype: 0,
  offsetLow: 0,
  offsetHigh: 0,
  lengthLow: 0,
  lengthHigh: 0,
  shape: [],
};

/** Filled again by each call, so that a call allocates nothing. */
const record: FlashAttnPrefillRecord = {
  q: none,
  k: none,
  v: none,
  out: none,
  mask: undefined,
  tileClasses: undefined,
  params: {
    B: 0,
    H: 0,
    D: 0,
    qL: 0,
    kL: 0,
    gqaFactor: 0,
    scale: 0,
    softcapping: 1,
    NQ: 0,
    NK: 0,
    NQAligned: 0,
    NKAligned: 0,
    qLRem: 0,
    kLRem: 0,
    qLOff: 0,
    qStrides: { batch: 0, head: 0, token: 0 },
    kStrides: { batch: 0, head: 0, token: 0 },
    vStrides: { batch: 0, head: 0, token: 0 },
    oStrides: { batch: 0, head: 0, token: 0 },
  },
  maskStrides: { batch: 0, head: 0, token: 0 },
  nKvHeads: 0,
  causal: 0,
};

/**
 * Attention over whole sequences: out = softmax(scale * q k^T + mask) v, one
 * dispatch for all batches and heads. Sums are in f32. A query that may attend
 * nothing gives exactly 0.
 *
 * Supported: bf16 and f16; D = 64, 80, 96, 112, 128, 192, 256, 512; without a
 * mask, with an additive or a bool one, causal or not; grouped queries, any
 * lengths, any batch. {@link flashAttnPrefillSupport} has all of it as a table.
 *
 * A prompt may be done in chunks: give `k` and `v` as slots with room to
 * spare, `seqLenK` as the keys written so far, and `qOffsetInK` as those
 * before this chunk. The result has the bits of the prompt done at once.
 *
 * Errors: `invalid-argument` for shapes that disagree, H not a multiple of
 * Hkv, a scale that is no positive number, qOffsetInK + qL > kL where qOffsetInK
 * is above 0 (from 0 on, queries may outnumber keys), an output that overlaps an
 * input, or tile classes without a mask or of another one;
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
  checkObject(args, "args");
  const layout = checkLayout(args.layout);
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
  const givenScale = args.scale;
  const scale = givenScale === undefined ? 0 : checkScale(givenScale);
  const qLOff = checkI32(checkOptionalU32(args.qOffsetInK, 0, "qOffsetInK"), "qOffsetInK", "the offset");

  // From here on no code of the caller runs, so that no other call can fill the record.
  record.q = q;
  record.k = k;
  record.v = v;
  record.out = out;
  record.mask = mask;
  record.causal = causal;
  const { params } = record;
  if (typeof layout === "boolean") fillDense(q, k, v, out, layout, kvCapacity, seqLenK);
  else fillStrided(layout, kvCapacity, seqLenK);
  const { D, H } = params;
  if (H % record.nKvHeads !== 0) {
    const argument = typeof layout === "boolean" ? "k" : "layout.kvHeads";
    throw refused(argument, `${record.nKvHeads} key heads do not divide the ${H} query heads of q`);
  }
  params.gqaFactor = H / record.nKvHeads;
  params.scale = givenScale === undefined ? 1 / Math.sqrt(D) : scale;
  params.qLOff = qLOff;
  setTiles();
  if (mask !== undefined) {
    const strides = typeof layout === "boolean" ? undefined : layout.mask;
    if (strides === undefined) setMaskStrides(mask);
    else copyStrides(record.maskStrides, strides);
    if (strides !== undefined && tileClasses !== undefined) {
      throw refused("tileClasses", "classify the tiles of masks without strides of their own; leave out layout.mask");
    }
  }
  record.tileClasses = undefined;
  if (tileClasses !== undefined) {
    if (mask === undefined) throw refused("tileClasses", "given without the mask that they classify");
    record.tileClasses = TileClasses.rangeFor(tileClasses, mask, D, "tileClasses");
  }

  packFlashAttnPrefill(block, record);
  const status = native.ma_flash_attn_prefill(handle, block.address);
  if (status !== 0) throw attentionError(native, status, seqLenK === undefined ? "k" : "seqLenK");
}

/** Extents and strides from the shapes of the tensors. */
function fillDense(
  q: TensorRange,
  k: TensorRange,
  v: TensorRange,
  out: TensorRange,
  sequenceMajor: boolean,
  kvCapacity: number | undefined,
  seqLenK: number | undefined,
): void {
  const { params } = record;
  const queryAxes = sequenceMajor ? "[B, qL, H, D]" : "[B, H, qL, D]";
  const keyAxes = sequenceMajor ? "[B, kvCapacity, Hkv, D]" : "[B, Hkv, kvCapacity, D]";
  checkRank("q", q, queryAxes);
  checkRank("k", k, keyAxes);
  checkRank("v", v, keyAxes);
  checkRank("out", out, queryAxes);
  const headAxis = sequenceMajor ? 2 : 1;
  const tokenAxis = sequenceMajor ? 1 : 2;
  params.B = checkI32(q.shape[0] as number, "q", "B");
  params.H = checkI32(q.shape[headAxis] as number, "q", "H");
  params.qL = checkI32(q.shape[tokenAxis] as number, "q", "qL");
  params.D = checkI32(q.shape[3] as number, "q", "D");
  record.nKvHeads = k.shape[headAxis] as number;
  const capacity = checkI32(k.shape[tokenAxis] as number, "k", "kvCapacity");
  checkAxis("k", "B", k.shape[0] as number, params.B, "q");
  checkAxis("k", "D", k.shape[3] as number, params.D, "q");
  checkSameShape("v", v, k, "k");
  checkSameShape("out", out, q, "q");
  if (kvCapacity !== undefined) checkAxis("kvCapacity", "the value", kvCapacity, capacity, "the shape of k");
  params.kL = seqLenK ?? capacity;
  if (params.kL > capacity) throw refused("seqLenK", `${seqLenK} is beyond the kvCapacity ${capacity} of k and v`);
  setStrides(params.qStrides, q.shape, headAxis, tokenAxis);
  setStrides(params.kStrides, k.shape, headAxis, tokenAxis);
  setStrides(params.vStrides, v.shape, headAxis, tokenAxis);
  setStrides(params.oStrides, out.shape, headAxis, tokenAxis);
}

/** Extents and strides as the caller gave them; the library checks that they stay inside the tensors. */
function fillStrided(layout: StridedLayout, kvCapacity: number | undefined, seqLenK: number | undefined): void {
  const { params } = record;
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
  copyStrides(params.qStrides, layout.q);
  copyStrides(params.kStrides, layout.k);
  copyStrides(params.vStrides, layout.v);
  copyStrides(params.oStrides, layout.out);
}

/** Arguments behind the strides of AttnParams and AttnMaskParams. */
const stridesOf = { Q: "layout.q", K: "layout.k", V: "layout.v", O: "layout.out", M: "layout.mask" } as const;

/** The library's error, with its numbers put down to the caller's arguments; kL comes from `keyLength`. */
function attentionError(native: Native, status: number, keyLength: string): MetalAttentionError {
  return nativeError(native, status, (message) =>
    message
      .replace(/^(ma_\w+: )(?=(?:B|H|D|qL) is )/, "$1q: ")
      .replace(/^(ma_\w+: )(?=kL is )/, `$1${keyLength}: `)
      .replace(
        /^(ma_\w+: )([QKVOM])_strides/,
        (_, start: string, tensor: keyof typeof stridesOf) => start + stridesOf[tensor],
      )
      .replaceAll("qL_off", "qOffsetInK"),
  );
}

function checkScale(scale: unknown): number {
  if (typeof scale !== "number" || !(scale > 0) || !Number.isFinite(Math.fround(scale))) {
    throw refused("scale", `expected a positive, finite number, got ${display(scale)}`);
  }
  return scale;
}

function checkRank(argument: string, { shape }: TensorRange, axes: string): void {
  if (shape.length !== 4) throw refused(argument, `expected shape ${axes}, got [${shape}]`);
}

function checkSameShape(argument: string, { shape }: TensorRange, other: TensorRange, where: string): void {
  for (let axis = 0; axis < 4; axis++) {
    if (shape[axis] !== other.shape[axis]) {
      throw refused(argument, `expected the shape [${other.shape}] of ${where}, got [${shape}]`);
    }
  }
}

/** Counts whole and partial tiles. */
function setTiles(): void {
  const { params } = record;
  const { queryTile, keyTile } = attentionTiles(params.D);
  params.NQ = Math.ceil(params.qL / queryTile);
  params.NK = Math.ceil(params.kL / keyTile);
  params.NQAligned = Math.floor(params.qL / queryTile);
  params.NKAligned = Math.floor(params.kL / keyTile);
  params.qLRem = params.qL % queryTile;
  params.kLRem = params.kL % keyTile;
}

function copyStrides(to: MutableStrides, from: AttentionStrides): void {
  to.batch = from.batch;
  to.head = from.head;
  to.token = from.token;
}

/** Strides of a dense tensor of 4 axes, the last of them D. */
function setStrides(strides: MutableStrides, shape: readonly number[], headAxis: 1 | 2, tokenAxis: 1 | 2): void {
  const D = shape[3] as number;
  strides.batch = (shape[1] as number) * (shape[2] as number) * D;
  strides.head = headAxis === 2 ? D : (shape[tokenAxis] as number) * D;
  strides.token = tokenAxis === 2 ? D : (shape[headAxis] as number) * D;
}

/** Strides of [qL, kL] or [B, H, qL, kL]; 0 repeats the one plane for every batch or head. */
function setMaskStrides(mask: TensorRange): void {
  const { params, maskStrides } = record;
  const { shape } = mask;
  const rank = shape.length;
  const [batches, heads] = rank === 2 ? [1, 1] : (shape as readonly [number, number]);
  const fits = (batches === 1 || batches === params.B) && (heads === 1 || heads === params.H);
  if ((rank !== 2 && rank !== 4) || !fits || shape[rank - 2] !== params.qL || shape[rank - 1] !== params.kL) {
    const { B, H, qL, kL } = params;
    throw refused("mask", `expected shape [${qL}, ${kL}] or [${B}, ${H}, ${qL}, ${kL}], got [${shape}]`);
  }
  const plane = params.qL * params.kL;
  maskStrides.batch = batches === 1 ? 0 : heads * plane;
  maskStrides.head = heads === 1 ? 0 : plane;
  maskStrides.token = params.kL;
}
