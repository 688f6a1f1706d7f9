/** A decode step of 64 dispatches: a run of a recorded pass beside encoding them anew. */
import {
  type Device,
  dequantizeKv,
  flashAttnDecode,
  flashAttnPrefill,
  hadamardQuantizeKv,
  kvCacheBytes,
  kvCacheCopyBatch,
  type Pass,
  type Tensor,
} from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type Benchmark, median, usualRounds } from "./benchmark.ts";
import { threadNanoseconds } from "./thread-time.ts";

const layers = 16;
const [nHeads, headDim, capacity] = [1, 64, 16];
/** Runs of which a round takes the median. */
const runs = 50;

/** 64 dispatches of five kinds. */
function prepareStep() {
  const device = openWithThreads(1);
  const shape = { headDim, nKvHeads: nHeads, capacity };
  const { bytesPerRow, normsPerPos } = kvCacheBytes({ ...shape, bits: 4 });
  const token = device.tensor("f32", [nHeads, headDim]);
  const q = device.tensor("bf16", [1, nHeads, 1, headDim]);
  const out = device.tensor("bf16", [1, nHeads, 1, headDim]);
  const caches = Array.from({ length: layers }, () => ({
    k: device.tensor("bf16", [1, nHeads, capacity, headDim]),
    v: device.tensor("bf16", [1, nHeads, capacity, headDim]),
    packed: device.tensor("u8", [nHeads, capacity, bytesPerRow]),
    norms: device.tensor("f32", [nHeads, capacity, normsPerPos]),
    read: device.tensor("bf16", [nHeads, capacity, headDim]),
  }));
  const heads = caches.map(({ k, v }) => ({
    k: k.reshape([nHeads, capacity, headDim]) as Tensor<"bf16">,
    v: v.reshape([nHeads, capacity, headDim]) as Tensor<"bf16">,
  }));
  function encode(pass: Pass, position: number): void {
    caches.forEach(({ k, v, packed, norms, read }, layer) => {
      const head = heads[layer] as (typeof heads)[number];
      kvCacheCopyBatch(pass, { k: { src: token, cache: head.k }, v: { src: token, cache: head.v }, seqPos: position });
      hadamardQuantizeKv(pass, { src: token, packed, norms, bits: 4, writePos: position });
      dequantizeKv(pass, { packed, norms, out: read, bits: 4 });
      flashAttnPrefill(pass, { q, k, v, out });
    });
  }
  return { device, encode };
}

/**
 * us of this thread's processor time until the device has the pass, which is then let end. By the clock, the software
 * device may take this thread's processor for as long as it runs.
 */
export function hostTime(commit: () => Promise<void>): { microseconds: number; ended: Promise<void> } {
  const start = threadNanoseconds();
  const ended = commit();
  return { microseconds: (threadNanoseconds() - start) / 1e3, ended };
}

/** The median of some runs, in us. */
async function medianOf(commit: (position: number) => Promise<void>): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) {
    const { microseconds, ended } = hostTime(() => commit(run % capacity));
    times.push(microseconds);
    await ended;
  }
  return median(times);
}

/** Encodes and commits a pass. */
function commitAnew(device: Device, encode: (pass: Pass) => void): Promise<void> {
  using pass = device.pass();
  encode(pass);
  return pass.commit();
}

function recordedStep(hasParameter: boolean): Benchmark {
  return {
    name: hasParameter ? "recorded-step-parameter" : "recorded-step",
    unit: "us",
    about: `host time of a run of 64 recorded dispatches of four operations${hasParameter ? ", the position of 32 given anew" : ""}`,
    baselineAbout: "encoding and committing them anew",
    ...(hasParameter ? {} : { target: { text: "at most 20 us", met: (value: number) => value <= 20 } }),
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const { device, encode } = prepareStep();
      const step = device.record((pass) =>
        encode(pass, hasParameter ? pass.parameter("position", { min: 0, max: capacity - 1 }) : 3),
      );
      return {
        measure: () => medianOf((position) => step.commit(hasParameter ? { position } : undefined)),
        baseline: () => medianOf((position) => commitAnew(device, (pass) => encode(pass, position))),
        dispose: () => device.dispose(),
      };
    },
  };
}

/** The steps of attention in a token of a model with 32 layers. */
const recordedDecode: Benchmark = {
  name: "recorded-decode",
  unit: "ns",
  about: "host time of a recorded dispatch, of 64 in a run: kvCacheCopyBatch and flashAttnDecode of 32 layers",
  baselineAbout: "encoding and committing them anew",
  target: { text: "at most 1,000 ns", met: (value) => value <= 1000 },
  rounds: usualRounds,
  warmUp: true,
  prepare() {
    const device = openWithThreads(1);
    const tensor = (...shape: number[]) => device.tensor("f16", shape);
    const [token, q, out] = [tensor(2, 64), tensor(8, 1, 64), tensor(8, 1, 64)];
    const seqLens = device.tensor("i32", [1]).set([200]);
    const layers = Array.from({ length: 32 }, () => ({ k: tensor(2, 256, 64), v: tensor(2, 256, 64) }));
    const encode = (pass: Pass) => {
      for (const { k, v } of layers) {
        kvCacheCopyBatch(pass, { k: { src: token, cache: k }, v: { src: token, cache: v }, seqPos: 199 });
        flashAttnDecode(pass, { q, k, v, out, seqLens });
      }
    };
    const step = device.record(encode);
    const dispatch = async (commit: () => Promise<void>) => ((await medianOf(commit)) * 1e3) / (2 * layers.length);
    return {
      measure: () => dispatch(() => step.commit()),
      baseline: () => dispatch(() => commitAnew(device, encode)),
      dispose: () => device.dispose(),
    };
  },
};

export const recordedSteps: readonly Benchmark[] = [recordedStep(false), recordedStep(true), recordedDecode];
