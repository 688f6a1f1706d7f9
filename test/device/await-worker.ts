import { Device } from "../../src/index.ts";
import { Spin } from "../../scripts/lib/spin.ts";

declare const self: Worker;

using device = Device.open();
const spin = new Spin(device);
self.postMessage("spin");
for (let i = 0; i < 20; i++) {
  using pass = spin.pass(1e-4 * (i % 4));
  await pass.commit();
}
self.postMessage("ended");
