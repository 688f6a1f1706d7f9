import { flashAttnPrefill } from "../../src/index.ts";
import { normalArray } from "../lib/random.ts";
import { type Measurement, secondsOf } from "./benchmark.ts";
import { openDevice } from "./environment.ts";

/** The attention problem of both benchmarks. */
export const problem = { heads: 8, tokens: 1024, headDim: 256 } as const;

/** Multiplications and additions of causal attention: half of 4 H L L D. */
const flops = (4 * problem.heads * problem.tokens ** 2 * problem.headDim) / 2;

/** Causal prefill in bf16 on a device of `threads` threads, in GFLOP/s, submission included. */
export function preparePrefill(threads: number): { measure: Measurement; dispose: () => void } {
  const device = openDevice(threads);
  const { heads, tokens, headDim } = problem;
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
        flashAttnPrefill(pass, { q, k, v, out, causal: true });
        pass.commitAndWait();
      });
      return flops / 1e9 / seconds;
    },
    dispose: () => device.dispose(),
  };
}
