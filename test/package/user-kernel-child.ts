/** Makes a pipeline of a kernel of the user's own; prints what runs it, or the code and message of the error. */
import { join } from "node:path";

const root = process.argv[2] ?? "";
const { Device, MetalAttentionError } = (await import(
  join(root, "src/index.ts")
)) as typeof import("../../src/index.ts");

using device = Device.open();
device.registerSource(
  "own.metal",
  "#include <metal_stdlib>\nkernel void own(device float *x [[buffer(0)]]) { x[0] = metal::simd_sum(x[0]); }",
);
try {
  const { executor } = device.pipeline("own");
  console.log(JSON.stringify({ executor }));
} catch (error) {
  if (!(error instanceof MetalAttentionError)) throw error;
  console.log(JSON.stringify({ code: error.code, message: error.message }));
}
