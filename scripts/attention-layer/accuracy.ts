import {
  bfloat16ToFloat32,
  float16ToFloat32,
  float32ToBfloat16,
  float32ToFloat16,
  type Tensor,
} from "../../src/index.ts";
import {
  type AttentionMask,
  type AttentionProblem,
  maxError,
  nmse,
  plainAttentionRow,
  referenceAttentionRow,
  referenceSlidingWindowMask,
  sequenceMajorStrides,
} from "../../src/reference/index.ts";
import { type Check, verdict } from "./check.ts";
import type { AttentionChoice, AttentionDType, KeyValue } from "./choice.ts";
import { decodeTokens, type LayerInputs, ringSlots } from "./inputs.ts";
import { checkRoundTrip } from "./round-trip-accuracy.ts";
import type { LayerResults } from "./run.ts";

/** Rows of the attention output that are compared. */
const sampledRows = 32;

/** Whether the results are right, and the lines that say so. */
export interface Accuracy {
  readonly right: boolean;
  readonly lines: readonly string[];
}

/** Compares the attention output with the float64 oracle on sampled rows, and every element of cache and ring. */
export function checkResults(inputs: LayerInputs, choice: AttentionChoice, results: LayerResults): Accuracy {
  const checks = [
    checkAttention(inputs, choice, results.out),
    ...(results.chunked === undefined ? [] : [checkChunks(results.out, results.chunked)]),
    checkCache(inputs, results.cache),
    checkRing(inputs, results.ring),
    ...(results.roundTrip === undefined ? [] : checkRoundTrip(inputs, results.roundTrip, results.out)),
  ];
  return { right: checks.every(({ right }) => right), lines: checks.map(({ line }) => line) };
}

/** Values as a kernel of a dtype sees them. */
const seenIn: Readonly<Record<AttentionDType, (values: Float32Array) => Float32Array>> = {
  bf16: (values) => bfloat16ToFloat32(float32ToBfloat16(values)),
  f16: (values) => float16ToFloat32(float32ToFloat16(values)),
};

/** The largest error may be twice that of a plain evaluation in the dtype (the rule of FlashAttention's tests). */
function checkAttention(inputs: LayerInputs, { dtype, window }: AttentionChoice, out: Tensor): Check {
  const { tokens, heads, kvHeads, headDim } = inputs;
  const seen = seenIn[dtype];
  const queryStrides = sequenceMajorStrides(heads, tokens, headDim);
  const keyStrides = sequenceMajorStrides(kvHeads, tokens, headDim);
  const problem: AttentionProblem = {
    batch: 1,
    heads,
    kvHeads,
    seqLenQ: tokens,
    seqLenK: tokens,
    headDim,
    scale: 1 / Math.sqrt(headDim),
    causal: true,
    mask: window === undefined ? undefined : windowMask(tokens, window),
    q: { values: seen(inputs.q), strides: queryStrides },
    k: { values: seen(inputs.k), strides: keyStrides },
    v: { values: seen(inputs.v), strides: keyStrides },
  };
  const values = out.toFloat32Array();
  const actual: number[] = [];
  const expected: number[] = [];
  const plain: number[] = [];
  for (let i = 0; i < sampledRows; i++) {
    const head = i % heads;
    // From the first to the last row.
    const row = Math.round((i * (tokens - 1)) / (sampledRows - 1));
    const start = row * queryStrides.token + head * queryStrides.head;
    actual.push(...values.subarray(start, start + headDim));
    expected.push(...referenceAttentionRow(problem, 0, head, row));
    plain.push(...plainAttentionRow(problem, dtype, 0, head, row));
  }
  const error = maxError(actual, expected);
  const bound = 2 * maxError(plain, expected);
  // Not `error > bound`: a NaN is an error too.
  const right = error <= bound;
  return {
    right,
    line:
      `attention: largest error ${error.toExponential(2)} on ${sampledRows} sampled rows against float64 ` +
      `(allowed ${bound.toExponential(2)}), NMSE ${nmse(actual, expected).toExponential(2)}: ${verdict(right)}`,
  };
}

function windowMask(tokens: number, window: number): AttentionMask {
  const attends = referenceSlidingWindowMask({ seqLenQ: tokens, seqLenK: tokens, window });
  return { kind: "bool", values: Uint8Array.from(attends, Number), strides: { batch: 0, head: 0, token: tokens } };
}

/** A prompt in chunks has the bits of the prompt done at once. */
function checkChunks(out: Tensor<AttentionDType>, chunked: Tensor<AttentionDType>): Check {
  const [expected, actual] = [bitsOf(out), bitsOf(chunked)];
  let same = 0;
  for (let i = 0; i < expected.length; i++) if (expected[i] === actual[i]) same++;
  const right = same === expected.length && actual.length === expected.length;
  return {
    right,
    line: `chunks: ${same} of ${expected.length} elements have the bits of the prompt done at once: ${verdict(right)}`,
  };
}

/** The bits of a tensor of 16-bit floats, without a copy. */
export function bitsOf({ bytes, length }: Tensor<AttentionDType>): Uint16Array<ArrayBuffer> {
  return new Uint16Array(bytes.buffer, bytes.byteOffset, length);
}

function checkCache({ tokens, kvHeads, headDim, k, v }: LayerInputs, cache: KeyValue<"f16">): Check {
  const slots = Array.from({ length: tokens }, (_, position) => position);
  const shape = { kvHeads, headDim, capacity: tokens };
  return checkSlots("cache", [different(cache.k, k, slots, shape), different(cache.v, v, slots, shape)]);
}

function checkRing({ tokens, kvHeads, headDim, k, v }: LayerInputs, ring: KeyValue<"f16">): Check {
  const slots = new Array<number | undefined>(ringSlots).fill(undefined);
  for (let position = 0; position < tokens + decodeTokens; position++) slots[position % ringSlots] = position;
  const shape = { kvHeads, headDim, capacity: ringSlots };
  return checkSlots("ring", [different(ring.k, k, slots, shape), different(ring.v, v, slots, shape)]);
}

function checkSlots(name: string, counts: readonly { different: number; compared: number }[]): Check {
  const wrong = counts.reduce((sum, count) => sum + count.different, 0);
  const compared = counts.reduce((sum, count) => sum + count.compared, 0);
  const right = wrong === 0;
  return {
    right,
    line: `${name}: ${compared - wrong} of ${compared} elements are the nearest f16 to the source: ${verdict(right)}`,
  };
}

/** Elements of `cache` unlike the rounded row of the position that each slot should hold (zeros where none). */
function different(
  cache: Tensor<"f16">,
  rows: Float32Array,
  positions: readonly (number | undefined)[],
  { kvHeads, headDim, capacity }: { kvHeads: number; headDim: number; capacity: number },
): { different: number; compared: number } {
  const bits = new Uint16Array(cache.view().buffer, cache.byteOffset, cache.length);
  const expected = new Uint16Array(new Float16Array(rows).buffer);
  let count = 0;
  for (let head = 0; head < kvHeads; head++) {
    for (let slot = 0; slot < capacity; slot++) {
      const position = positions[slot];
      const at = (head * capacity + slot) * headDim;
      const from = position === undefined ? undefined : (position * kvHeads + head) * headDim;
      for (let i = 0; i < headDim; i++) {
        if (bits[at + i] !== (from === undefined ? 0 : expected[from + i])) count++;
      }
    }
  }
  return { different: count, compared: cache.length };
}
