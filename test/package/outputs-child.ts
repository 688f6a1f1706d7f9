/** Runs every case of the fixtures with the package in a folder and prints a hash of each output as JSON. */
import { join } from "node:path";

const root = process.argv[2] ?? "";
const { Device } = (await import(join(root, "src/index.ts"))) as typeof import("../../src/index.ts");
const { allCases, operations } = (await import(
  join(root, "scripts/fixtures/operations/all.ts")
)) as typeof import("../../scripts/fixtures/operations/all.ts");
const { DeviceTensors } = (await import(
  join(root, "scripts/fixtures/tensors.ts")
)) as typeof import("../../scripts/fixtures/tensors.ts");

const hashes: Record<string, string> = {};
const kernels = new Set<string>();
using device = Device.open();
for (const entry of allCases()) {
  const { params, inputs, expected } = entry.make(1);
  const operation = operations.find(({ name }) => name === entry.operation);
  if (operation === undefined) throw new Error(`no operation ${entry.operation}`);
  using tensors = new DeviceTensors(device, inputs, expected);
  using pass = device.pass();
  const outputs = operation.encode(pass, params, tensors);
  for (const { kernel } of pass.describe()) kernels.add(kernel);
  pass.commitAndWait();
  for (const [name, output] of Object.entries(outputs)) {
    hashes[`${entry.name} ${name}`] = Bun.hash(output.bytes).toString(16);
    output.dispose();
  }
}
console.log(JSON.stringify({ hashes, untried: device.kernelNames.filter((name) => !kernels.has(name)) }));
