import { applyRope } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type Benchmark, secondsOf, usualRounds } from "./benchmark.ts";

const [nHeads, nKvHeads, headDim] = [32, 8, 128];

/** Rotary positions of a prompt's q and k in bf16, read and written; several passes a round where one is short. */
const ropeOf = (name: string, nTokens: number, passes: number, target?: Benchmark["target"]): Benchmark => ({
  name,
  unit: "GB/s",
  about: `applyRope in place, q and k bf16 32/8/128, ${nTokens.toLocaleString("en")} tokens, one thread, ${passes} passes a round, submission included; bytes read and written`,
  baselineAbout: "Uint8Array.set of the same bytes",
  ...(target && { target }),
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const device = openWithThreads(1);
    const values = Float32Array.from({ length: nTokens * nHeads * headDim }, (_, i) => (i % 1000) / 500 - 1);
    const q = device.tensor("bf16", [nTokens, nHeads, headDim]).set(values);
    const k = device.tensor("bf16", [nTokens, nKvHeads, headDim]).set(values.subarray(0, nTokens * nKvHeads * headDim));
    const bytes = q.bytes.length + k.bytes.length;
    // Of memory that nobody has written all pages are one, which a copy would read from a cache.
    const [from, to] = [device.tensor("u8", [bytes]).bytes.fill(1), device.tensor("u8", [bytes]).bytes.fill(2)];
    const gigabytesPerSecond = (action: () => void) => (2 * bytes * passes) / 1e9 / secondsOf(() => repeat(action));
    const repeat = (action: () => void) => {
      for (let i = 0; i < passes; i++) action();
    };
    return {
      measure: () =>
        gigabytesPerSecond(() => {
          using pass = device.pass();
          applyRope(pass, {
            q: { x: q },
            k: { x: k },
            start: 5,
            theta: 1e6,
            pairing: "half",
            layout: "sequence-major",
          });
          pass.commitAndWait();
        }),
      baseline: () => gigabytesPerSecond(() => to.set(from)),
      dispose: () => device.dispose(),
    };
  },
});

/** Of 10 MiB, which stay in the caches of many processors, and of 80 MiB, which come from memory as a copy's bytes do. */
export const ropeBenchmarks: readonly Benchmark[] = [
  ropeOf("rope", 1024, 16),
  ropeOf("rope-8192", 8192, 2, { text: "at least 0.7 of it", met: (_, ratio) => ratio >= 0.7 }),
];
