import { normalArray } from "../lib/random.ts";

/**
 * The part of a layer before attention, in plain TypeScript:
 *
 *   x = rms_norm(E[byte]),  q = rope(Wq x),  k = rope(Wk x),  v = Wv x
 *
 * E and W are seeded normal numbers, scaled so that q, k and v have unit variance.
 */

/** Width of the embedding. */
const modelDim = 256;
/** Base of the rotary angles. */
const ropeBase = 10_000;
/** Added to the mean of squares: the root that a vector is divided by is not 0 for a zero vector. */
const epsilon = 1e-6;

/** Heads of the queries, heads of keys and values, size of each. */
export interface LayerShape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
}

/** q [n, heads, headDim], k and v [n, kvHeads, headDim] for n bytes at positions 0 to n - 1. */
export function projectText(bytes: Uint8Array, { heads, kvHeads, headDim }: LayerShape) {
  const embedding = normalArray(256 * modelDim, 1, 1);
  for (let byte = 0; byte < 256; byte++) rmsNorm(embedding.subarray(byte * modelDim, (byte + 1) * modelDim));

  // Before rotation a token's rows depend on its byte alone, so each byte is projected once.
  const used = [...new Set(bytes)];
  const project = (rows: number, seed: number) => {
    const weights = normalArray(rows * modelDim, 1 / Math.sqrt(modelDim), seed);
    const byByte = new Float32Array(256 * rows);
    for (const byte of used) {
      multiply(weights, embedding.subarray(byte * modelDim), byByte.subarray(byte * rows, (byte + 1) * rows));
    }
    const values = new Float32Array(bytes.length * rows);
    bytes.forEach((byte, token) => {
      values.set(byByte.subarray(byte * rows, (byte + 1) * rows), token * rows);
    });
    return values;
  };
  return {
    q: rotate(project(heads * headDim, 2), heads, headDim),
    k: rotate(project(kvHeads * headDim, 3), kvHeads, headDim),
    v: project(kvHeads * headDim, 4),
  };
}

/** x / sqrt(mean(x^2) + epsilon), in place. */
function rmsNorm(x: Float32Array): void {
  let squares = 0;
  for (const value of x) squares += value * value;
  const factor = 1 / Math.sqrt(squares / x.length + epsilon);
  for (let i = 0; i < x.length; i++) x[i] = (x[i] as number) * factor;
}

/** y = W x, W [rows, modelDim], rows a multiple of 4: four sums at a time, so that x is read once for them. */
function multiply(weights: Float32Array, x: Float32Array, y: Float32Array): void {
  for (let row = 0; row < y.length; row += 4) {
    const w = row * modelDim;
    let [sum0, sum1, sum2, sum3] = [0, 0, 0, 0];
    for (let i = 0; i < modelDim; i++) {
      const value = x[i] as number;
      sum0 += (weights[w + i] as number) * value;
      sum1 += (weights[w + modelDim + i] as number) * value;
      sum2 += (weights[w + 2 * modelDim + i] as number) * value;
      sum3 += (weights[w + 3 * modelDim + i] as number) * value;
    }
    y[row] = sum0;
    y[row + 1] = sum1;
    y[row + 2] = sum2;
    y[row + 3] = sum3;
  }
}

/** Rotary positions, in place: elements i and i + headDim/2 turn by position * ropeBase^(-2i/headDim). */
function rotate(values: Float32Array<ArrayBuffer>, heads: number, headDim: number): Float32Array<ArrayBuffer> {
  const half = headDim / 2;
  const tokens = values.length / (heads * headDim);
  for (let position = 0; position < tokens; position++) {
    for (let i = 0; i < half; i++) {
      const angle = position * ropeBase ** ((-2 * i) / headDim);
      const cos = Math.cos(angle);
      const sin = Math.sin(angle);
      for (let head = 0; head < heads; head++) {
        const at = (position * heads + head) * headDim + i;
        const a = values[at] as number;
        const b = values[at + half] as number;
        values[at] = a * cos - b * sin;
        values[at + half] = a * sin + b * cos;
      }
    }
  }
  return values;
}
