import { flashAttnPrefillSupport } from "../../src/index.ts";
import type { Benchmark, BenchOptions } from "./benchmark.ts";
import { preparePlainAttention } from "./plain-attention.ts";
import { besideOneThread, preparePrefill, prepareTwoThreads, tokens } from "./prefill.ts";

/** Query rows of the plain loops: enough to time. */
const plainRows = 64;

/** A round takes up to a second; a quick run does less of the same work. */
const rounds = ({ quick }: BenchOptions): number => (quick ? 3 : 9);
const headCount = ({ quick }: BenchOptions): number => (quick ? 2 : 8);

/** GFLOP/s to reach on one thread. */
const targets = [
  [64, 12],
  [128, 12],
  [256, 12],
  [512, 8],
] as const;

/** Prefill that is not causal at one head size: on one thread, and on two beside one. */
export const prefillHeadDims: readonly Benchmark[] = targets.flatMap(([headDim, target]) => [
  {
    name: `prefill-bf16-d${headDim}-1t`,
    unit: "GFLOP/s",
    about: `flashAttnPrefill, 8 heads (2 in a quick run), 1,024 tokens, not causal, one thread (4 H L L D); ${kernelFacts(headDim)}`,
    baselineAbout: `plain f32 loops in TypeScript, the last ${plainRows} rows of one head`,
    target: { text: `at least ${target} GFLOP/s`, met: (value) => value >= target },
    rounds,
    warmUp: true,
    prepare: (options) => ({
      ...preparePrefill({ heads: headCount(options), headDim, threads: 1, causal: false }),
      baseline: preparePlainAttention({ tokens, headDim, rows: plainRows, causal: false }),
    }),
  },
  {
    ...besideOneThread,
    name: `prefill-bf16-d${headDim}-2t`,
    rounds,
    prepare: (options) => prepareTwoThreads({ heads: headCount(options), headDim, causal: false }),
  },
]);

/** The tiles of a kernel, and its threadgroup memory. */
function kernelFacts(headDim: number): string {
  const row = flashAttnPrefillSupport().find((each) => each.dtype === "bf16" && each.headDim === headDim);
  if (row === undefined) throw new Error(`no kernel of head size ${headDim}`);
  const { queryTile, keyTile, threadgroupMemory } = row;
  return `tiles of ${queryTile} x ${keyTile}, ${threadgroupMemory.toLocaleString("en")} bytes of threadgroup memory`;
}
