import { expect } from "bun:test";
import type { Device, Tensor } from "../../src/index.ts";

/** Whether kernels with functions of lanes run as vectors here. */
export const isOnVectors = process.platform === "linux" && process.env["SOFTMETAL_EXECUTOR"] !== "threads";

/** Runs `threads` threads of a kernel, one threadgroup, as vectors where that can be. */
export function runOnVectors(device: Device, kernel: string, buffers: Tensor[], threads: number): void {
  using pipeline = device.pipeline(kernel);
  if (isOnVectors) expect(pipeline.executor).toBe("vectors");
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers, grid: threads, threads });
  pass.commitAndWait();
}
