/** Prints the milliseconds of pipelines of a source, made one after another: its file and their names are the arguments. */
import { readFileSync } from "node:fs";
import { Device } from "metal-attention";

const [, , file = "", ...kernels] = Bun.argv;
using device = Device.open();
device.registerSource("large.metal", readFileSync(file, "utf8"));
const times = kernels.map((kernel) => {
  const start = performance.now();
  using _ = device.pipeline(kernel);
  return performance.now() - start;
});
console.log(times.join(" "));
