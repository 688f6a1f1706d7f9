/** What `pass.dispatch` of a caller's kernel costs on the host, with argument objects made anew and used again. */
import type { Pipeline, Tensor } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type Benchmark, usualRounds } from "./benchmark.ts";
import { encodeNanoseconds } from "./encode-time.ts";

const source = `
#include <metal_stdlib>
using namespace metal;
kernel void bench_saxpy(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                        constant float &a [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  y[i] += a * x[i];
}
`;

function dispatchHostCost(dispatches: number): Benchmark {
  return {
    name: `dispatch-host-cost-${dispatches}`,
    unit: "ns",
    about: `pass.dispatch of a kernel with two tensors and 4 bytes, ${dispatches.toLocaleString("en")} to a pass, encoded only, processor time`,
    baselineAbout: "the same with one argument object for all",
    target: { text: "at most 800 ns, both", met: (value, ratio) => value <= 800 && value / ratio <= 800 },
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const device = openWithThreads(1);
      device.registerSource("saxpy.metal", source);
      const pipeline: Pipeline = device.pipeline("bench_saxpy");
      const x: Tensor = device.tensor("f32", [1024]);
      const y: Tensor = device.tensor("f32", [1024]);
      const a = new Float32Array([2]);
      const reused = {
        buffers: { 0: { tensor: x, access: "read" }, 1: y },
        bytes: { 2: a },
        grid: 1024,
        threads: 256,
      } as const;
      return {
        measure: () =>
          encodeNanoseconds(device, dispatches, (pass) =>
            pass.dispatch(pipeline, {
              buffers: { 0: { tensor: x, access: "read" }, 1: y },
              bytes: { 2: a },
              grid: 1024,
              threads: 256,
            }),
          ),
        baseline: () => encodeNanoseconds(device, dispatches, (pass) => pass.dispatch(pipeline, reused)),
        dispose: () => device.dispose(),
      };
    },
  };
}

export const dispatchBenchmarks: readonly Benchmark[] = [500, 4096].map(dispatchHostCost);
