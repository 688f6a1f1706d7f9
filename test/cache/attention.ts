/**
 * Attention of one row over keys and values [nKvHeads, headDim] in float64: [heads, headDim]. With slopes of ALiBi, by
 * head, `distances` says how far back each key is.
 */
export function attention(
  q: Float32Array,
  keys: readonly Float32Array[],
  values: readonly Float32Array[],
  heads: number,
  kvHeads: number,
  slopes?: ArrayLike<number>,
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
      return sum / Math.sqrt(headDim) - (slope === 0 ? 0 : slope * (distances[j] as number));
    });
    const most = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(score - most));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    for (const [j, value] of values.entries()) {
      const weight = (weights[j] as number) / total;
      for (let d = 0; d < headDim; d++) {
        out[head * headDim + d] = (out[head * headDim + d] as number) + weight * (value[at + d] as number);
      }
    }
  }
  return out;
}
