import { kvCacheCopySeq } from "../../src/index.ts";
import { type Benchmark, usualRounds } from "./benchmark.ts";
import { prepareCopy, sourceBytes } from "./copy.ts";

const nHeads = 8;
const headDim = 256;
const tokens = sourceBytes / 4 / (nHeads * headDim);

/** 64 MiB of token-major f32 into a head-major f16 cache. */
export const copySeqF32F16: Benchmark = {
  name: "copy-seq-f32-f16",
  unit: "GB/s",
  about: "kvCacheCopySeq f32 to f16 of 64 MiB of source, one thread, submission included",
  baselineAbout: "Uint8Array.set of the same bytes",
  rounds: usualRounds,
  warmUp: true,
  prepare: () =>
    prepareCopy([tokens, nHeads, headDim], "f16", [nHeads, tokens, headDim], (pass, src, cache) =>
      kvCacheCopySeq(pass, { src, cache, seqPosStart: 0 }),
    ),
};
