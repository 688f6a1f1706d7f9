import {
  applyRope,
  type Device,
  hadamardQuantizeKvSeq,
  KvCache,
  kvCacheAppend,
  kvCacheBytes,
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

/** Memory for codes. */
interface CodesOf<Bits extends number> {
  readonly packed: Tensor<"u8">;
  readonly norms: Tensor<"f32">;
  readonly bits: Bits;
}

/** K, before rotation where it turns, and V, to their cache: in one dispatch, beside the plain copy. */
function appendBenchmark(dtype: RopeDType, isTurned: boolean): Benchmark {
  return {
    name: `append-${dtype}${isTurned ? "" : "-plain"}`,
    unit: "GB/s",
    about: `kvCacheAppend, K ${isTurned ? "turned" : "as it is"}, K and V ${dtype} 8/128, 4,096 tokens, one thread, 8 passes a round, submission included; bytes read and written`,
    baselineAbout: "kvCacheCopySeq of the same, K as it is",
    ...(!isTurned && { target: { text: "at least 0.9 of it", met: (_: number, ratio: number) => ratio >= 0.9 } }),
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
      const copy = (pass: Pass, src = k.src) => kvCacheCopySeq(pass, { k: { src, cache: k.cache }, v, seqPosStart: 0 });
      return {
        measure: side((pass) => kvCacheAppend(pass, { k, v, start: 0, ...(isTurned && { rope }) })),
        baseline: side((pass) => copy(pass)),
        ...(isTurned && {
          others: {
            "applyRope and kvCacheCopySeq": side((pass) => {
              applyRope(pass, { x: k.src, out: turned, layout: "sequence-major", ...rope });
              copy(pass, turned);
            }),
          },
        }),
        dispose: () => device.dispose(),
      };
    },
  };
}

/** The same to codes: K of 8 bits and V of 4, in one dispatch, beside the quantizer with K as it is. */
const appendToCodes = (dtype: RopeDType): Benchmark => ({
  name: `append-k8v4${dtype === "f32" ? "" : `-${dtype}`}`,
  unit: "GB/s",
  about: `KvCache.append, K turned, K and V ${dtype} 8/128 to 8 and 4 bits, 4,096 tokens, one thread, submission included; bytes read`,
  baselineAbout: "hadamardQuantizeKvSeq of the same, K as it is",
  target: { text: "at least 0.9 of it", met: (_, ratio) => ratio >= 0.9 },
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const device = openWithThreads(1);
    const { k, v } = streams(device, dtype);
    const [x, y] = [k.src, v.src];
    const cache = new KvCache(device, { layers: 1, nKvHeads: nHeads, headDim, capacity: nTokens });
    const codes = ([8, 4] as const).map((bits) => {
      const { bytesPerRow } = kvCacheBytes({ headDim, nKvHeads: nHeads, capacity: nTokens, bits });
      const packed = device.tensor("u8", [nHeads, nTokens, bytesPerRow]);
      return { packed, norms: device.tensor("f32", [nHeads, nTokens, 1]), bits };
    }) as [CodesOf<8>, CodesOf<4>];
    const turned: Tensor<RopeDType> = device.tensor("f32", x.shape);
    const side = (encode: (pass: Pass) => void) => () =>
      (2 * x.bytes.length) /
      1e9 /
      secondsOf(() => {
        using pass = device.pass();
        encode(pass);
        pass.commitAndWait();
        cache.abandon();
      });
    const quantize = (pass: Pass) =>
      hadamardQuantizeKvSeq(pass, { k: { src: x, ...codes[0] }, v: { src: y, ...codes[1] }, writePosStart: 0 });
    return {
      measure: side((pass) => void cache.append(pass, 0, { k: x, v: y, rope })),
      baseline: side((pass) => quantize(pass)),
      others: {
        "applyRope and the quantizer": side((pass) => {
          applyRope(pass, { x, out: turned, layout: "sequence-major", ...rope });
          hadamardQuantizeKvSeq(pass, { src: turned, ...codes[0], writePosStart: 0 });
          hadamardQuantizeKvSeq(pass, { src: y, ...codes[1], writePosStart: 0 });
        }),
        "KvCache.append, K as it is": side((pass) => void cache.append(pass, 0, { k: x, v: y })),
      },
      dispose() {
        cache.dispose();
        device.dispose();
      },
    };
  },
});

export const appendBenchmarks: readonly Benchmark[] = [
  ...(["f32", "bf16"] as const).flatMap((dtype) => [appendBenchmark(dtype, false), appendBenchmark(dtype, true)]),
  ...(["f32", "f16"] as const).map(appendToCodes),
];
