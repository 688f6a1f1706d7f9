import { applyRope } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type Benchmark, secondsOf, usualRounds } from "./benchmark.ts";

const [nTokens, nHeads, nKvHeads, headDim] = [1024, 32, 8, 128];
/** Passes of a round: the first calls of JavaScript take as long as the device. */
const passes = 16;

/** Rotary positions of a prompt's q and k in bf16, read and written. */
export const rope: Benchmark = {
  name: "rope",
  unit: "GB/s",
  about:
    "applyRope in place, q and k bf16 32/8/128, 1,024 tokens, one thread, 16 passes a round, submission included; bytes read and written",
  baselineAbout: "Uint8Array.set of the same bytes",
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const device = openWithThreads(1);
    const values = Float32Array.from({ length: nTokens * nHeads * headDim }, (_, i) => (i % 1000) / 500 - 1);
    const q = device.tensor("bf16", [nTokens, nHeads, headDim]).set(values);
    const k = device.tensor("bf16", [nTokens, nKvHeads, headDim]).set(values.subarray(0, nTokens * nKvHeads * headDim));
    const bytes = q.bytes.length + k.bytes.length;
    const [from, to] = [device.tensor("u8", [bytes]).bytes, device.tensor("u8", [bytes]).bytes];
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
};
