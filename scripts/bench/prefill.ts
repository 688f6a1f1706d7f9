import { type Device, flashAttnPrefill } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { normalArray } from "../lib/random.ts";
import { type Benchmark, type Measurement, type PreparedBenchmark, secondsOf } from "./benchmark.ts";

/** Tokens of the attention problem of the prefill benchmarks. */
export const tokens = 1024;

/** Extents of attention of a whole prompt, whose keys have as many heads as its queries. */
export interface PromptExtents {
  readonly tokens: number;
  readonly heads: number;
  readonly headDim: number;
}

/** Multiplications and additions: 4 H L L D, half of them when causal. */
export function operationsOf({ tokens, heads, headDim, causal }: PromptExtents & { readonly causal: boolean }): number {
  return (4 * heads * tokens ** 2 * headDim) / (causal ? 2 : 1);
}

/** Tensors in bf16, [1, heads, tokens, headDim], of normal values. */
export function promptTensors(device: Device, { tokens, heads, headDim }: PromptExtents) {
  const shape = [1, heads, tokens, headDim];
  const tensor = (seed: number) => device.tensor("bf16", shape).set(normalArray(heads * tokens * headDim, 1, seed));
  return { q: tensor(1), k: tensor(2), v: tensor(3), out: device.tensor("bf16", shape) };
}

/** What differs between the prefill benchmarks. */
export interface PrefillOptions {
  readonly heads: number;
  readonly headDim: number;
  readonly threads: number;
  readonly causal: boolean;
}

/** Prefill in bf16 on a device of `threads` threads, in GFLOP/s, submission included. */
export function preparePrefill({ heads, headDim, threads, causal }: PrefillOptions): {
  measure: Measurement;
  dispose: () => void;
} {
  const device = openWithThreads(threads);
  const extents = { tokens, heads, headDim };
  const operations = operationsOf({ ...extents, causal });
  const tensors = promptTensors(device, extents);
  return {
    measure: () => {
      const seconds = secondsOf(() => {
        using pass = device.pass();
        flashAttnPrefill(pass, { ...tensors, causal });
        pass.commitAndWait();
      });
      return operations / 1e9 / seconds;
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
