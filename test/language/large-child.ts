/**
 * Makes pipelines of a large source, one after another, and runs each on two numbers.
 * Arguments: the source's file, then names of kernels. Prints seconds and the first result of each as JSON.
 */
import { readFileSync } from "node:fs";
import { Device } from "../../src/index.ts";

const [, , file = "", ...kernels] = Bun.argv;
using device = Device.open();
device.registerSource("large.metal", readFileSync(file, "utf8"));
const results = kernels.map((kernel) => {
  const start = performance.now();
  using pipeline = device.pipeline(kernel);
  const seconds = (performance.now() - start) / 1000;
  using out = device.tensor("f32", [32]);
  using a = device.tensor("f32", [32]);
  using b = device.tensor("f32", [32]);
  a.set(new Array<number>(32).fill(3));
  b.set(new Array<number>(32).fill(5));
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: [out, a, b], grid: 1, threads: 1 });
  pass.commitAndWait();
  return { kernel, seconds, value: out.toFloat32Array()[0] };
});
console.log(JSON.stringify(results));
