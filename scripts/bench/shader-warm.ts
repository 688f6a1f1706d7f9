import { type Benchmark, usualRounds } from "./benchmark.ts";
import { ShaderStarts } from "./shader.ts";

/** The first pipeline of the largest built-in file, found compiled. */
export const shaderWarm: Benchmark = {
  name: "shader-warm",
  unit: "ms",
  about: "first flashAttnPrefill of a new process, filled shader cache",
  baselineAbout: "the cold start that filled it (measured once)",
  target: { text: "at most 20 ms", met: (value) => value <= 20 },
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const starts = new ShaderStarts();
    const cold = starts.cold();
    return { measure: () => starts.warm(), baseline: () => cold, dispose: () => starts.dispose() };
  },
};
