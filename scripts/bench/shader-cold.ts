import type { Benchmark } from "./benchmark.ts";
import { ShaderStarts } from "./shader.ts";

/** The first pipeline of the largest built-in file, compiled. */
export const shaderCold: Benchmark = {
  name: "shader-cold",
  unit: "ms",
  about: "first flashAttnPrefill of a new process, empty shader cache",
  baselineAbout: "the same with a filled cache",
  target: { text: "at most 5 s", met: (value) => value <= 5000 },
  rounds: ({ quick }) => (quick ? 2 : 9),
  warmUp: false,
  prepare() {
    const starts = new ShaderStarts();
    return { measure: () => starts.cold(), baseline: () => starts.warm(), dispose: () => starts.dispose() };
  },
};
