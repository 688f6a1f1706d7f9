import type { Device, Pass } from "../../src/index.ts";
import { threadNanoseconds } from "./thread-time.ts";

/** Passes of a round. */
const passes = 16;

/** Processor time in ns that a call of `encode` takes this thread, of `calls` to a pass which is never sent. */
export function encodeNanoseconds(device: Device, calls: number, encode: (pass: Pass) => void): number {
  let total = 0;
  for (let i = 0; i < passes; i++) {
    using pass = device.pass();
    const start = threadNanoseconds();
    for (let n = 0; n < calls; n++) encode(pass);
    total += threadNanoseconds() - start;
  }
  return total / (calls * passes);
}
