/** What synchronisation costs on the software device: a barrier, a function of the SIMD group. */
import { type Benchmark, usualRounds } from "./benchmark.ts";
import { prepareKernels } from "./kernel.ts";

const repeats = 20_000;

/** One kernel a kind of synchronisation; each repeats it in a loop that the compiler cannot shorten. */
const source = `
#include <metal_stdlib>
using namespace metal;
#define REPEAT(name, statement)                                                          \\
  kernel void name(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) { \\
    float x = out[i] + 1.0f;                                                             \\
    for (uint k = 0; k < ${repeats}; ++k) { statement; }                                \\
    out[i] = x;                                                                          \\
  }
REPEAT(bench_simdgroup_barrier, simdgroup_barrier(mem_flags::mem_none); x += 1.0f)
REPEAT(bench_threadgroup_barrier, threadgroup_barrier(mem_flags::mem_threadgroup); x += 1.0f)
REPEAT(bench_simd_sum, x = simd_sum(x) * 0.03125f)
`;

function synchronisation(
  name: string,
  about: string,
  baselineAbout: string,
  measured: { kernel: string; threads: number },
  baseline: { kernel: string; threads: number },
): Benchmark {
  return {
    name,
    unit: "ns",
    about,
    baselineAbout,
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const kernels = prepareKernels(source, 4096);
      const nanoseconds = ({ kernel, threads }: typeof measured) =>
        (kernels.seconds({ kernel, grid: threads, threads }) * 1e9) / repeats;
      return {
        measure: () => nanoseconds(measured),
        baseline: () => nanoseconds(baseline),
        dispose: kernels.dispose,
      };
    },
  };
}

const simdgroupBarrier = { kernel: "bench_simdgroup_barrier", threads: 32 };

/** A barrier of 256 threads. */
export const barrier256 = synchronisation(
  "barrier-256",
  "threadgroup_barrier of 256 threads",
  "an addition and simdgroup_barrier of one SIMD group",
  { kernel: "bench_threadgroup_barrier", threads: 256 },
  simdgroupBarrier,
);

/** A sum over the lanes of a SIMD group. */
export const simdSum = synchronisation(
  "simd-sum",
  "simd_sum of a float in 32 lanes",
  "an addition and simdgroup_barrier",
  { kernel: "bench_simd_sum", threads: 32 },
  simdgroupBarrier,
);
