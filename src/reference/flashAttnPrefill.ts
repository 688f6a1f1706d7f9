/**
 * Oracles of attention:
 *
 *   O[b,h,i,:] = sum_j P[i,j] V[b,g,j,:],   g = floor(h / (heads / kvHeads))
 *   P[i,j]     = exp(S[i,j] - m_i) / sum_j exp(S[i,j] - m_i),   m_i = max_j S[i,j]
 *   S[i,j]     = cap(scale * <Q[b,h,i,:], K[b,g,j,:]>) + slope_h * (j - p) + bias[i,j]
 *
 * over the keys j that row i attends. A row that attends nothing is 0. Its position is
 * p = i + qOffsetInK. Causal: j <= p; with a window of these only p - window < j.
 * cap(s) = softcap * tanh(s / softcap), or s without a soft cap. A sink is one more
 * score in maximum and sum, without a value. The logarithm of a row's sum is
 * m_i + ln sum_j exp(S[i,j] - m_i).
 */

import { at } from "./at.ts";
import { exp } from "./exp.ts";
import { log } from "./log.ts";
import { type FloatName, roundTo } from "./rounding.ts";
import { tanh } from "./tanh.ts";

/** Elements from one batch, head and token to the next; the innermost stride is 1. */
export interface AttentionStrides {
  readonly batch: number;
  readonly head: number;
  readonly token: number;
}

/** Values in any order that strides describe. */
export interface StridedValues {
  readonly values: ArrayLike<number>;
  readonly strides: AttentionStrides;
}

/**
 * A mask [.., seqLenQ, seqLenK]; its `token` stride leads from query row to
 * query row, and strides of 0 share one plane. Additive: a bias, -Infinity
 * blocks. Bool: non-zero attends.
 */
export interface AttentionMask extends StridedValues {
  readonly kind: "additive" | "bool";
}

/** One attention problem. The values are those the kernel sees: already rounded to its dtype. */
export interface AttentionProblem {
  readonly batch: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly seqLenQ: number;
  readonly seqLenK: number;
  readonly headDim: number;
  readonly scale: number;
  readonly q: StridedValues;
  readonly k: StridedValues;
  readonly v: StridedValues;
  readonly causal?: boolean | undefined;
  /** Position of query row 0 among the keys. Default 0. */
  readonly qOffsetInK?: number | undefined;
  readonly mask?: AttentionMask | undefined;
  /** The oldest key that there is. Default 0. */
  readonly firstKey?: number | undefined;
  readonly window?: number | undefined;
  readonly softcap?: number | undefined;
  /** By head. */
  readonly sinks?: ArrayLike<number> | undefined;
  /** By head. */
  readonly alibiSlopes?: ArrayLike<number> | undefined;
}

/** A row of the output, and the logarithm of its sum of exponentials. */
interface EvaluatedRow {
  readonly output: Float64Array;
  readonly logarithm: number;
}

/** Strides of [batch, heads, tokens, headDim]. `tokens` may be a capacity above the length in use. */
export function headMajorStrides(heads: number, tokens: number, headDim: number): AttentionStrides {
  return { batch: heads * tokens * headDim, head: tokens * headDim, token: headDim };
}

/** Strides of [batch, tokens, heads, headDim]. */
export function sequenceMajorStrides(heads: number, tokens: number, headDim: number): AttentionStrides {
  return { batch: tokens * heads * headDim, head: headDim, token: heads * headDim };
}

/** Element offset of (batch, head, token). */
export function offsetOf(strides: AttentionStrides, batch: number, head: number, token: number): number {
  return batch * strides.batch + head * strides.head + token * strides.token;
}

/** How a row is evaluated: the rounding of each product, sum, quotient and exponential. */
type Rounding = (value: number) => number;

const exact: Rounding = (value) => value;

/** Bias of key `key` for a query row, -Infinity where the row may not attend it. */
function biasOf(problem: AttentionProblem, batch: number, head: number, row: number, key: number): number {
  const { mask, window, firstKey = 0, qOffsetInK = 0 } = problem;
  const position = row + qOffsetInK;
  if (problem.causal === true && key > position) return Number.NEGATIVE_INFINITY;
  if (key < firstKey || (window !== undefined && key <= position - window)) return Number.NEGATIVE_INFINITY;
  if (mask === undefined) return 0;
  const value = at(mask.values, offsetOf(mask.strides, batch, head, row) + key);
  if (mask.kind === "additive") return value;
  return value === 0 ? Number.NEGATIVE_INFINITY : 0;
}

function evaluateRow(
  problem: AttentionProblem,
  batch: number,
  head: number,
  row: number,
  round: Rounding,
): EvaluatedRow {
  const { seqLenK, headDim, q, k, v, softcap, sinks, alibiSlopes, qOffsetInK = 0 } = problem;
  const kvHead = Math.floor(head / (problem.heads / problem.kvHeads));
  const scale = round(problem.scale);
  const qRow = offsetOf(q.strides, batch, head, row);
  const sink = sinks === undefined ? Number.NEGATIVE_INFINITY : at(sinks, head);

  const scores = new Float64Array(seqLenK).fill(Number.NEGATIVE_INFINITY);
  let maximum = sink;
  for (let key = 0; key < seqLenK; key++) {
    const bias = biasOf(problem, batch, head, row, key);
    if (bias === Number.NEGATIVE_INFINITY) continue;
    const kRow = offsetOf(k.strides, batch, kvHead, key);
    let product = 0;
    for (let d = 0; d < headDim; d++) {
      product = round(product + round(at(q.values, qRow + d) * at(k.values, kRow + d)));
    }
    let score = round(product * scale);
    if (softcap !== undefined) score = round(softcap * round(tanh(round(score / softcap))));
    if (alibiSlopes !== undefined) score = round(score + round(at(alibiSlopes, head) * (key - row - qOffsetInK)));
    score = round(score + bias);
    scores[key] = score;
    maximum = Math.max(maximum, score);
  }

  const output = new Float64Array(headDim);
  if (maximum === Number.NEGATIVE_INFINITY) return { output, logarithm: maximum };
  let sum = round(exp(round(sink - maximum)));
  for (let key = 0; key < seqLenK; key++) {
    const score = at(scores, key);
    if (score === Number.NEGATIVE_INFINITY) continue;
    const weight = round(exp(round(score - maximum)));
    sum = round(sum + weight);
    const vRow = offsetOf(v.strides, batch, kvHead, key);
    for (let d = 0; d < headDim; d++) {
      output[d] = round(at(output, d) + round(weight * at(v.values, vRow + d)));
    }
  }
  for (let d = 0; d < headDim; d++) output[d] = round(at(output, d) / sum);
  return { output, logarithm: maximum + log(sum) };
}

/** Row [headDim] of the output, in float64. */
export function referenceAttentionRow(
  problem: AttentionProblem,
  batch: number,
  head: number,
  row: number,
): Float64Array {
  return evaluateRow(problem, batch, head, row, exact).output;
}

/**
 * The same row by a plain evaluation in a dtype: every product and sum in
 * float32, the row of scores at once, the output rounded to the dtype. A kernel
 * passes when its largest error against {@link referenceAttentionRow} is at
 * most twice the one of this (the rule of FlashAttention's tests).
 */
export function plainAttentionRow(
  problem: AttentionProblem,
  dtype: FloatName,
  batch: number,
  head: number,
  row: number,
): Float64Array {
  return evaluateRow(problem, batch, head, row, Math.fround).output.map((value) => roundTo(dtype, value));
}

/** The whole output, head-major [batch, heads, seqLenQ, headDim], in float64. */
export function referenceAttention(problem: AttentionProblem): Float64Array {
  return everyRow(problem, (batch, head, row) => referenceAttentionRow(problem, batch, head, row));
}

/** The whole output and the logarithms, [batch, heads, seqLenQ], in float64. */
export function referenceAttentionWithLogarithms(problem: AttentionProblem): {
  readonly out: Float64Array;
  readonly lse: Float64Array;
} {
  const { batch, heads, seqLenQ } = problem;
  const lse = new Float64Array(batch * heads * seqLenQ);
  const out = everyRow(problem, (b, head, row) => {
    const { output, logarithm } = evaluateRow(problem, b, head, row, exact);
    lse[(b * heads + head) * seqLenQ + row] = logarithm;
    return output;
  });
  return { out, lse };
}

/** The whole output of {@link plainAttentionRow}, head-major [batch, heads, seqLenQ, headDim]. */
export function plainAttention(problem: AttentionProblem, dtype: FloatName): Float64Array {
  return everyRow(problem, (batch, head, row) => plainAttentionRow(problem, dtype, batch, head, row));
}

function everyRow(
  problem: AttentionProblem,
  rowOf: (batch: number, head: number, row: number) => Float64Array,
): Float64Array {
  const { batch, heads, seqLenQ, headDim } = problem;
  const strides = headMajorStrides(heads, seqLenQ, headDim);
  const output = new Float64Array(batch * heads * seqLenQ * headDim);
  for (let b = 0; b < batch; b++) {
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < seqLenQ; i++) output.set(rowOf(b, h, i), offsetOf(strides, b, h, i));
    }
  }
  return output;
}
