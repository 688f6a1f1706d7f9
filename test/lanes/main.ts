/**
 * `bun test/lanes/main.ts [FIRST [COUNT [default | size]]]`: random kernels on both executors, compiled at an optimization
 * level; each that differs, shrunk.
 */
import { differingSeeds, optimizationLevels, shrunk } from "./compare.ts";

const perSource = 50;
const first = Number(process.argv[2] ?? 1);
const count = Number(process.argv[3] ?? 500);
const level = optimizationLevels.find((each) => each === (process.argv[4] ?? "default"));
if (level === undefined) throw new Error(`${process.argv[4]} is none of ${optimizationLevels.join(", ")}`);
let failures = 0;
let done = 0;
const starts = Array.from({ length: Math.ceil(count / perSource) }, (_, source) => first + source * perSource).values();
const compareSources = async () => {
  for (const seed of starts) {
    const size = Math.min(perSource, first + count - seed);
    for (const differing of await differingSeeds(seed, size, level)) {
      failures += 1;
      console.log(`seed ${differing}:\n${await shrunk(differing, level)}`);
    }
    done += size;
    console.log(`${done} of ${count}: ${failures} differ`);
  }
};
await Promise.all(Array.from({ length: 2 * navigator.hardwareConcurrency }, compareSources));
console.log(`${done} kernels from seed ${first} on, for ${level}: ${failures} differ`);
process.exitCode = failures > 0 ? 1 : 0;
