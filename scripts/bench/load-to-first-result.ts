import { type Benchmark, secondsOf, usualRounds } from "./benchmark.ts";
import { runChild } from "./child.ts";

/** A whole process: import, device, one copy, its result. */
export const loadToFirstResult: Benchmark = {
  name: "load-to-first-result",
  unit: "ms",
  about: "a process that imports the package, opens the device and reads one kvCacheCopy",
  baselineAbout: "a bun process that does nothing",
  target: { text: "at most 300 ms", met: (value) => value <= 300 },
  rounds: usualRounds,
  warmUp: true,
  prepare: () => ({
    measure: () => 1000 * secondsOf(() => runChild("child-first-result.ts")),
    baseline: () => 1000 * secondsOf(() => runChild("child-nothing.ts")),
    dispose: () => {},
  }),
};
