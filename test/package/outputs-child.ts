/**
 * Runs the cases of the fixtures, or the first and every Nth from there, with the package in a folder, those of two forms
 * on a device of each. Prints a hash of each output as JSON, with the kernels that no case ran, and the cases that want a
 * kernel which only clang could make: `bun outputs-child.ts FOLDER [N]`.
 */
import { join } from "node:path";
import type { Device } from "../../src/index.ts";

const root = process.argv[2] ?? "";
const { openWith } = (await import(
  join(root, "scripts/lib/open-device.ts")
)) as typeof import("../../scripts/lib/open-device.ts");
const { allCases, casesOfTwoForms, operations } = (await import(
  join(root, "scripts/fixtures/operations/all.ts")
)) as typeof import("../../scripts/fixtures/operations/all.ts");
const { DeviceTensors } = (await import(
  join(root, "scripts/fixtures/tensors.ts")
)) as typeof import("../../scripts/fixtures/tensors.ts");

const hashes: Record<string, string> = {};
const kernels = new Set<string>();
const missing: string[] = [];
using lanes = openWith({ SOFTMETAL_MATRIX_UNITS: "0" });
using matrices = openWith({ SOFTMETAL_MATRIX_UNITS: "1" });
const stride = Number(process.argv[3] ?? 1);
const cases = allCases().filter((_, k) => k % stride === 0);
const runs = [
  { device: lanes, form: "lanes", cases },
  { device: matrices, form: "matrices", cases: casesOfTwoForms(cases) },
];
for (const { device, form, cases } of runs) {
  for (const entry of cases) {
    try {
      hashOutputs(device, form, entry);
    } catch (error) {
      if ((error as { code?: string }).code !== "device-unavailable") throw error;
      missing.push(entry.name);
    }
  }
}
console.log(JSON.stringify({ hashes, untried: lanes.kernelNames.filter((name) => !kernels.has(name)), missing }));

function hashOutputs(device: Device, form: string, entry: (typeof cases)[number]): void {
  const { params, inputs, expected } = entry.make(1);
  const operation = operations.find(({ name }) => name === entry.operation);
  if (operation === undefined) throw new Error(`no operation ${entry.operation}`);
  using tensors = new DeviceTensors(device, inputs, expected);
  using pass = device.pass();
  const outputs = operation.encode(pass, params, tensors);
  for (const { kernel } of pass.describe()) kernels.add(kernel);
  pass.commitAndWait();
  for (const [name, output] of Object.entries(outputs)) {
    hashes[`${entry.name} ${name} (${form})`] = Bun.hash(output.bytes).toString(16);
    output.dispose();
  }
}
