import { Device, kvCacheCopy, type Pass } from "../../src/index.ts";
import { collectUntil } from "../helpers/gc.ts";

// Prints what was warned of after each step. With `closed` as its argument the
// device is disposed before the passes are collected.

const warnings: string[] = [];
process.on("warning", (warning) => warnings.push(warning.message));

const device = Device.open();
const src = device.tensor("f32", [1, 4]);
const cache = device.tensor("f32", [4, 4]);

/** Leaves passes to the collector, in a frame of its own. */
async function leak(make: () => Pass | undefined, before: () => void = () => {}): Promise<void> {
  for (let i = 0; i < 8; i++) make();
  before();
  await collectUntil(() => false, 20);
  console.log(JSON.stringify(warnings));
}

function encoded(): Pass {
  const pass = device.pass();
  kvCacheCopy(pass, { src, cache, writePos: 0 });
  return pass;
}

function disposed(): Pass {
  const pass = encoded();
  pass.dispose();
  return pass;
}

function committed(): Pass {
  const pass = encoded();
  pass.commitAndWait();
  return pass;
}

/** Passes that are disposed after their device. */
function disposedLast(): void {
  const passes = Array.from({ length: 8 }, encoded);
  device.dispose();
  for (const pass of passes) pass.dispose();
}

if (process.argv[2] !== "closed") {
  for (const make of [() => device.pass(), disposed, committed, encoded, encoded]) await leak(make);
} else if (process.argv[3] === "forgotten") {
  await leak(encoded, () => device.dispose());
} else {
  device.pass();
  disposed();
  committed();
  await leak(disposed, disposedLast);
}
