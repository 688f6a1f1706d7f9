/**
 * `bun test/cache/main.ts [PROGRAMS] [SEED]`: so many random programs over all kinds of caches, 5,000 unless given, beside
 * the model. A program that fails is shrunk and printed.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { Device } from "../../src/index.ts";
import { kinds, programOf, Runner } from "./programs.ts";

const [count = 5000, seed = 1] = process.argv.slice(2).map(Number);
using device = Device.open();
const folder = mkdtempSync(join(tmpdir(), "metal-attention-programs-"));
const names = Object.keys(kinds);
for (const [i, [name, options]] of Object.entries(kinds).entries()) {
  const numRuns = Math.floor(((i + 1) * count) / names.length) - Math.floor((i * count) / names.length);
  const runner = new Runner(device, options, folder);
  await fc.assert(
    fc.asyncProperty(programOf(24), (program) => runner.run(program)),
    { seed, numRuns },
  );
  console.log(`${numRuns} programs on ${name}, ${runner.bitsCompared} sequences with the bits of one appended at once`);
}
rmSync(folder, { recursive: true, force: true });
