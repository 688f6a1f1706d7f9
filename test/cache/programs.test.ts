/** Random programs on every kind of cache, beside a model that keeps each token's number in an array. */
import { afterAll, test } from "bun:test";
import fc from "fast-check";
import { Device } from "../../src/index.ts";
import { kinds, programOf, Runner } from "./programs.ts";

const device = Device.open();
afterAll(() => device.dispose());

for (const [name, options] of Object.entries(kinds)) {
  test(`programs on ${name}`, () => {
    const runner = new Runner(device, options);
    fc.assert(
      fc.property(programOf(14), (program) => runner.run(program)),
      { seed: 14, numRuns: 12 },
    );
  });
}
