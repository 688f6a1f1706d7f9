import { type Benchmark, usualRounds } from "./benchmark.ts";
import { besideOneThread, prepareTwoThreads } from "./prefill.ts";

/** Causal prefill on two threads, beside one. */
export const prefillTwoThreads: Benchmark = {
  ...besideOneThread,
  name: "prefill-bf16-d256-causal-2t",
  rounds: usualRounds,
  prepare: () => prepareTwoThreads({ heads: 8, headDim: 256, causal: true }),
};
