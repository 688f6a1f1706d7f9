import type { Pass, Tensor } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type PreparedBenchmark, secondsOf } from "./benchmark.ts";

/** Bytes that a copy reads. */
export const sourceBytes = 64 * 2 ** 20;

/**
 * A copy on one thread in GB/s of its source, beside `Uint8Array.set` of the
 * same bytes between memory of the same kind.
 */
export function prepareCopy<T extends "f32" | "f16">(
  srcShape: readonly number[],
  cacheDType: T,
  cacheShape: readonly number[],
  encode: (pass: Pass, src: Tensor<"f32">, cache: Tensor<T>) => void,
): PreparedBenchmark {
  const device = openWithThreads(1);
  const src = device.tensor("f32", srcShape);
  const cache = device.tensor(cacheDType, cacheShape);
  const copy = device.tensor("u8", [sourceBytes]);
  src.view().forEach((_, i, values) => {
    values[i] = (i % 1000) / 8;
  });
  const from = src.bytes;
  const to = copy.bytes;
  const gigabytesPerSecond = (action: () => void) => sourceBytes / 1e9 / secondsOf(action);
  return {
    measure: () =>
      gigabytesPerSecond(() => {
        using pass = device.pass();
        encode(pass, src, cache);
        pass.commitAndWait();
      }),
    baseline: () => gigabytesPerSecond(() => to.set(from)),
    dispose: () => device.dispose(),
  };
}
