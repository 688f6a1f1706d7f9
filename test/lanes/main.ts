/** `bun test/lanes/main.ts [FIRST [COUNT]]`: random kernels on both executors; each that differs, shrunk. */
import { differingSeeds, shrunk } from "./compare.ts";

const perSource = 50;
const sourcesAtOnce = 2 * navigator.hardwareConcurrency;
const first = Number(process.argv[2] ?? 1);
const count = Number(process.argv[3] ?? 500);
let failures = 0;
let done = 0;
const starts = Array.from({ length: Math.ceil(count / perSource) }, (_, source) => first + source * perSource);
while (starts.length > 0) {
  const some = starts
    .splice(0, sourcesAtOnce)
    .map((seed) => ({ seed, size: Math.min(perSource, first + count - seed) }));
  const differing = await Promise.all(some.map(({ seed, size }) => differingSeeds(seed, size, "default")));
  for (const seed of differing.flat()) {
    failures += 1;
    console.log(`seed ${seed}:\n${await shrunk(seed, "default")}`);
  }
  done += some.reduce((sum, { size }) => sum + size, 0);
  console.log(`seeds ${first} to ${first + done - 1}: ${failures} differ`);
}
console.log(`${done} kernels, ${failures} differ`);
process.exitCode = failures > 0 ? 1 : 0;
