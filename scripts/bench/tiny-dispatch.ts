/** What a dispatch of few threads costs on a device of two threads: no more than on one, whatever else runs. */
import { type Benchmark, median, usualRounds } from "./benchmark.ts";
import { prepareKernels } from "./kernel.ts";

const threads = 64;
const repeats = 100;
/** Passes of which a round takes the median: the system may take a thread off its processor in some. */
const passes = 25;
/** us that a second thread may cost. */
const allowance = 3;

const source = `
#include <metal_stdlib>
using namespace metal;
kernel void bench_tiny_dispatch(device float *values [[buffer(0)]], uint i [[thread_position_in_grid]],
                                uint group [[threadgroup_position_in_grid]]) {
  values[i] = values[i] * 0.5f + float(group);
}
`;

/** Keeps every processor but one busy, as long as this process lives. */
function spin(): Disposable {
  const script = `while kill -0 ${process.pid}; do i=0; while [ $i -lt 10000 ]; do i=$((i + 1)); done; done`;
  const spinning = Array.from({ length: navigator.hardwareConcurrency - 1 }, () =>
    Bun.spawn(["sh", "-c", script], { stdout: "ignore", stderr: "ignore" }),
  );
  return {
    [Symbol.dispose]() {
      for (const process of spinning) process.kill();
    },
  };
}

function tinyDispatch(threadgroups: number, isBusy: boolean): Benchmark {
  const grid = threadgroups * threads;
  return {
    name: `tiny-dispatch-${threadgroups}${isBusy ? "-busy" : ""}`,
    unit: "us",
    about: `a dispatch of ${threadgroups} threadgroups of ${threads} threads, one of ${repeats} in a pass, on two threads${isBusy ? ", all processors but one busy" : ""}`,
    baselineAbout: "the same on one thread",
    target: {
      text: `at most ${allowance} us more`,
      met: (value, ratio) => value - value / ratio <= allowance,
    },
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const [two, one] = [2, 1].map((count) => prepareKernels(source, 4 * grid, count)) as [Kernels, Kernels];
      const spinning = isBusy ? spin() : undefined;
      const run = { kernel: "bench_tiny_dispatch", grid, threads, repeats };
      const microseconds = (kernels: Kernels) =>
        (median(Array.from({ length: passes }, () => kernels.seconds(run))) * 1e6) / repeats;
      return {
        measure: () => microseconds(two),
        baseline: () => microseconds(one),
        dispose() {
          spinning?.[Symbol.dispose]();
          two.dispose();
          one.dispose();
        },
      };
    },
  };
}

type Kernels = ReturnType<typeof prepareKernels>;

/** Two threadgroups, one for each of eleven rows, and as many as one row of a large model has. */
export const tinyDispatches: readonly Benchmark[] = [2, 11, 430].flatMap((threadgroups) => [
  tinyDispatch(threadgroups, false),
  tinyDispatch(threadgroups, true),
]);
