import type { Device } from "../../src/index.ts";

/** What a kernel `device int *out [[buffer(0)]]` of one thread writes. */
export function resultOf(device: Device, kernel = "k"): number {
  using pipeline = device.pipeline(kernel);
  using out = device.tensor("i32", [1]);
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: [out], grid: 1, threads: 1 });
  pass.commitAndWait();
  return out.view()[0] ?? Number.NaN;
}
