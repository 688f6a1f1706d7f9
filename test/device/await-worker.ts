import { Spin } from "../../scripts/lib/spin.ts";
import { Device } from "../../src/index.ts";

declare const self: Worker;

using device = Device.open();
const spin = new Spin(device);
for (let i = 0; i < 20; i++) {
  using pass = spin.pass(1e-4 * (i % 4));
  await pass.commit();
}
self.postMessage("ended");
