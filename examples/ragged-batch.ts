/** Prompts of several lengths in one call, packed one after another, without padding. None sees its neighbours. */
import { Device, flashAttnPrefill } from "metal-attention";

const lengths = [3, 1, 5];
const headDim = 64;
const ends = lengths.map((_, i) => lengths.slice(0, i + 1).reduce((sum, length) => sum + length));
const offsets = [0, ...ends]; // 0, 3, 4, 9
const total = Number(offsets.at(-1));

using device = Device.open();
const shape = [total, 1, headDim]; // tokens of all prompts, heads, head size
using seqOffsets = device.tensor("i32", [offsets.length]).set(offsets);
using q = device.tensor("bf16", shape); // zeros: all scores are equal
using k = device.tensor("bf16", shape);
using v = device
  .tensor("bf16", shape)
  .set(Float32Array.from({ length: total * headDim }, (_, i) => Math.floor(i / headDim)));
using out = device.tensor("bf16", shape);

using pass = device.pass();
flashAttnPrefill(pass, { q, k, v, out, causal: true, seqOffsets });
await pass.commit();

const values = out.toFloat32Array();
for (const [prompt, length] of lengths.entries()) {
  const start = Number(offsets[prompt]);
  const means = Array.from({ length }, (_, i) => Number(values[(start + i) * headDim]));
  console.log(`prompt ${prompt}, tokens ${start} to ${start + length - 1}:`, means);
  const expected = means.map((_, i) => start + i / 2); // the mean of its own tokens up to i
  if (means.some((mean, i) => mean !== expected[i])) throw new Error(`expected ${expected}`);
}
