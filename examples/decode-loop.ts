/**
 * A decode loop: a prompt into a KvCache, then a token a step. The "model" is one attention head that looks for the
 * letter it has just read, and says what came after it: it continues a text that repeats itself. `bun decode-loop.ts`
 */
import { Device, KvCache } from "metal-attention";

const headDim = 64;
const alphabet = [..."metal-bun."];
/** A letter as 64 signs; those of two letters are nearly at right angles. A model has its projections here. */
const code = (letter: string) =>
  Array.from({ length: headDim }, (_, i) => Math.sign(Math.sin(letter.charCodeAt(0) * (i + 1) * 78.233)));
const dot = (a: ArrayLike<number>, b: ArrayLike<number>) =>
  Array.from(a).reduce((sum, x, i) => sum + x * Number(b[i]), 0);

using device = Device.open();
using cache = new KvCache(device, { layers: 1, nKvHeads: 1, headDim, capacity: 128 }); // K of 8 bits, V of 4

let text = "";
/** Appends letters to the cache, attends, and gives the letter that follows the last one. */
async function step(letters: string): Promise<string> {
  const rows = (of: string) => device.tensor("f16", [of.length, 1, headDim]).set([...of].flatMap(code));
  using k = rows(`${text.at(-1) ?? " "}${letters}`.slice(0, -1)); // the key of a token is the letter before it
  using v = rows(letters);
  using q = rows(letters);
  using out = device.tensor("f16", q.shape);

  using pass = device.pass();
  for (let layer = 0; layer < 1; layer++) {
    cache.append(pass, layer, { k, v }); // rope: { theta, pairing }, where keys are turned
    cache.attend(pass, layer, { q, out, scale: 1 });
  }
  await pass.commit();
  cache.advance(letters.length); // from here on the tokens count
  text += letters;
  const last = out.toFloat32Array().subarray(-headDim);
  return alphabet.toSorted((a, b) => dot(code(b), last) - dot(code(a), last))[0] as string;
}

const prompt = "metal-bun.met";
let next = await step(prompt);
while (text.length < 30) next = await step(next);
console.log(`${prompt}|${text.slice(prompt.length)}`); // metal-bun.met|al-bun.metal-bun.
if (text !== "metal-bun.metal-bun.metal-bun.") throw new Error(`the head lost its place: ${text}`);
console.log(`${cache.length} tokens in ${cache.bytes} bytes`);
