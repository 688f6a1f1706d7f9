/** Makes a pipeline of a kernel of the user's own and prints the code and message of the error. */
import { join } from "node:path";

const root = process.argv[2] ?? "";
const { Device, MetalAttentionError } = (await import(
  join(root, "src/index.ts")
)) as typeof import("../../src/index.ts");

using device = Device.open();
device.registerSource("own.metal", "kernel void own(device float *x [[buffer(0)]]) { x[0] = 1.0f; }");
try {
  device.pipeline("own");
} catch (error) {
  if (!(error instanceof MetalAttentionError)) throw error;
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}
