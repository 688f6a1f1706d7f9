import type { Tensor } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { secondsOf } from "./benchmark.ts";

/** Dispatches of one kernel of a source of the benchmark's own. */
export interface KernelRun {
  /** Name of the kernel in the source. */
  readonly kernel: string;
  /** Threads in the grid and in a threadgroup. */
  readonly grid: number;
  readonly threads: number;
  /** Dispatches one after another in one pass; 1 unless given. */
  readonly repeats?: number;
}

/** A device with `source`, of one thread unless told, and one buffer of zeros that every kernel gets at index 0. */
export function prepareKernels(source: string, bytes: number, threads = 1) {
  const device = openWithThreads(threads);
  device.registerSource("bench.metal", source);
  const buffer: Tensor = device.tensor("u8", [bytes]);
  return {
    buffer,
    /** Seconds of one pass, submission included. */
    seconds({ kernel, grid, threads, repeats = 1 }: KernelRun): number {
      using pipeline = device.pipeline(kernel);
      using pass = device.pass();
      for (let i = 0; i < repeats; i++) pass.dispatch(pipeline, { buffers: [buffer], grid, threads });
      return secondsOf(() => pass.commitAndWait());
    },
    dispose: () => device.dispose(),
  };
}
