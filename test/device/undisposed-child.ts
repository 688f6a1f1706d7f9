/**
 * Allocates tensors, every fourth in private storage, and disposes none, in a loop that never gives the event
 * loop a turn: `bun undisposed-child.ts COUNT BYTES`. Prints the most bytes
 * that the device held, as JSON.
 */
import { Device } from "../../src/index.ts";

const [count = 0, bytes = 0] = process.argv.slice(2).map(Number);
const device = Device.open();
let most = 0;
for (let i = 0; i < count; i++) {
  if (i % 4 === 3) {
    device.tensor("f32", [bytes / 4], { storage: "private" });
    continue;
  }
  const tensor = device.tensor("f32", [bytes / 4]).set([i], 1);
  // Some are seen, some have passes: neither may keep them.
  if (i % 3 === 0) tensor.view()[0] = 1;
  if (i % 5 === 0) {
    using half = tensor.slice(0, bytes / 8);
    half.toFloat32Array();
  }
  most = Math.max(most, device.info.currentAllocatedSize);
}
console.log(JSON.stringify({ most }));
