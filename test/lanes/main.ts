/** `bun test/lanes/main.ts [FIRST [COUNT]]`: random kernels on both executors; each that differs, shrunk. */
import { differingSeeds, shrunk } from "./compare.ts";

const perRun = 20;
const first = Number(process.argv[2] ?? 1);
const count = Number(process.argv[3] ?? 500);
let failures = 0;
for (let seed = first; seed < first + count; seed += perRun) {
  for (const differing of await differingSeeds(seed, Math.min(perRun, first + count - seed))) {
    failures += 1;
    console.log(`seed ${differing}:\n${await shrunk(differing)}`);
  }
}
console.log(`${count} kernels, ${failures} differ`);
process.exitCode = failures > 0 ? 1 : 0;
