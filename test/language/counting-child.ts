/** A kernel that counts for longer than anyone waits, and what opening the device behind it says; a line of JSON for each. */
import { openWith } from "../../scripts/lib/open-device.ts";
import { Device } from "../../src/index.ts";
import { rejectionOf, thrownBy } from "../helpers/errors.ts";

const source = `#include <metal_stdlib>
using namespace metal;
kernel void counting(volatile device uint *out [[buffer(0)]]) {
  for (uint i = 0; i < 0xffffffff; i++) {
    for (uint j = 0; j < 0xffffffff; j++) { out[0] = j; }
  }
}
`;

const device = openWith({ SOFTMETAL_TIME_LIMIT: "0.5" });
device.registerSource("counting.metal", source);
const out = device.tensor("u32", [64]);
const pass = device.pass();
pass.dispatch(device.pipeline("counting"), { buffers: [out], grid: 64, threads: 32 });
const given = await rejectionOf(pass.commit());
const refused = thrownBy(() => Device.open());
for (const { code, message } of [given, refused]) console.log(JSON.stringify({ code, message }));
// What goes on on the GPU ends with the process.
process.exit(0);
