/** What a caller may say about scores. */
export interface Scores {
  /** ALiBi's, by head. */
  readonly slopes?: ArrayLike<number> | undefined;
  readonly softcap?: number | undefined;
  /** Logits without a value, by head. */
  readonly sinks?: ArrayLike<number> | undefined;
}

/**
 * Attention of one row over keys and values [nKvHeads, headDim] in float64: [heads, headDim]. `distances` says how far back
 * each key is.
 */
export function attention(
  q: Float32Array,
  keys: readonly Float32Array[],
  values: readonly Float32Array[],
  heads: number,
  kvHeads: number,
  { slopes, softcap, sinks }: Scores = {},
  distances: readonly number[] = [],
): Float64Array {
  const headDim = q.length / heads;
  const out = new Float64Array(q.length);
  for (let head = 0; head < heads; head++) {
    const at = Math.floor((head * kvHeads) / heads) * headDim;
    const slope = slopes?.[head] ?? 0;
    const scores = keys.map((key, j) => {
      let sum = 0;
      for (let d = 0; d < headDim; d++) sum += (q[head * headDim + d] as number) * (key[at + d] as number);
      const score = sum / Math.sqrt(headDim);
      const capped = softcap === undefined ? score : softcap * Math.tanh(score / softcap);
      return capped - (slope === 0 ? 0 : slope * (distances[j] as number));
    });
    const sink = sinks?.[head] ?? Number.NEGATIVE_INFINITY;
    const most = Math.max(...scores, sink);
    const weights = scores.map((score) => Math.exp(score - most));
    const total = weights.reduce((sum, weight) => sum + weight, Math.exp(sink - most));
    for (const [j, value] of values.entries()) {
      const weight = (weights[j] as number) / total;
      for (let d = 0; d < headDim; d++) {
        out[head * headDim + d] = (out[head * headDim + d] as number) + weight * (value[at + d] as number);
      }
    }
  }
  return out;
}
