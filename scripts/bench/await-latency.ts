/** What `await pass.commit()` takes beside `pass.commitAndWait()`, which blocks. */
import { openWithThreads } from "../lib/open-device.ts";
import { Spin } from "../lib/spin.ts";
import { type Benchmark, median, usualRounds } from "./benchmark.ts";
import { threadNanoseconds } from "./thread-time.ts";

/** us that waiting without blocking may add. */
const allowance = 150;
/** Passes of which a round takes the median. */
const passes = 25;

function awaitLatency(milliseconds: number): Benchmark {
  return {
    name: `await-latency-${milliseconds}ms`,
    unit: "us",
    about: `await pass.commit() of a pass of ${milliseconds} ms on the device`,
    baselineAbout: "commitAndWait() of the same",
    target: { text: `at most ${allowance} us more`, met: (value, ratio) => value - value / ratio <= allowance },
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const device = openWithThreads(1);
      const spin = new Spin(device);
      return {
        async measure() {
          const times: number[] = [];
          for (let i = 0; i < passes; i++) {
            using pass = spin.pass(milliseconds / 1e3);
            const start = Bun.nanoseconds();
            await pass.commit();
            times.push((Bun.nanoseconds() - start) / 1e3);
          }
          return median(times);
        },
        baseline() {
          const times: number[] = [];
          for (let i = 0; i < passes; i++) {
            using pass = spin.pass(milliseconds / 1e3);
            const start = Bun.nanoseconds();
            pass.commitAndWait();
            times.push((Bun.nanoseconds() - start) / 1e3);
          }
          return median(times);
        },
        dispose: () => device.dispose(),
      };
    },
  };
}

const longPass = 0.2;

/** What waiting for a long pass keeps the processor busy with, on JavaScript's thread. */
const awaitProcessor: Benchmark = {
  name: "await-processor",
  unit: "%",
  about: `processor time of JavaScript's thread while it awaits a pass of ${longPass * 1e3} ms`,
  baselineAbout: "polling pass.info every millisecond",
  target: { text: "at most 2 %", met: (value) => value <= 2 },
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const device = openWithThreads(1);
    const spin = new Spin(device);
    async function share(wait: (pass: ReturnType<typeof spin.pass>) => Promise<void>): Promise<number> {
      using pass = spin.pass(longPass);
      const start = Bun.nanoseconds();
      const before = threadNanoseconds();
      await wait(pass);
      return (100 * (threadNanoseconds() - before)) / (Bun.nanoseconds() - start);
    }
    return {
      measure: () => share((pass) => pass.commit()),
      baseline: () =>
        share(async (pass) => {
          const ended = pass.commit();
          while (pass.info.state === "committed") await Bun.sleep(1);
          await ended;
        }),
      dispose: () => device.dispose(),
    };
  },
};

/** Short passes, as a decode step is, and one that takes long. */
export const awaitBenchmarks: readonly Benchmark[] = [0.1, 1, 4].map(awaitLatency).concat(awaitProcessor);
