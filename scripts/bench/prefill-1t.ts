import { type Benchmark, usualRounds } from "./benchmark.ts";
import { preparePlainAttention } from "./plain-attention.ts";
import { preparePrefill, tokens } from "./prefill.ts";

/** Query rows of the plain loops: enough to time, a 64th of the work. */
const plainRows = 128;

const headDim = 256;

/** Causal prefill on one thread. */
export const prefillOneThread: Benchmark = {
  name: "prefill-bf16-d256-causal-1t",
  unit: "GFLOP/s",
  about: "flashAttnPrefill, 8 heads, 1,024 tokens, one thread (half of 4 H L L D)",
  baselineAbout: `plain f32 loops in TypeScript, the last ${plainRows} rows of one head`,
  target: { text: "at least 12 GFLOP/s", met: (value) => value >= 12 },
  rounds: usualRounds,
  warmUp: true,
  prepare: () => ({
    ...preparePrefill({ heads: 8, headDim, threads: 1, causal: true }),
    baseline: preparePlainAttention({ tokens, headDim, rows: plainRows, causal: true }),
  }),
};
