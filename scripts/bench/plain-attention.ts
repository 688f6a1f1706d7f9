import { normalArray } from "../lib/random.ts";
import { type Measurement, secondsOf } from "./benchmark.ts";

/** One head of attention. */
export interface PlainAttentionOptions {
  readonly tokens: number;
  readonly headDim: number;
  /** Query rows, the last of the tokens. */
  readonly rows: number;
  readonly causal: boolean;
}

/**
 * Attention of one head as loops over Float32Arrays, for the last `rows` query
 * rows of `tokens`: what one gets in TypeScript without a library. In GFLOP/s,
 * counted as 4 D for each pair of a row and a key that it attends.
 */
export function preparePlainAttention({ tokens, headDim, rows, causal }: PlainAttentionOptions): Measurement {
  const q = normalArray(rows * headDim, 1, 1);
  const k = normalArray(tokens * headDim, 1, 2);
  const v = normalArray(tokens * headDim, 1, 3);
  const out = new Float32Array(rows * headDim);
  const scores = new Float32Array(tokens);
  const attended = (row: number) => (causal ? tokens - rows + row + 1 : tokens);
  let pairs = 0;
  for (let row = 0; row < rows; row++) pairs += attended(row);
  return () => {
    const seconds = secondsOf(() => {
      for (let row = 0; row < rows; row++) {
        attendRow(
          q.subarray(row * headDim, (row + 1) * headDim),
          k,
          v,
          attended(row),
          scores,
          out.subarray(row * headDim),
        );
      }
    });
    return (4 * pairs * headDim) / 1e9 / seconds;
  };
}

/** out[D] = softmax(q k^T / sqrt(D)) v over the first `keys` rows of k and v. */
function attendRow(
  q: Float32Array,
  k: Float32Array,
  v: Float32Array,
  keys: number,
  scores: Float32Array,
  out: Float32Array,
): void {
  const headDim = q.length;
  const scale = 1 / Math.sqrt(headDim);
  let maximum = Number.NEGATIVE_INFINITY;
  for (let key = 0; key < keys; key++) {
    let sum = 0;
    for (let i = 0; i < headDim; i++) sum += (q[i] as number) * (k[key * headDim + i] as number);
    scores[key] = sum * scale;
    maximum = Math.max(maximum, sum * scale);
  }
  let total = 0;
  for (let i = 0; i < headDim; i++) out[i] = 0;
  for (let key = 0; key < keys; key++) {
    const weight = Math.exp((scores[key] as number) - maximum);
    total += weight;
    for (let i = 0; i < headDim; i++) out[i] = (out[i] as number) + weight * (v[key * headDim + i] as number);
  }
  for (let i = 0; i < headDim; i++) out[i] = (out[i] as number) / total;
}
