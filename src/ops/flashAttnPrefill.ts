import { checkFlag, checkObject, checkOptionalU32, display, refused } from "../checks.ts";
import type { MetalAttentionError } from "../errors.ts";
import { Block } from "../ffi/block.ts";
import {
  type AttentionStrides,
  type FlashAttnPrefillRecord,
  packFlashAttnPrefill,
  structSizes,
} from "../ffi/layout.ts";
import type { Native } from "../ffi/library.ts";
import { nativeError } from "../ffi/status.ts";
import type { DeviceLifetime } from "../lifetime.ts";
import { Pass } from "../pass.ts";
import { Tensor, type TensorRange } from "../tensor.ts";
import { checkAxis, useTensor } from "./shapes.ts";

/** Order of the axes: `head-major` [B, H, L, D] or `sequence-major` [B, L, H, D]. */
export type AttentionLayout = "head-major" | "sequence-major";

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
  /** [qL, kL] for all batches and heads, or [B, H, qL, kL], where B or H may be 1 to be shared. */
  readonly mask?: Tensor;
  /** Class of each (query tile, key tile) of `mask`: 0 blocked, 1 mixed, 2 nothing masked. */
  readonly tileClasses?: Tensor;
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
  /** Order of the axes of q, k, v and out; `head-major` unless given. */
  readonly layout?: AttentionLayout;
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
 * dispatch for all batches and heads. Sums are in f32.
 *
 * Supported: bf16, D = 256, without a mask; causal or not, grouped-query,
 * any lengths, any batch.
 *
 * A prompt may be done in chunks: give `k` and `v` as slots with room to
 * spare, `seqLenK` as the keys written so far, and `qOffsetInK` as those
 * before this chunk.
 *
 * Errors: `invalid-argument` for shapes that disagree, H not a multiple of
 * Hkv, a scale that is no positive number, qOffsetInK + qL > kL, or an output
 * that overlaps an input; `unsupported` for another dtype or head size, with
 * those supported.
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
  const sequenceMajor = checkLayout(args.layout);
  const queryAxes = sequenceMajor ? "[B, qL, H, D]" : "[B, H, qL, D]";
  const keyAxes = sequenceMajor ? "[B, kvCapacity, Hkv, D]" : "[B, Hkv, kvCapacity, D]";
  const q = useTensor(args.q, device, "q", 4, queryAxes);
  const k = useTensor(args.k, device, "k", 4, keyAxes);
  const v = useTensor(args.v, device, "v", 4, keyAxes);
  const out = useTensor(args.out, device, "out", 4, queryAxes);
  const mask = useOptional(args.mask, device, "mask");
  const tileClasses = useOptional(args.tileClasses, device, "tileClasses");
  const causal = checkFlag(args.causal, "causal");
  const headAxis = sequenceMajor ? 2 : 1;
  const tokenAxis = sequenceMajor ? 1 : 2;
  const B = checkI32(q.shape[0] as number, "q", "B");
  const H = checkI32(q.shape[headAxis] as number, "q", "H");
  const qL = checkI32(q.shape[tokenAxis] as number, "q", "qL");
  const D = checkI32(q.shape[3] as number, "q", "D");
  const nKvHeads = k.shape[headAxis] as number;
  const capacity = checkI32(k.shape[tokenAxis] as number, "k", "kvCapacity");
  checkAxis("k", "B", k.shape[0] as number, B, "q");
  checkAxis("k", "D", k.shape[3] as number, D, "q");
  checkSameShape("v", v, k, "k");
  checkSameShape("out", out, q, "q");
  if (H % nKvHeads !== 0) throw refused("k", `${nKvHeads} key heads do not divide the ${H} query heads of q`);
  checkAxis(
    "kvCapacity",
    "the value",
    checkOptionalU32(args.kvCapacity, capacity, "kvCapacity"),
    capacity,
    "the shape of k",
  );
  const kL = checkOptionalU32(args.seqLenK, capacity, "seqLenK");
  if (kL > capacity) throw refused("seqLenK", `${kL} is beyond the kvCapacity ${capacity} of k and v`);
  const scale = checkScale(args.scale, D);
  const qLOff = checkI32(checkOptionalU32(args.qOffsetInK, 0, "qOffsetInK"), "qOffsetInK", "the offset");

  // From here on no code of the caller runs, so that no other call can fill the record.
  const { params } = record;
  params.B = B;
  params.H = H;
  params.D = D;
  params.qL = qL;
  params.kL = kL;
  params.gqaFactor = H / nKvHeads;
  params.scale = scale;
  params.qLOff = qLOff;
  record.nKvHeads = nKvHeads;
  record.causal = causal;
  record.q = q;
  record.k = k;
  record.v = v;
  record.out = out;
  record.mask = mask;
  record.tileClasses = tileClasses;
  setTiles(D < 512 ? 32 : 8, D < 512 ? 16 : 8);
  setStrides(params.qStrides, q.shape, headAxis, tokenAxis);
  setStrides(params.kStrides, k.shape, headAxis, tokenAxis);
  setStrides(params.vStrides, v.shape, headAxis, tokenAxis);
  setStrides(params.oStrides, out.shape, headAxis, tokenAxis);
  if (mask !== undefined) setMaskStrides(mask);

  packFlashAttnPrefill(block, record);
  const status = native.ma_flash_attn_prefill(handle, block.address);
  if (status !== 0) throw attentionError(native, status, args.seqLenK === undefined ? "k" : "seqLenK");
}

/** The library's error, with its numbers put down to the caller's arguments; kL comes from `keyLength`. */
function attentionError(native: Native, status: number, keyLength: string): MetalAttentionError {
  return nativeError(native, status, (message) =>
    message
      .replace(/^(ma_\w+: )(?=(?:B|H|D|qL) is )/, "$1q: ")
      .replace(/^(ma_\w+: )(?=kL is )/, `$1${keyLength}: `)
      .replaceAll("qL_off", "qOffsetInK"),
  );
}

function useOptional(value: unknown, device: DeviceLifetime, argument: string): TensorRange | undefined {
  return value === undefined ? undefined : Tensor.use(value, device, argument);
}

/** Whether the axes are in the order [B, L, H, D]. */
function checkLayout(layout: unknown): boolean {
  if (layout === undefined || layout === "head-major") return false;
  if (layout === "sequence-major") return true;
  throw refused("layout", `expected "head-major" or "sequence-major", got ${display(layout)}`);
}

/** The kernel's parameters are signed 32-bit. */
function checkI32(value: number, argument: string, what: string): number {
  if (value > 0x7fff_ffff) throw refused(argument, `${what} ${value} exceeds ${0x7fff_ffff}`, "overflow");
  return value;
}

function checkScale(scale: unknown, D: number): number {
  if (scale === undefined) return 1 / Math.sqrt(D);
  if (typeof scale !== "number" || !(scale > 0) || !Number.isFinite(Math.fround(scale))) {
    throw refused("scale", `expected a positive, finite number, got ${display(scale)}`);
  }
  return scale;
}

function checkSameShape(argument: string, { shape }: TensorRange, other: TensorRange, where: string): void {
  for (let axis = 0; axis < 4; axis++) {
    if (shape[axis] !== other.shape[axis]) {
      throw refused(argument, `expected the shape [${other.shape}] of ${where}, got [${shape}]`);
    }
  }
}

/** Counts whole and partial tiles of BQ query rows by BK keys. */
function setTiles(BQ: number, BK: number): void {
  const { params } = record;
  params.NQ = Math.ceil(params.qL / BQ);
  params.NK = Math.ceil(params.kL / BK);
  params.NQAligned = Math.floor(params.qL / BQ);
  params.NKAligned = Math.floor(params.kL / BK);
  params.qLRem = params.qL % BQ;
  params.kLRem = params.kL % BK;
}

/** Strides of a dense tensor of 4 axes, the last of them D. */
function setStrides(strides: AttentionStrides, shape: readonly number[], headAxis: 1 | 2, tokenAxis: 1 | 2): void {
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
