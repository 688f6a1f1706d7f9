/** Prints the milliseconds that the first pipeline of the largest built-in shader file takes. */
import { Device, flashAttnPrefill } from "metal-attention";

using device = Device.open();
const q = device.tensor("bf16", [1, 1, 32, 256]);
const k = device.tensor("bf16", [1, 1, 32, 256]);
const v = device.tensor("bf16", [1, 1, 32, 256]);
const out = device.tensor("bf16", [1, 1, 32, 256]);
using pass = device.pass();
const start = performance.now();
flashAttnPrefill(pass, { q, k, v, out, causal: true });
console.log(performance.now() - start);
