import { Device, kvCacheCopy, type Pass } from "../../src/index.ts";
import { collectUntil } from "../helpers/gc.ts";

// Prints what was warned of after each step.

const warnings: string[] = [];
process.on("warning", (warning) => warnings.push(warning.message));

const device = Device.open();
const src = device.tensor("f32", [1, 4]);
const cache = device.tensor("f32", [4, 4]);

/** Leaves passes to the collector, in a frame of its own. */
async function leak(make: () => Pass | undefined): Promise<void> {
  for (let i = 0; i < 8; i++) make();
  await collectUntil(() => false, 20);
  console.log(JSON.stringify(warnings));
}

function encoded(): Pass {
  const pass = device.pass();
  kvCacheCopy(pass, { src, cache, writePos: 0 });
  return pass;
}

await leak(() => device.pass());
await leak(() => {
  const pass = encoded();
  pass.dispose();
  return pass;
});
await leak(() => {
  const pass = encoded();
  pass.commitAndWait();
  return pass;
});
await leak(encoded);
await leak(encoded);
