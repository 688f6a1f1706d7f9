import { flashAttnPrefill } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { normalArray } from "../lib/random.ts";
import { type Benchmark, type Measurement, type PreparedBenchmark, secondsOf } from "./benchmark.ts";

/** Tokens of the attention problem of the prefill benchmarks. */
export const tokens = 1024;

/** What differs between them. */
export interface PrefillOptions {
  readonly heads: number;
  readonly headDim: number;
  readonly threads: number;
  readonly causal: boolean;
}

/**
 * Prefill in bf16 on a device of `threads` threads, in GFLOP/s, submission
 * included: 4 H L L D multiplications and additions, half of them when causal.
 */
export function preparePrefill({ heads, headDim, threads, causal }: PrefillOptions): {
  measure: Measurement;
  dispose: () => void;
} {
  const device = openWithThreads(threads);
  const flops = (4 * heads * tokens ** 2 * headDim) / (causal ? 2 : 1);
  const tensor = (seed: number) =>
    device.tensor("bf16", [1, heads, tokens, headDim]).set(normalArray(heads * tokens * headDim, 1, seed));
  const q = tensor(1);
  const k = tensor(2);
  const v = tensor(3);
  const out = device.tensor("bf16", q.shape);
  return {
    measure: () => {
      const seconds = secondsOf(() => {
        using pass = device.pass();
        flashAttnPrefill(pass, { q, k, v, out, causal });
        pass.commitAndWait();
      });
      return flops / 1e9 / seconds;
    },
    dispose: () => device.dispose(),
  };
}

/** What benchmarks of two threads beside one have in common. */
export const besideOneThread = {
  unit: "GFLOP/s",
  about: "the same on two threads",
  baselineAbout: "the same on one thread",
  target: { text: "at least 1.8 times it", met: (_, ratio) => ratio >= 1.8 },
  warmUp: true,
} as const satisfies Partial<Benchmark>;

/** Prefill on two threads, with the same on one thread as baseline. */
export function prepareTwoThreads(work: Omit<PrefillOptions, "threads">): PreparedBenchmark {
  const two = preparePrefill({ ...work, threads: 2 });
  const one = preparePrefill({ ...work, threads: 1 });
  return {
    measure: two.measure,
    baseline: one.measure,
    dispose() {
      two.dispose();
      one.dispose();
    },
  };
}
