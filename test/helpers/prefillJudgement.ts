import {
  type AttentionMask,
  type AttentionProblem,
  decode,
  encode,
  plainAttention,
  referenceAttentionWithLogarithms,
} from "../../src/reference/index.ts";
import { judgeValues } from "./prefill.ts";
import type { OptionScene } from "./prefillOptions.ts";

/** What the oracles say of a sequence, head-major. */
function expectedOf(scene: OptionScene, b: number, mask?: AttentionMask) {
  const { row, heads, sequences, tail } = scene.entry;
  const ofProblem = (problem: AttentionProblem) => ({
    ...referenceAttentionWithLogarithms(problem),
    ofPlain: plainAttention(problem, row.dtype),
  });
  if (tail === undefined) return ofProblem(scene.problemOf(b, mask));
  const { rows } = sequences[b] as { rows: number };
  const byRow = Array.from({ length: rows }, (_, i) => ofProblem(scene.problemOf(b, mask, i)));
  const gather = (name: "out" | "lse" | "ofPlain", size: number) =>
    Float64Array.from({ length: heads * rows * size }, (_, at) => {
      const [head, i] = [Math.floor(at / (rows * size)), Math.floor(at / size) % rows];
      return (byRow[i] as ReturnType<typeof ofProblem>)[name][head * size + (at % size)] as number;
    });
  return { out: gather("out", row.headDim), lse: gather("lse", 1), ofPlain: gather("ofPlain", row.headDim) };
}

/** What is wrong with a result, in words; undefined where nothing is. */
export function judgeOptions(scene: OptionScene, mask?: AttentionMask): string | undefined {
  const { row, sequences, hasLse, formatK } = scene.entry;
  // A decoded key may round to the other neighbour where it lies between two.
  const slack = formatK === undefined ? 0 : row.dtype === "bf16" ? 2 ** -8 : 2 ** -11;
  const [exact, plain, actual]: number[][] = [[], [], []];
  for (const b of sequences.keys()) {
    const { out, lse, ofPlain } = expectedOf(scene, b, mask);
    const got = Float64Array.from(scene.bitsOfSequence(b), (bits) => decode(row.dtype, bits));
    for (let start = 0; start < out.length; start += row.headDim) {
      const isEmpty = out.subarray(start, start + row.headDim).every((value) => value === 0);
      if (isEmpty && !got.subarray(start, start + row.headDim).every((value) => Object.is(value, 0))) {
        return `row ${start / row.headDim} of sequence ${b} attends nothing, but is not 0`;
      }
    }
    exact?.push(...out);
    plain?.push(...ofPlain);
    actual?.push(...got);
    const logarithms = scene.logarithmsOfSequence(b);
    for (const [i, expected] of lse.entries()) {
      const value = logarithms[i] as number;
      if (hasLse ? value === expected : Number.isNaN(value)) continue;
      if (!hasLse) return "logarithms were written that nobody asked for";
      if (
        !Number.isFinite(expected) ||
        !(Math.abs(value - expected) <= slack + 1e-5 * Math.max(1, Math.abs(expected)))
      ) {
        return `lse ${i} of sequence ${b} is ${value}, not ${expected}`;
      }
    }
  }
  const nan = encode(row.dtype, Number.NaN);
  if (!scene.unowned().every((bits) => bits === nan)) return "rows were written that no sequence has";
  return judgeValues(row, exact as number[], plain as number[], actual as number[]);
}
