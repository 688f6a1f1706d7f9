/** A ring: a cache whose memory stays what it is, however many tokens come. A token sees the last four. */
import { Device, KvCache } from "metal-attention";

const [headDim, window, tokens] = [64, 4, 100];
using device = Device.open();
const options = { layers: 1, nKvHeads: 1, headDim, k: "f16", v: "f16" } as const;
using cache = new KvCache(device, { ...options, capacity: window, window });
const row = (value: number) => device.tensor("f16", [1, 1, headDim]).set(new Float32Array(headDim).fill(value));
using zero = row(0); // as q and k: all scores are equal, and the result is the mean of the values that are seen
using out = row(0);

const bytes: number[] = [];
for (let token = 0; token < tokens; token++) {
  using v = row(token);
  using pass = device.pass();
  cache.append(pass, 0, { k: zero, v });
  cache.attend(pass, 0, { q: zero, out });
  await pass.commit();
  cache.advance();
  bytes.push(cache.bytes);
}

const mean = out.toFloat32Array()[0];
console.log(`after ${cache.length} tokens: the mean of 96 to 99 is ${mean}, in ${cache.bytes} bytes`); // 97.5
if (mean !== 97.5) throw new Error(`the last token saw other tokens: ${mean}`);
if (bytes.at(-1) !== bytes[0]) throw new Error(`memory grew from ${bytes[0]} to ${bytes.at(-1)} bytes`);
