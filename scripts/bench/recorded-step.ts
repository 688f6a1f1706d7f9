/** A decode step of 64 dispatches: a run of a recorded pass beside encoding them anew. */
import {
  dequantizeKv,
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
      async function medianOf(commit: (position: number) => Promise<void>): Promise<number> {
        const times: number[] = [];
        for (let run = 0; run < runs; run++) {
          const { microseconds, ended } = hostTime(() => commit(run % capacity));
          times.push(microseconds);
          await ended;
        }
        return median(times);
      }
      return {
        measure: () => medianOf((position) => step.commit(hasParameter ? { position } : undefined)),
        baseline: () =>
          medianOf((position) => {
            using pass = device.pass();
            encode(pass, position);
            return pass.commit();
          }),
        dispose: () => device.dispose(),
      };
    },
  };
}

export const recordedSteps: readonly Benchmark[] = [recordedStep(false), recordedStep(true)];
