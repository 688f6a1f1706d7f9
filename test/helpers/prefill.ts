import {
  type AttentionDType,
  type AttentionLayout,
  type AttentionMaskKind,
  classifyMaskTiles,
  type Device,
  type FlashAttnPrefillSupport,
  flashAttnPrefill,
  type Pass,
  type Tensor,
  type TileClasses,
} from "../../src/index.ts";
import {
  type AttentionMask,
  type AttentionProblem,
  type AttentionStrides,
  headMajorStrides,
  maxError,
  nmse,
  offsetOf,
  plainAttention,
  referenceAttention,
  sequenceMajorStrides,
} from "../../src/reference/index.ts";
import { bitsOf, fillPattern } from "./elements.ts";
import { normalDraws, seededRandom } from "./random.ts";

/** What q, k and v hold. */
export const valueKinds = ["normal", "wide", "outlier", "equal-keys", "rising", "falling"] as const;
export type ValueKind = (typeof valueKinds)[number];

/** What a mask blocks. `biases` blocks nothing where the mask is additive. */
export const maskPatterns = ["random", "tiles", "rows", "window", "last-tile", "biases", "all"] as const;
export type MaskPattern = (typeof maskPatterns)[number];

/** Which planes a mask has: [qL, kL], or [B or 1, H or 1, qL, kL]. */
export const maskShapes = ["shared", "by-batch-and-head", "by-head", "by-batch"] as const;
export type MaskShape = (typeof maskShapes)[number];

/** One attention problem of a row of the support table. */
export interface PrefillCase {
  readonly row: FlashAttnPrefillSupport;
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly qL: number;
  readonly kL: number;
  /** Slots per head; those from kL on hold NaN. */
  readonly capacity: number;
  readonly causal: boolean;
  readonly qOffsetInK: number;
  readonly layout: AttentionLayout;
  readonly values: ValueKind;
  readonly pattern: MaskPattern;
  readonly maskShape: MaskShape;
  readonly tileClasses: boolean;
  readonly seed: number;
}

/** The tensors of a case and the same values for the oracles. */
export interface PrefillScene {
  readonly q: Tensor<AttentionDType>;
  readonly k: Tensor<AttentionDType>;
  readonly v: Tensor<AttentionDType>;
  readonly mask: Tensor<AttentionDType | "bool"> | undefined;
  readonly problem: AttentionProblem;
  dispose(): void;
}

const normals = Float32Array.from({ length: (1 << 20) + 7 }, normalDraws(12345));

/** Strides of [batch, heads, tokens, headDim] in a layout. */
export const strideRules = { "head-major": headMajorStrides, "sequence-major": sequenceMajorStrides } as const;

/** The shape of [batch, heads, tokens, headDim] in a layout. */
export function shapeIn(
  layout: AttentionLayout,
  batch: number,
  heads: number,
  tokens: number,
  headDim: number,
): number[] {
  return layout === "head-major" ? [batch, heads, tokens, headDim] : [batch, tokens, heads, headDim];
}

/** A value of q, k or v, given a normal draw. */
function valueAt(kind: ValueKind, which: "q" | "k" | "v", normal: number, token: number, channel: number): number {
  switch (kind) {
    case "normal":
      return normal;
    case "wide": // Scores reach about +-300.
      return which === "v" ? normal : normal * 9;
    case "outlier":
      if (which === "v") return channel === 40 ? 100 * normal : normal;
      return channel === 33 ? 20 + 10 * normal : normal;
    case "equal-keys":
      return which === "k" ? Math.sin(channel) : normal;
    case "rising": // The running maximum moves in every tile.
      return which === "q" ? 1 : which === "k" ? token / 8 + normal / 64 : normal;
    case "falling":
      return which === "q" ? 1 : which === "k" ? -token / 8 + normal / 64 : normal;
  }
}

function fill(
  device: Device,
  entry: PrefillCase,
  which: "q" | "k" | "v",
): { tensor: Tensor<AttentionDType>; values: Float32Array; strides: AttentionStrides } {
  const { row, batch, layout, values: kind, seed } = entry;
  const heads = which === "q" ? entry.heads : entry.kvHeads;
  const tokens = which === "q" ? entry.qL : entry.capacity;
  const used = which === "q" ? entry.qL : entry.kL;
  const { headDim } = row;
  const strides = strideRules[layout](heads, tokens, headDim);
  const data = new Float32Array(batch * heads * tokens * headDim).fill(Number.NaN);
  // The draws depend on the place alone, not on layout or capacity.
  let draw = (seed * 7919 + which.charCodeAt(0) * 104729) % normals.length;
  for (let b = 0; b < batch; b++) {
    for (let head = 0; head < heads; head++) {
      for (let token = 0; token < used; token++) {
        const start = offsetOf(strides, b, head, token);
        for (let channel = 0; channel < headDim; channel++) {
          data[start + channel] = valueAt(kind, which, normals[draw] as number, token, channel);
          draw = draw + 1 === normals.length ? 0 : draw + 1;
        }
      }
    }
  }
  const tensor = device.tensor(row.dtype, shapeIn(layout, batch, heads, tokens, headDim)).set(data);
  return { tensor, values: tensor.toFloat32Array(), strides };
}

/** The bias of a mask element; -infinity blocks. */
function biasOf(entry: PrefillCase, random: () => number, head: number, i: number, j: number): number {
  const blocked = Number.NEGATIVE_INFINITY;
  const { queryTile, keyTile } = entry.row;
  switch (entry.pattern) {
    case "random":
      return random() < 0.4 ? blocked : 0;
    case "tiles":
      return (Math.floor(i / queryTile) + Math.floor(j / keyTile) + head) % 2 === 0 ? blocked : 0;
    case "rows":
      return i % 3 === 1 || i === entry.qL - 1 ? blocked : random() < 0.2 ? blocked : 0;
    case "window":
      return j <= i + entry.qOffsetInK && j > i + entry.qOffsetInK - 9 ? 0 : blocked;
    case "last-tile":
      return j >= Math.floor((entry.kL - 1) / keyTile) * keyTile ? blocked : 0;
    case "biases": // As ALiBi has them: a slope for each head.
      return -Math.abs(i + entry.qOffsetInK - j) * 2 ** -(1 + (head % 4));
    case "all":
      return blocked;
  }
}

function fillMask(
  device: Device,
  entry: PrefillCase,
): { tensor: Tensor<AttentionDType | "bool">; mask: AttentionMask } {
  const { row, batch, heads, qL, kL } = entry;
  const batches = entry.maskShape === "by-batch-and-head" || entry.maskShape === "by-batch" ? batch : 1;
  const planes = entry.maskShape === "by-batch-and-head" || entry.maskShape === "by-head" ? heads : 1;
  const random = seededRandom(entry.seed + 17);
  const data = new Float32Array(batches * planes * qL * kL);
  let at = 0;
  for (let b = 0; b < batches; b++) {
    for (let head = 0; head < planes; head++) {
      for (let i = 0; i < qL; i++) for (let j = 0; j < kL; j++) data[at++] = biasOf(entry, random, head + b, i, j);
    }
  }
  const shape = entry.maskShape === "shared" ? [qL, kL] : [batches, planes, qL, kL];
  const kind: Exclude<AttentionMaskKind, "none"> = row.mask === "bool" ? "bool" : "additive";
  const attends = () => Float32Array.from(data, (bias) => (bias > -2 ? 1 : 0));
  const tensor: Tensor<AttentionDType | "bool"> =
    kind === "bool" ? device.tensor("bool", shape).set(attends()) : device.tensor(row.dtype, shape).set(data);
  const strides = { batch: batches === 1 ? 0 : planes * qL * kL, head: planes === 1 ? 0 : qL * kL, token: kL };
  return { tensor, mask: { kind, values: tensor.toFloat32Array(), strides } };
}

/** Makes the tensors of a case. */
export function prefillScene(device: Device, entry: PrefillCase): PrefillScene {
  const [q, k, v] = [fill(device, entry, "q"), fill(device, entry, "k"), fill(device, entry, "v")];
  const masked = entry.row.mask === "none" ? undefined : fillMask(device, entry);
  const { batch, heads, kvHeads, qL, kL, causal, qOffsetInK } = entry;
  const { headDim } = entry.row;
  const problem: AttentionProblem = {
    batch,
    heads,
    kvHeads,
    seqLenQ: qL,
    seqLenK: kL,
    headDim,
    scale: 1 / Math.sqrt(headDim),
    causal,
    qOffsetInK,
    q,
    k,
    v,
    mask: masked?.mask,
  };
  return {
    q: q.tensor,
    k: k.tensor,
    v: v.tensor,
    mask: masked?.tensor,
    problem,
    dispose() {
      for (const tensor of [q.tensor, k.tensor, v.tensor, masked?.tensor]) tensor?.dispose();
    },
  };
}

const guard = 8;

/** An output with a pattern around it, which must survive. */
export class GuardedOutput {
  readonly out: Tensor<AttentionDType>;
  readonly #whole: Tensor<AttentionDType>;

  constructor(device: Device, { row, batch, heads, qL, layout }: PrefillCase) {
    const shape = shapeIn(layout, batch, heads, qL, row.headDim);
    const length = batch * heads * qL * row.headDim;
    this.#whole = device.tensor(row.dtype, [length + 2 * guard]);
    fillPattern(bitsOf(this.#whole), 1);
    this.out = this.#whole.slice(guard, guard + length).reshape(shape);
  }

  /** Whether nothing outside the output was written. */
  get intact(): boolean {
    const bits = bitsOf(this.#whole);
    const expected = bits.slice();
    fillPattern(expected, 1);
    const isEqual = (i: number) => bits[i] === expected[i];
    return Array.from({ length: guard }, (_, i) => i).every((i) => isEqual(i) && isEqual(bits.length - 1 - i));
  }

  dispose(): void {
    this.out.dispose();
    this.#whole.dispose();
  }
}

/** Encodes a case as a caller would. */
export function encodePrefill(
  pass: Pass,
  entry: PrefillCase,
  { q, k, v, mask }: PrefillScene,
  out: Tensor<AttentionDType>,
): TileClasses | undefined {
  const classes =
    mask !== undefined && entry.tileClasses ? classifyMaskTiles(pass, { mask, headDim: entry.row.headDim }) : undefined;
  flashAttnPrefill(pass, {
    q,
    k,
    v,
    out,
    causal: entry.causal,
    qOffsetInK: entry.qOffsetInK,
    kvCapacity: entry.capacity,
    seqLenK: entry.kL,
    layout: entry.layout,
    ...(mask === undefined ? {} : { mask }),
    ...(classes === undefined ? {} : { tileClasses: classes }),
  });
  return classes;
}

/** The output's values, head-major, whatever its layout. */
export function headMajorRows(entry: PrefillCase, out: Tensor): Float32Array {
  const { batch, heads, qL, layout, row } = entry;
  const values = out.toFloat32Array();
  if (layout === "head-major") return values;
  const rows = new Float32Array(values.length);
  const from = sequenceMajorStrides(heads, qL, row.headDim);
  const to = headMajorStrides(heads, qL, row.headDim);
  for (let b = 0; b < batch; b++) {
    for (let head = 0; head < heads; head++) {
      for (let i = 0; i < qL; i++) {
        const start = offsetOf(from, b, head, i);
        rows.set(values.subarray(start, start + row.headDim), offsetOf(to, b, head, i));
      }
    }
  }
  return rows;
}

/**
 * What is wrong with values, in words, beside those of the float64 oracle and of
 * a plain evaluation in the dtype; undefined where they keep the contract of `row`.
 */
export function judgeValues(
  { maxErrorToPlain, maxNmse }: FlashAttnPrefillSupport,
  exact: ArrayLike<number>,
  plain: ArrayLike<number>,
  actual: ArrayLike<number>,
): string | undefined {
  const bound = maxErrorToPlain * maxError(plain, exact);
  const error = maxError(actual, exact);
  // Not `error > bound`: a NaN is an error too.
  if (!(error <= bound)) return `largest error ${error}, allowed ${bound}`;
  const square = nmse(actual, exact);
  return square <= maxNmse ? undefined : `NMSE ${square}, allowed ${maxNmse}`;
}

/** What is wrong with an output, in words; undefined where nothing is. */
export function judge(
  { row, qL }: Pick<PrefillCase, "row" | "qL">,
  problem: AttentionProblem,
  actual: Float32Array,
): string | undefined {
  const exact = referenceAttention(problem);
  const failure = judgeValues(row, exact, plainAttention(problem, row.dtype), actual);
  if (failure !== undefined) return failure;
  for (let start = 0; start < exact.length; start += row.headDim) {
    const blocked = exact.subarray(start, start + row.headDim).every((value) => value === 0);
    const written = actual.subarray(start, start + row.headDim);
    if (blocked && !written.every((value) => Object.is(value, 0)))
      return `row ${(start / row.headDim) % qL} attends nothing, but is not 0`;
  }
  return undefined;
}
