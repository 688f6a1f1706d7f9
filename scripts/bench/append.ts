import {
  applyRope,
  type Device,
  kvCacheAppend,
  kvCacheCopySeq,
  type Pass,
  type RopeDType,
  type Tensor,
} from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type Benchmark, secondsOf, usualRounds } from "./benchmark.ts";

const [nTokens, nHeads, headDim] = [4096, 8, 128];
/** Passes of a round: the first calls of JavaScript take as long as the device. */
const passes = 8;
const rope = { theta: 1e6, pairing: "half" } as const;

/** K and V of one dtype, and caches for them. */
function streams(device: Device, dtype: RopeDType) {
  const values = Float32Array.from({ length: nTokens * nHeads * headDim }, (_, i) => (i % 1000) / 500 - 1);
  const stream = () => ({
    src: device.tensor(dtype, [nTokens, nHeads, headDim]).set(values),
    cache: device.tensor(dtype, [nHeads, nTokens, headDim]),
  });
  return { k: stream(), v: stream() };
}

/** K before rotation, and V, to their cache: in one dispatch, beside the plain copy. */
function appendBenchmark(dtype: RopeDType): Benchmark {
  return {
    name: `append-${dtype}`,
    unit: "GB/s",
    about: `kvCacheAppend, K turned, K and V ${dtype} 8/128, 4,096 tokens, one thread, 8 passes a round, submission included; bytes read and written`,
    baselineAbout: "kvCacheCopySeq of the same, K as it is",
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const device = openWithThreads(1);
      const { k, v } = streams(device, dtype);
      const turned: Tensor<RopeDType> = device.tensor(dtype, k.src.shape);
      const bytes = 4 * k.src.bytes.length;
      const run = (encode: (pass: Pass) => void) => {
        using pass = device.pass();
        encode(pass);
        pass.commitAndWait();
      };
      const side = (encode: (pass: Pass) => void) => () =>
        (passes * bytes) /
        1e9 /
        secondsOf(() => {
          for (let i = 0; i < passes; i++) run(encode);
        });
      const copy = (pass: Pass, src = k.src) =>
        kvCacheCopySeq(pass, { k: { src, cache: k.cache }, v, seqPosStart: 0 } as never);
      return {
        measure: side((pass) => kvCacheAppend(pass, { k, v, start: 0, rope })),
        baseline: side((pass) => copy(pass)),
        others: {
          "applyRope and kvCacheCopySeq": side((pass) => {
            applyRope(pass, { x: k.src, out: turned, layout: "sequence-major", ...rope });
            copy(pass, turned);
          }),
          "kvCacheAppend, K as it is": side((pass) => kvCacheAppend(pass, { k, v, start: 0 })),
        },
        dispose: () => device.dispose(),
      };
    },
  };
}

export const appendBenchmarks: readonly Benchmark[] = [appendBenchmark("f32"), appendBenchmark("bf16")];
