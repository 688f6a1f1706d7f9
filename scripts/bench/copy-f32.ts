import { kvCacheCopy } from "../../src/index.ts";
import { type Benchmark, usualRounds } from "./benchmark.ts";
import { prepareCopy, sourceBytes } from "./copy.ts";

const rowSize = 1024;
const rows = sourceBytes / 4 / rowSize;

/** 64 MiB of f32 rows into a linear cache. */
export const copyF32: Benchmark = {
  name: "copy-f32",
  unit: "GB/s",
  about: "kvCacheCopy f32 of 64 MiB, one thread, submission included",
  baselineAbout: "Uint8Array.set of the same bytes",
  target: { text: "at least 0.8 of it", met: (_, ratio) => ratio >= 0.8 },
  rounds: usualRounds,
  warmUp: true,
  prepare: () =>
    prepareCopy([rows, rowSize], "f32", [rows, rowSize], (pass, src, cache) =>
      kvCacheCopy(pass, { src, cache, writePos: 0 }),
    ),
};
