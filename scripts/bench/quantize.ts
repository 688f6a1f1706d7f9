/** The Hadamard-quantized cache at 4 bits: beside the same in C, and beside a copy that only converts. */
import { dequantizeKv, hadamardQuantizeKvSeq, kvCacheBytes, kvCacheCopySeq, type Pass } from "../../src/index.ts";
import { nmse } from "../../src/reference/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { normalArray } from "../lib/random.ts";
import { type Benchmark, type PreparedBenchmark, secondsOf } from "./benchmark.ts";
import { sourceBytes } from "./copy.ts";
import { prepareQuantizeInC } from "./quantize-c.ts";

const heads = 8;
const bits = 4;

type Direction = "quantize" | "dequantize";

const calls: Readonly<Record<Direction, string>> = {
  quantize: "hadamardQuantizeKvSeq from",
  dequantize: "dequantizeKv to",
};

function quantizeBenchmark(direction: Direction, headDim: number): Benchmark {
  return {
    name: `${direction}-4bit-d${headDim}`,
    unit: "GB/s",
    about: `${calls[direction]} 64 MiB of f32, 4 bits, D = ${headDim}, 8 heads, one thread, submission included`,
    baselineAbout: "the same as plain loops in C, by the same clang",
    target: { text: "at least 0.5 GB/s", met: (value) => value >= 0.5 },
    rounds: ({ quick }) => (quick ? 3 : 9),
    warmUp: true,
    prepare: () => prepare(direction, headDim),
  };
}

function prepare(direction: Direction, headDim: number): PreparedBenchmark {
  const tokens = sourceBytes / 4 / (heads * headDim);
  const device = openWithThreads(1);
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ headDim, nKvHeads: heads, capacity: tokens, bits });
  const src = device.tensor("f32", [tokens, heads, headDim]);
  const normal = normalArray(2 ** 20, 1, 1);
  for (let i = 0; i < src.length; i += normal.length) src.view().set(normal, i);
  const packed = device.tensor("u8", [heads, tokens, bytesPerRow]);
  const norms = device.tensor("f32", [heads, tokens, normsPerPos]);
  const out = device.tensor("f32", [heads, tokens, headDim]);
  const converted = device.tensor("f16", out.shape);
  const inC = {
    packed: new Uint8Array(packed.length),
    norms: new Float32Array(norms.length),
    out: new Float32Array(out.length),
  };
  const c = prepareQuantizeInC({ tokens, heads, headDim, src: src.view(), ...inC });

  const run = (encode: (pass: Pass) => void) => {
    using pass = device.pass();
    encode(pass);
    pass.commitAndWait();
  };
  const ours: Readonly<Record<Direction, () => void>> = {
    quantize: () => run((pass) => hadamardQuantizeKvSeq(pass, { src, packed, norms, bits, writePosStart: 0 })),
    dequantize: () => run((pass) => dequantizeKv(pass, { packed, norms, out, bits })),
  };
  const copy = () => run((pass) => kvCacheCopySeq(pass, { src, cache: converted, seqPosStart: 0 }));

  for (const each of [ours, c]) {
    each.quantize();
    each.dequantize();
  }
  compare("norms", norms.view(), inC.norms);
  compare("vectors", out.view(), inC.out);

  const gigabytesPerSecond = (action: () => void) => () => sourceBytes / 1e9 / secondsOf(action);
  return {
    measure: gigabytesPerSecond(ours[direction]),
    baseline: gigabytesPerSecond(c[direction]),
    others: { "kvCacheCopySeq f32 to f16": gigabytesPerSecond(copy) },
    dispose() {
      c.dispose();
      device.dispose();
    },
  };
}

/** What is timed does the same work. A value on the boundary of two codes may take the other. */
function compare(what: string, ours: Float32Array, inC: Float32Array): void {
  const error = nmse(ours, inC);
  if (!(error < 1e-5)) throw new Error(`${what} of the kernel and of C differ: NMSE ${error.toExponential(2)}`);
}

export const quantizeBenchmarks: readonly Benchmark[] = [
  quantizeBenchmark("quantize", 128),
  quantizeBenchmark("quantize", 256),
  quantizeBenchmark("dequantize", 128),
];
