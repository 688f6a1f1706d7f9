/** A sliding window: each token sees itself and the two before it. With equal scores, what it gets is their mean. */
import { Device, flashAttnPrefill } from "metal-attention";

const [tokens, headDim, window] = [8, 64, 3];
using device = Device.open();
const shape = [1, 1, tokens, headDim]; // batch, heads, tokens, head size
using q = device.tensor("f16", shape); // zeros: all scores are equal
using k = device.tensor("f16", shape);
using v = device
  .tensor("f16", shape)
  .set(Float32Array.from({ length: tokens * headDim }, (_, i) => Math.floor(i / headDim)));
using out = device.tensor("f16", shape);

using pass = device.pass();
flashAttnPrefill(pass, { q, k, v, out, causal: true, window });
await pass.commit();

const values = out.toFloat32Array();
const seen = Array.from({ length: tokens }, (_, token) => Number(values[token * headDim]));
console.log(seen); // [ 0, 0.5, 1, 2, 3, 4, 5, 6 ]
for (const [token, value] of seen.entries()) {
  const first = Math.max(0, token - window + 1);
  if (value !== (first + token) / 2)
    throw new Error(`token ${token} got ${value}, not the mean of ${first} to ${token}`);
}
