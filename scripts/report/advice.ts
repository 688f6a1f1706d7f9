import { formatNumber } from "../lib/table.ts";
import type { Measured } from "./measure.ts";

/** What a format may lose against the widest one measured and still be advised. */
const allowed = { perplexity: 0.01, recall: 0.01, agreement: 0.98 };

/** What follows from the rows for the choice of a format. */
export function advice(rows: readonly Measured[], questions: number): string {
  const best = rows.toSorted((a, b) => b.bitsPerValue - a.bitsPerValue)[0];
  if (best === undefined) throw new Error("no format was measured");
  const good = rows.filter(
    ({ perplexity, recallOfAll, agreement }) =>
      perplexity <= (1 + allowed.perplexity) * best.perplexity &&
      recallOfAll >= best.recallOfAll - Math.max(allowed.recall, 1 / questions) &&
      agreement >= allowed.agreement,
  );
  const least = (from: readonly Measured[]) => from.toSorted((a, b) => a.bitsPerValue - b.bitsPerValue)[0] ?? best;
  const same = rows.filter(
    ({ recallOfAll }) => recallOfAll >= best.recallOfAll - Math.max(allowed.recall, 1 / questions),
  );
  const [safe, small] = [least(good), least(same)];
  const of = ({ format, bitsPerValue }: Measured) =>
    `${format} (${formatNumber(bitsPerValue)} bits a value, ${formatNumber(16 / bitsPerValue)} times smaller than f16)`;
  return [
    `The smallest cache that changes next to nothing: ${of(safe)}:`,
    `perplexity within ${100 * allowed.perplexity} %, the same byte as ${best.format} in ${100 * allowed.agreement} % or more, recall within ` +
      `${100 * allowed.recall} point.`,
    `The smallest that still finds the facts: ${of(small)}.`,
    "",
    `One of the ${questions} questions is ${formatNumber(100 / questions)} points of recall; --texts asks more.`,
    "The model is small: 6 layers, heads of 64, trained on texts like these. It shows how codes of K and V act on",
    "exact recall, the task that needs a cache most, and their order by quality. It cannot say at which width a",
    "large model begins to lose: those have more layers, in which errors add up, more redundancy among heads, and",
    "channels of outliers in K, which the Hadamard transform spreads before codes are chosen.",
  ].join("\n");
}

/** What others measured on large models, with where they say so. */
export const published = `Published figures for large models, rotated caches as here unless said:
  TurboQuant (arXiv 2504.19874): 3.5 bits as good as 16 on LongBench and needle tests, small losses at 2.5
  Qwen3 1.7B (mlx-lm pull request 1555 and issue 1550): K 5 / V 4 and K 6 / V 3 about +3 % perplexity, K 8 / V 4
    +0.5 %; K of 4 bits up to +29 % on a model with normalized keys, K of 3 bits collapses
  Llama 3.1 8B (llama.cpp pull request 21192): K of 4 bits, perplexity 8.97 of 8.85; 9.05 without rotation
  TinyLlama 1.1B (llama.cpp pull request 20995): 4 bits 2.74 of 2.63; 2.99 without rotation`;
