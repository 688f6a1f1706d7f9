/**
 * Makes pipelines of a large source, one after another, and runs each on two numbers.
 * Arguments: the source's file, then names of kernels. Prints seconds, of the clock or of processors where these are
 * fewer, and the first result of each as JSON.
 */
import { readFileSync } from "node:fs";
import { Device } from "../../src/index.ts";

/** Seconds for which this process and the compilers that it has waited for have had a processor, in hundredths. */
function processorSeconds(): number {
  const [fields = ""] = readFileSync("/proc/self/stat", "latin1").split(") ").slice(-1);
  const ticks = fields.split(" ").slice(11, 15).map(Number);
  return ticks.reduce((sum, each) => sum + each, 0) / 100;
}

const [, , file = "", ...kernels] = Bun.argv;
using device = Device.open();
device.registerSource("large.metal", readFileSync(file, "utf8"));
const results = kernels.map((kernel) => {
  const [start, used] = [performance.now(), processorSeconds()];
  using pipeline = device.pipeline(kernel);
  // On a busy machine others have the processor for a part of the time.
  const seconds = Math.min((performance.now() - start) / 1000, processorSeconds() - used);
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
