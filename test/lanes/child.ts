/** Runs the random kernels that its input lists, on the executor of its environment; prints a sum of what each leaves. */

import { seededBits } from "../../scripts/lib/random.ts";
import { Device } from "../../src/index.ts";
import type { RandomKernels } from "./compare.ts";
import { inputCount, kernelText, outputCount, prelude } from "./kernels.ts";

/** Threads of the grid and of a threadgroup: whole SIMD groups, and partial ones. */
const grids = [
  [128, 64],
  [75, 50],
] as const;
const counterCount = 24;

const executor = process.env["SOFTMETAL_EXECUTOR"] ?? "vectors";
const { kernels, optimizationLevel } = JSON.parse(await Bun.stdin.text()) as RandomKernels;
using device = Device.open();
// Small kernels beside them: on average they are short then, and all are compiled together, the source read once.
const small = kernels.flatMap((_, k) => ["a", "b"].map((letter) => `kernel void small_${k}${letter}() {}`));
const text = [...kernels.map(kernelText), ...small].join("\n");
device.registerSource("random.metal", `#include <metal_stdlib>\nusing namespace metal;\n${prelude}\n${text}\n`, {
  optimizationLevel,
});
const results = kernels.map(({ name, hasMatrices }, index) => {
  using pipeline = device.pipeline(name);
  if (!pipeline.executor.startsWith(executor)) throw new Error(`${name} runs as ${pipeline.executor}`);
  return (hasMatrices ? grids.slice(0, 1) : grids).map(([grid, threads]) => {
    const bits = seededBits(index + grid);
    const tensor = (count: number, of: () => number) => {
      const result = device.tensor("u8", [count * 4]);
      result.bytes.set(new Uint8Array(Uint32Array.from({ length: count }, of).buffer));
      return result;
    };
    using out = tensor(grid * outputCount, () => 0);
    using input = tensor(inputCount, bits);
    using counters = tensor(counterCount, () => 0);
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [out, input, counters], grid, threads });
    pass.commitAndWait();
    return [out, counters].map(({ bytes }) => Bun.hash(bytes).toString(16)).join(" ");
  });
});
console.log(JSON.stringify(results));
