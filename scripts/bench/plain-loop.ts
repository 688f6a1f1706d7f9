/** A kernel without barriers beside the same loop in C. */
import { FFIType, ptr } from "bun:ffi";
import { type Benchmark, secondsOf, usualRounds } from "./benchmark.ts";
import { prepareKernels } from "./kernel.ts";
import { compileC } from "./plain-c.ts";

const count = 1 << 20;
const repeats = 8;

/** Horner's rule of degree 7: 16 operations for 8 bytes of memory. */
const polynomial = "((((((x * 0.1f + 0.2f) * x + 0.3f) * x + 0.4f) * x + 0.5f) * x + 0.6f) * x + 0.7f) * x + 0.8f";

const source = `
#include <metal_stdlib>
using namespace metal;
kernel void bench_plain_loop(device float *values [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  const float x = values[i] * 0.5f;
  values[i] = ${polynomial};
}
`;

const plainC = `
void loop(float *values, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    const float x = values[i] * 0.5f;
    values[i] = ${polynomial};
  }
}
`;

export const plainLoop: Benchmark = {
  name: "plain-loop",
  unit: "Gelement/s",
  about: "a polynomial of degree 7 on 4 MiB, a kernel without barriers, one thread, a pass of 8 dispatches",
  baselineAbout: "the same loop in C by the same clang",
  target: { text: "at least 0.9 of it", met: (_, ratio) => ratio >= 0.9 },
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const kernels = prepareKernels(source, 4 * count);
    const library = compileC(plainC, { loop: { args: [FFIType.ptr, FFIType.u32], returns: FFIType.void } });
    const values = ptr(kernels.buffer.bytes);
    const rate = (seconds: number) => (count * repeats) / 1e9 / seconds;
    return {
      measure: () => rate(kernels.seconds({ kernel: "bench_plain_loop", grid: count, threads: 1024, repeats })),
      baseline() {
        const { loop } = library.symbols;
        return rate(
          secondsOf(() => {
            for (let i = 0; i < repeats; i++) loop(values, count);
          }),
        );
      },
      dispose() {
        kernels.dispose();
        library.close();
      },
    };
  },
};
