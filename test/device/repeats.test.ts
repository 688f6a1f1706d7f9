/** Every built-in kernel gives the same bits on one thread and on two, and again and again. */
import { expect, test } from "bun:test";
import type { Fixture } from "../../scripts/fixtures/operation.ts";
import { allCases } from "../../scripts/fixtures/operations/all.ts";
import { operationOf } from "../../scripts/fixtures/run.ts";
import { DeviceTensors } from "../../scripts/fixtures/tensors.ts";
import type { Device } from "../../src/index.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";

const cases = allCases();

const devices = oneAndTwoThreads();
/** The same, which take the kernels for units of matrices. */
const matrixDevices = oneAndTwoThreads({ SOFTMETAL_MATRIX_UNITS: "1" });
const repeats = 50;

/** The kernels that a fixture runs, and a hash of the bytes that they leave in its outputs. */
function run(device: Device, fixture: Fixture): { kernels: string[]; hash: bigint } {
  const { params, inputs, expected } = fixture;
  using tensors = new DeviceTensors(device, inputs, expected);
  using pass = device.pass();
  const outputs = Object.values(operationOf(fixture).encode(pass, params, tensors));
  const kernels = pass.describe().map(({ kernel }) => kernel);
  pass.commitAndWait();
  let hash = 0n;
  for (const output of outputs) {
    hash = Bun.hash.xxHash64(output.bytes, hash);
    output.dispose();
  }
  return { kernels, hash };
}

const reached = new Set<string>();
for (const each of cases) {
  test(`${each.name}: on one thread and on two, ${repeats * devices.length} times`, () => {
    const fixture = each.make(1);
    for (const [one, two] of [devices, matrixDevices]) {
      const first = run(one, fixture);
      // Most operations have no others for units of matrices.
      if (first.kernels.every((kernel) => reached.has(kernel)) && one === matrixDevices[0]) continue;
      for (const kernel of first.kernels) reached.add(kernel);
      for (let repeat = 0; repeat < repeats; repeat++) {
        for (const device of [one, two]) expect({ repeat, ...run(device, fixture) }).toEqual({ repeat, ...first });
      }
    }
  });
}

test("no built-in kernel is left out", () => {
  expect([...reached].sort()).toEqual([...devices[0].kernelNames].sort());
});
