/** Random programs on every kind of cache, beside a model that keeps each token's number in an array. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { Device } from "../../src/index.ts";
import { kinds, programOf, Runner } from "./programs.ts";

const device = Device.open();
const folder = mkdtempSync(join(tmpdir(), "metal-attention-programs-"));
afterAll(() => {
  device.dispose();
  rmSync(folder, { recursive: true, force: true });
});

for (const [name, options] of Object.entries(kinds)) {
  test(`programs on ${name}`, async () => {
    const runner = new Runner(device, options, folder);
    await fc.assert(
      fc.asyncProperty(programOf(24), (program) => runner.run(program)),
      { seed: 14, numRuns: 60 },
    );
    expect(runner.bitsCompared).toBeGreaterThan(20);
  });
}
