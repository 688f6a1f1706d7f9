// The arguments of a prefill for the C ABI, and how they follow from tensors, layout and options.

import { refused } from "../../checks.ts";
import { noRange, type TensorRange } from "../../device/tensor.ts";
import { checkSameRows, type DecodeStream } from "../decode/decodeCache.ts";
import { batchOf, checkAxis, checkExtent, checkI32, checkPlanes, fromEnd, slotsOfSequence } from "../shapes.ts";
import type { AttentionStrides, StridedLayout } from "./attentionLayout.ts";
import { type AttentionOptions, checkLseShape, type TailOption } from "./attentionOptions.ts";

/** @internal Filled again by each call, so that a call allocates nothing. Strides are (batch, head, token). */
export const params = {
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
/** @internal */
export const maskParams = { M_strides: [0, 0, 0] as Strides };
const optionParams = {
  window: 0,
  softcap: 0,
  capacity: 0,
  is_sliding: 0,
  page_tokens: 0,
  n_pages: 0,
  L_strides: [0, 0, 0] as Strides,
};
const codeParams = { capacity: 0, scale_factor_d512: 1 };
const tailParams = { slots: 0, tokens: 0, block: 0, quantized: 0 };
/** @internal */
export const record = {
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
  packedKeys: 0,
  lse: undefined as TensorRange | undefined,
  sinks: undefined as TensorRange | undefined,
  alibiSlopes: undefined as TensorRange | undefined,
  seqLens: undefined as TensorRange | undefined,
  seqOffsets: undefined as TensorRange | undefined,
  blockTable: undefined as TensorRange | undefined,
  options: optionParams,
  normsK: undefined as TensorRange | undefined,
  normsV: undefined as TensorRange | undefined,
  codes: codeParams,
  packingK: 0,
  bitsK: 0,
  packingV: 0,
  bitsV: 0,
  tailK: undefined as TensorRange | undefined,
  tailV: undefined as TensorRange | undefined,
  tail: tailParams,
};

type Strides = [batch: number, head: number, token: number];

/** @internal Extents and strides from the shapes of the tensors. */
export function fillDense(
  q: TensorRange,
  k: DecodeStream,
  v: DecodeStream,
  out: TensorRange,
  isTokenMajorQ: boolean,
  isTokenMajorKv: boolean,
  kvCapacity: number | undefined,
  seqLenK: number | undefined,
  options: AttentionOptions,
): void {
  const queryAxes = isTokenMajorQ ? "B, qL, H" : "B, H, qL";
  checkPlanes(q, "q", queryAxes, "D");
  checkPlanes(out, "out", queryAxes, "D");
  params.B = checkExtent(batchOf(q, 3), "q", "B");
  params.H = checkExtent(fromEnd(q, isTokenMajorQ ? 2 : 3), "q", "H");
  params.qL = checkExtent(fromEnd(q, isTokenMajorQ ? 3 : 2), "q", "qL");
  params.D = checkExtent(fromEnd(q, 1), "q", "D");
  fillCache(k, v, isTokenMajorKv, kvCapacity, seqLenK, options, "q");
  checkSameShape("out", out, q, "q");
  setStrides(params.Q_strides, q, isTokenMajorQ);
  setStrides(params.O_strides, out, isTokenMajorQ);
  if (options.lse !== undefined) {
    checkLseShape(options.lse, out.shape.slice(0, -1));
    const { H, qL } = params;
    fillStrides(optionParams.L_strides, H * qL, isTokenMajorQ ? 1 : qL, isTokenMajorQ ? H : 1);
  }
}

/** @internal The same of packed rows, [total, H, D]. */
export function fillPacked(
  q: TensorRange,
  k: DecodeStream,
  v: DecodeStream,
  out: TensorRange,
  isTokenMajorKv: boolean,
  kvCapacity: number | undefined,
  seqLenK: number | undefined,
  options: AttentionOptions,
): void {
  for (const [name, range] of [["q", q] as const, ["out", out] as const]) {
    if (range.shape.length !== 3)
      throw refused(name, `expected shape [total, H, D] with seqOffsets, got [${range.shape}]`);
  }
  params.B = checkExtent((options.seqOffsets?.shape[0] as number) - 1, "seqOffsets", "B, one less than its elements,");
  params.H = checkExtent(fromEnd(q, 2), "q", "H");
  params.qL = checkExtent(fromEnd(q, 3), "q", "total");
  params.D = checkExtent(fromEnd(q, 1), "q", "D");
  checkSameShape("out", out, q, "q");
  const { H, D } = params;
  fillStrides(params.Q_strides, 0, D, H * D);
  fillStrides(params.O_strides, 0, D, H * D);
  fillStrides(optionParams.L_strides, 0, 1, H);
  if (options.lse !== undefined) checkLseShape(options.lse, out.shape.slice(0, -1));
  const { rows } = k;
  if (rows.shape.length === 4) {
    fillCache(k, v, isTokenMajorKv, kvCapacity, seqLenK, options, "seqOffsets");
    return;
  }
  if (rows.shape.length !== 3) {
    throw refused("k", `expected [total, Hkv, D] or a cache with 4 axes, got [${rows.shape}]`);
  }
  if (k.bits > 0 || v.bits > 0) {
    throw refused(k.bits > 0 ? "k" : "v", "codes lie in a cache with 4 axes, not packed as q is", "unsupported");
  }
  checkAxis("k", "total", fromEnd(rows, 3), params.qL, "q");
  checkAxis("k", "D", fromEnd(rows, 1), D, "q");
  checkSameShape("v", v.rows, rows, "k");
  for (const [name, value] of [["kvCapacity", kvCapacity] as const, ["seqLenK", seqLenK] as const]) {
    if (value !== undefined) {
      throw refused(name, `${value} is given with packed keys, which have the lengths of the rows; leave it out`);
    }
  }
  record.packedKeys = 1;
  record.nKvHeads = checkExtent(fromEnd(rows, 2), "k", "Hkv");
  params.kL = params.qL;
  fillStrides(params.K_strides, 0, D, record.nKvHeads * D);
  fillStrides(params.V_strides, 0, D, record.nKvHeads * D);
}

/** Extents and strides of keys and values, linear, a ring or pages. */
function fillCache(
  streamOfK: DecodeStream,
  streamOfV: DecodeStream,
  isTokenMajor: boolean,
  kvCapacity: number | undefined,
  seqLenK: number | undefined,
  { blockTable, seqLens, isSliding }: AttentionOptions,
  sequencesOf: string,
): void {
  const { rows: k } = streamOfK;
  const { rows: v } = streamOfV;
  const isPaged = blockTable !== undefined;
  const [batches, slots] = isPaged ? ["nPages", "pageTokens"] : ["B", "kvCapacity"];
  const axes = isTokenMajor ? `${batches}, ${slots}, Hkv` : `${batches}, Hkv, ${slots}`;
  checkPlanes(k, "k", axes, "D");
  checkPlanes(v, "v", axes, "D");
  record.nKvHeads = checkExtent(fromEnd(k, isTokenMajor ? 2 : 3), "k", "Hkv");
  const ofTensor = checkExtent(fromEnd(k, isTokenMajor ? 3 : 2), "k", slots as string);
  const planes = checkExtent(batchOf(k, 3), "k", batches as string);
  if (!isPaged) checkAxis("k", "B", planes, params.B, sequencesOf);
  const coded = streamOfK.bits > 0 ? "k" : streamOfV.bits > 0 ? "v" : undefined;
  if (coded === undefined) {
    checkAxis("k", "D", fromEnd(k, 1), params.D, "q");
    checkSameShape("v", v, k, "k");
  } else {
    if (isTokenMajor) throw refused("kvLayout", `${coded} are codes, which lie head-major`, "unsupported");
    for (const [name, { rows, bits }] of [["k", streamOfK] as const, ["v", streamOfV] as const]) {
      if (bits === 0) checkAxis(name, "D", fromEnd(rows, 1), params.D, "q");
    }
    checkSameRows("v", v.shape, "k", k.shape);
    codeParams.capacity = ofTensor;
  }
  const capacity = slotsOfSequence(ofTensor, blockTable);
  if (kvCapacity !== undefined) checkAxis("kvCapacity", "the value", kvCapacity, capacity, "the shape of k");
  if (seqLens !== undefined && seqLenK !== undefined) {
    throw refused("seqLenK", `${seqLenK} is given with seqLens, which have the keys of each sequence; leave one out`);
  }
  params.kL = checkI32(seqLenK ?? capacity, "seqLenK", "kL");
  if (params.kL > capacity && isSliding === 0) {
    const what = isPaged ? `the ${capacity} slots of the pages of a sequence` : `the kvCapacity ${capacity} of k and v`;
    throw refused("seqLenK", `${seqLenK} is beyond ${what}`);
  }
  if (isPaged || isSliding === 1) optionParams.capacity = capacity;
  if (isPaged) {
    optionParams.page_tokens = ofTensor;
    optionParams.n_pages = planes;
  }
  setStrides(params.K_strides, k, isTokenMajor);
  setStrides(params.V_strides, v, isTokenMajor);
}

/** @internal Extents and strides as the caller gave them; the library checks that they stay inside the tensors. */
export function fillStrided(
  layout: StridedLayout,
  kvCapacity: number | undefined,
  seqLenK: number | undefined,
  { lse, seqLens, seqOffsets, blockTable, isSliding }: AttentionOptions,
): void {
  if (seqLens !== undefined || seqOffsets !== undefined || blockTable !== undefined || isSliding === 1) {
    const reason = "strides go with keys at places of their own alone: no seqLens, seqOffsets, blockTable or isSliding";
    throw refused("layout", reason, "unsupported");
  }
  if (record.bitsK + record.bitsV > 0) throw refused("layout", "strides go with no codes", "unsupported");
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
  const { B, H, qL } = params;
  fillStrides(optionParams.L_strides, H * qL, qL, 1);
  if (lse !== undefined) checkLseShape(lse, [B, H, qL]);
}

/** @internal Keys and values, and what is known of their codes before the shapes are. */
export function fillKeys(k: DecodeStream, v: DecodeStream, scaleFactor: number): void {
  record.k = k.rows;
  record.v = v.rows;
  record.normsK = k.norms;
  record.normsV = v.norms;
  record.packingK = k.packingCode;
  record.bitsK = k.bits;
  record.packingV = v.packingCode;
  record.bitsV = v.bits;
  codeParams.capacity = 0;
  codeParams.scale_factor_d512 = scaleFactor;
}

/** @internal What the options say that does not depend on shapes. */
export function fillOptions(options: AttentionOptions): void {
  optionParams.window = options.window;
  optionParams.softcap = options.softcap;
  optionParams.capacity = 0;
  optionParams.is_sliding = options.isSliding;
  optionParams.page_tokens = 0;
  optionParams.n_pages = 0;
  fillStrides(optionParams.L_strides, 0, 0, 0);
  record.packedKeys = 0;
  record.lse = options.lse;
  record.sinks = options.sinks;
  record.alibiSlopes = options.alibiSlopes;
  record.seqLens = options.seqLens;
  record.seqOffsets = options.seqOffsets;
  record.blockTable = options.blockTable;
  fillTail(options.tail);
}

function fillTail(tail: TailOption | undefined): void {
  record.tailK = tail?.k;
  record.tailV = tail?.v;
  tailParams.slots = tail === undefined ? 0 : checkI32(fromEnd(tail.k, 3), "tail.k", "its slots");
  tailParams.tokens = tail?.tokens ?? 0;
  tailParams.block = tail?.block ?? 0;
  tailParams.quantized = tail?.quantized ?? 0;
}

function checkSameShape(argument: string, range: TensorRange, other: TensorRange, where: string): void {
  let same = batchOf(range, 3) === batchOf(other, 3);
  for (let axis = 1; axis <= 3; axis++) same &&= fromEnd(range, axis) === fromEnd(other, axis);
  if (!same) throw refused(argument, `expected the shape [${other.shape}] of ${where}, got [${range.shape}]`);
}

function fillStrides(to: Strides, batch: number, head: number, token: number): void {
  to[0] = batch;
  to[1] = head;
  to[2] = token;
}

/** @internal */
export function copyStrides(to: Strides, { batch, head, token }: AttentionStrides): void {
  fillStrides(to, batch, head, token);
}

/** Strides of a dense tensor, token-major or head-major. */
function setStrides(strides: Strides, range: TensorRange, isTokenMajor: boolean): void {
  const D = fromEnd(range, 1);
  const plane = fromEnd(range, 2) * D;
  strides[0] = fromEnd(range, 3) * plane;
  strides[1] = isTokenMajor ? D : plane;
  strides[2] = isTokenMajor ? plane : D;
}

/** @internal Strides of [qL, kL] or [B, H, qL, kL]; 0 repeats the one plane for every batch or head. */
export function setMaskStrides(mask: TensorRange): void {
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
