import { normalArray } from "../../lib/random.ts";
import type { PromptExtents } from "../prefill.ts";

/** Attention of a whole prompt, the problem that all peers solve. Tensors are sequence-major, [1, tokens, heads, headDim]. */
export interface Problem extends PromptExtents {
  readonly causal: boolean;
  readonly q: Float32Array<ArrayBuffer>;
  readonly k: Float32Array<ArrayBuffer>;
  readonly v: Float32Array<ArrayBuffer>;
}

/** Attention of one token over a cache. q is [1, heads, 1, headDim], K and V are [1, kvHeads, keys, headDim]. */
export interface DecodeProblem {
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly keys: number;
  readonly q: Float32Array<ArrayBuffer>;
  readonly k: Float32Array<ArrayBuffer>;
  readonly v: Float32Array<ArrayBuffer>;
}

/** Who takes part: gives its output, and is timed giving it. */
export interface Peer {
  /** One evaluation. */
  run(): void | Promise<void>;
  /** What the last evaluation gave, in f32. */
  output(): Float32Array;
  dispose(): void;
}

/** A problem with normal values that bf16 holds exactly, so that all compute the same. */
export function makeProblem(extents: PromptExtents & { readonly causal: boolean }): Problem {
  const { tokens, heads, headDim } = extents;
  const values = (seed: number) => inBfloat16(normalArray(tokens * heads * headDim, 1, seed));
  return { ...extents, q: values(1), k: values(2), v: values(3) };
}

/** The upper half of each float32's bits: the nearest bfloat16 towards zero. */
function inBfloat16(values: Float32Array<ArrayBuffer>): Float32Array<ArrayBuffer> {
  const bits = new Uint32Array(values.buffer);
  for (let i = 0; i < bits.length; i++) bits[i] = (bits[i] as number) & 0xffff0000;
  return values;
}
