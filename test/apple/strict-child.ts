/** Makes a pipeline of each kernel of a job given as JSON; prints what came of each. */
import { Device } from "../../src/index.ts";
import type { Job } from "./strict.ts";

const { kernels, constants, source } = JSON.parse(Bun.argv[2] as string) as Job;
using device = Device.open();
if (source !== undefined) device.registerSource("planted.metal", source);
const outcomes = kernels.map((kernel): [string, string] => {
  try {
    device.pipeline(kernel, { constants }).dispose();
    return [kernel, "compiled"];
  } catch (error) {
    return [kernel, String(error)];
  }
});
console.log(JSON.stringify(Object.fromEntries(outcomes)));
