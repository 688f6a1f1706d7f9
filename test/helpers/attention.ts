import { type AttentionLayout, type Device, flashAttnPrefillSupport, type Tensor } from "../../src/index.ts";
import {
  type AttentionProblem,
  type AttentionStrides,
  decode,
  encode,
  headMajorStrides,
  offsetOf,
  plainAttentionRow,
  referenceAttentionRow,
  roundTo,
} from "../../src/reference/index.ts";
import { bitsOf } from "./elements.ts";
import { judgeValues, shapeIn, strideRules } from "./prefill.ts";
import { normalDraws } from "./random.ts";

/** Shape and kind of one bf16 attention problem, D = 256. */
export interface AttentionPlan {
  readonly batch?: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly seqLenQ: number;
  readonly seqLenK: number;
  /** Slots per head; those beyond seqLenK hold NaN. As many as keys unless given. */
  readonly kvCapacity?: number;
  readonly causal?: boolean;
  readonly qOffsetInK?: number;
  readonly scale?: number;
  readonly layout?: AttentionLayout;
  readonly values?: AttentionValues;
  readonly seed?: number;
}

/** Values of q, k and v by position. */
export interface AttentionValues {
  readonly q?: ValueAt;
  readonly k?: ValueAt;
  readonly v?: ValueAt;
}

/** A value, given a draw of roughly N(0, 1) for its place. */
export type ValueAt = (normal: number, place: { head: number; token: number; channel: number }) => number;

export const headDim = 256;
export const kernel = "flash_attn_prefill_bf16_d256";

/** One tensor of a problem: tokens from `inUse` on are NaN. The values do not depend on layout or capacity. */
function strided(plan: AttentionPlan, heads: number, tokens: number, inUse: number, seed: number, valueAt?: ValueAt) {
  const strides = strideRules[plan.layout ?? "head-major"](heads, tokens, headDim);
  const batch = plan.batch ?? 1;
  const values = new Float64Array(batch * heads * tokens * headDim).fill(Number.NaN);
  const draw = normalDraws(seed + (plan.seed ?? 0) * 1000);
  for (let b = 0; b < batch; b++) {
    for (let head = 0; head < heads; head++) {
      for (let token = 0; token < inUse; token++) {
        const row = offsetOf(strides, b, head, token);
        for (let channel = 0; channel < headDim; channel++) {
          const normal = draw();
          values[row + channel] = roundTo("bf16", valueAt?.(normal, { head, token, channel }) ?? normal);
        }
      }
    }
  }
  return { values, strides };
}

/** The problem's values, as bf16 holds them. */
export function attentionProblem(plan: AttentionPlan): AttentionProblem {
  const { heads, kvHeads, seqLenQ, seqLenK, values } = plan;
  const capacity = plan.kvCapacity ?? seqLenK;
  return {
    batch: plan.batch ?? 1,
    heads,
    kvHeads,
    seqLenQ,
    seqLenK,
    headDim,
    scale: plan.scale ?? 1 / Math.sqrt(headDim),
    causal: plan.causal ?? false,
    qOffsetInK: plan.qOffsetInK ?? 0,
    q: strided(plan, heads, seqLenQ, seqLenQ, 1, values?.q),
    k: strided(plan, kvHeads, capacity, seqLenK, 2, values?.k),
    v: strided(plan, kvHeads, capacity, seqLenK, 3, values?.v),
  };
}

/** The shape of [batch, heads, tokens, headDim] in the layout of a plan. */
export function shapeOf(plan: AttentionPlan, heads: number, tokens: number): number[] {
  return shapeIn(plan.layout ?? "head-major", plan.batch ?? 1, heads, tokens, headDim);
}

/** A bf16 tensor of `values`, which bf16 holds exactly. */
export function bf16Tensor(device: Device, shape: readonly number[], values: ArrayLike<number>): Tensor<"bf16"> {
  const tensor = device.tensor("bf16", shape);
  const bits = bitsOf(tensor);
  for (let i = 0; i < bits.length; i++) bits[i] = encode("bf16", values[i] as number);
  return tensor;
}

/** The rows of an output tensor, head-major, whatever its layout. */
export function outputRows(plan: AttentionPlan, out: ArrayLike<number>): Float64Array {
  const { heads, seqLenQ } = plan;
  const from: AttentionStrides = strideRules[plan.layout ?? "head-major"](heads, seqLenQ, headDim);
  const to = headMajorStrides(heads, seqLenQ, headDim);
  const rows = new Float64Array(out.length);
  for (let b = 0; b < (plan.batch ?? 1); b++) {
    for (let head = 0; head < heads; head++) {
      for (let token = 0; token < seqLenQ; token++) {
        const source = offsetOf(from, b, head, token);
        const target = offsetOf(to, b, head, token);
        for (let d = 0; d < headDim; d++) rows[target + d] = decode("bf16", out[source + d] as number);
      }
    }
  }
  return rows;
}

/** Rows of each head that are compared; all where they are few. */
function sampledRows(seqLenQ: number, count = 12): number[] {
  if (seqLenQ <= count) return Array.from({ length: seqLenQ }, (_, row) => row);
  const edges = [0, 7, 8, 15, 16, 31, 32, 33, 63, 64, seqLenQ - 2, seqLenQ - 1];
  return [...new Set(edges.filter((row) => row < seqLenQ))];
}

const support = flashAttnPrefillSupport().find(({ kernel: name, mask }) => name === kernel && mask === "none");

/** What is wrong with the sampled rows of every head, in words; undefined where nothing is. `rows` is head-major. */
export function judgeSampled(problem: AttentionProblem, rows: Float64Array): string | undefined {
  if (support === undefined) throw new Error(`${kernel} is not in the table of what is supported`);
  const { batch, heads, seqLenQ } = problem;
  const strides = headMajorStrides(heads, seqLenQ, headDim);
  const exact: number[] = [];
  const plain: number[] = [];
  const actual: number[] = [];
  for (let b = 0; b < batch; b++) {
    for (let head = 0; head < heads; head++) {
      for (const row of sampledRows(seqLenQ)) {
        const start = offsetOf(strides, b, head, row);
        exact.push(...referenceAttentionRow(problem, b, head, row));
        plain.push(...plainAttentionRow(problem, "bf16", b, head, row));
        actual.push(...rows.subarray(start, start + headDim));
      }
    }
  }
  return judgeValues(support, exact, plain, actual);
}
