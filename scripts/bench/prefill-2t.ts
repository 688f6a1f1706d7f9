import { type Benchmark, usualRounds } from "./benchmark.ts";
import { preparePrefill } from "./prefill.ts";

/** Causal prefill on two threads, beside one. */
export const prefillTwoThreads: Benchmark = {
  name: "prefill-bf16-d256-causal-2t",
  unit: "GFLOP/s",
  about: "the same on two threads",
  baselineAbout: "the same on one thread",
  target: { text: "at least 1.8 times it", met: (_, ratio) => ratio >= 1.8 },
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const two = preparePrefill({ heads: 8, headDim: 256, threads: 2, causal: true });
    const one = preparePrefill({ heads: 8, headDim: 256, threads: 1, causal: true });
    return {
      measure: two.measure,
      baseline: one.measure,
      dispose() {
        two.dispose();
        one.dispose();
      },
    };
  },
};
