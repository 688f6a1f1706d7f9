/**
 * Runs every case of the fixtures with the package in a folder, those of two forms on a device of each, and prints a hash
 * of each output as JSON.
 */
import { join } from "node:path";

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
using lanes = openWith({ SOFTMETAL_MATRIX_UNITS: "0" });
using matrices = openWith({ SOFTMETAL_MATRIX_UNITS: "1" });
const cases = allCases();
const runs = [
  { device: lanes, form: "lanes", cases },
  { device: matrices, form: "matrices", cases: casesOfTwoForms(cases) },
];
for (const { device, form, cases } of runs) {
  for (const entry of cases) {
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
}
console.log(JSON.stringify({ hashes, untried: lanes.kernelNames.filter((name) => !kernels.has(name)) }));
