/** A decode step of 32 layers through `KvCache`: a run of the recorded step beside encoding it anew. */
import { KvCache, type Pass } from "../../src/index.ts";
import { openWithThreads } from "../lib/open-device.ts";
import { type Benchmark, median, usualRounds } from "./benchmark.ts";
import { hostTime } from "./recorded-step.ts";

const layers = 32;
const [heads, nKvHeads, headDim, capacity] = [4, 1, 64, 128];
/** Runs of which a round takes the median. */
const runsOfRound = 40;
/** Steps before: JavaScript that has run less often is not all compiled yet. */
const runsBefore = 1000;

/** Gives the median of the us of the host of `runs` steps, one after another. */
async function medianOf(cache: KvCache, commit: () => Promise<void>, runs: number): Promise<number> {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) {
    if (cache.length === capacity) cache.sequences[0]?.crop(0);
    const { microseconds, ended } = hostTime(commit);
    times.push(microseconds);
    await ended;
    cache.advance();
  }
  return median(times);
}

export const cacheStep: Benchmark = {
  name: "cache-step",
  unit: "us",
  about: `host time of a recorded decode step of 32 layers through KvCache, K of 8 bits and V of 4, after ${runsBefore.toLocaleString("en")} of them`,
  baselineAbout: "encoding and committing it anew",
  target: { text: "at most 100 us", met: (value) => value <= 100 },
  rounds: usualRounds,
  warmUp: true,
  async prepare() {
    const device = openWithThreads(1);
    const tensor = (of: number) => device.tensor("f32", [1, of, headDim]);
    const [q, k, v, out] = [tensor(heads), tensor(nKvHeads), tensor(nKvHeads), tensor(heads)];
    const make = () => new KvCache(device, { layers, nKvHeads, headDim, capacity });
    const [recorded, plain] = [make(), make()];
    const encode = (cache: KvCache, pass: Pass) => {
      for (let layer = 0; layer < layers; layer++) {
        cache.append(pass, layer, { k, v });
        cache.attend(pass, layer, { q, out });
      }
    };
    const step = device.record((pass) => encode(recorded, pass));
    const runRecorded = () => step.commit(recorded.prepare());
    const runPlain = async () => {
      const pass = device.pass();
      encode(plain, pass);
      const ended = pass.commit();
      pass.dispose();
      await ended;
    };
    await medianOf(recorded, runRecorded, runsBefore);
    await medianOf(plain, runPlain, runsBefore);
    return {
      measure: () => medianOf(recorded, runRecorded, runsOfRound),
      baseline: () => medianOf(plain, runPlain, runsOfRound),
      dispose: () => device.dispose(),
    };
  },
};
