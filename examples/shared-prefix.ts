/** A prefix that several sequences share: computed once, kept once, in pages out of a pool. */
import { Device, KvCache, type KvSequence } from "metal-attention";

const headDim = 64;
using device = Device.open();
const pages = { tokens: 16, count: 16 };
const options = { layers: 1, nKvHeads: 1, headDim, k: "f16", v: "f16" } as const;
using cache = new KvCache(device, { ...options, capacity: 128, sequences: 4, pages });

/** Appends tokens, whose values are their ids, and gives the mean of all that the last one sees. */
async function append(sequence: KvSequence, ids: readonly number[]): Promise<number> {
  const shape = [ids.length, 1, headDim];
  using zero = device.tensor("f16", shape); // as q and k: all scores are equal
  using v = device.tensor("f16", shape).set(ids.flatMap((id) => new Array<number>(headDim).fill(id)));
  using out = device.tensor("f32", shape);
  using pass = device.pass();
  cache.append(pass, 0, { k: zero, v, sequences: [sequence] });
  cache.attend(pass, 0, { q: zero, out });
  await pass.commit();
  cache.advance(ids.length, ids);
  return Number(out.toFloat32Array().at(-1));
}

const prompt = new Array<number>(48).fill(10); // three full pages
await append(cache.sequence(), prompt);
const used = () => pages.count - cache.freePages;
console.log(`the prompt: ${used()} pages`); // 3

for (const answer of [58, 108]) {
  const request = [...prompt, answer];
  const found = cache.match(request); // what is there of it already
  const sequence = found?.sequence.fork(found.length) ?? cache.sequence();
  const known = sequence.length;
  const mean = await append(sequence, request.slice(known));
  const expected = (48 * 10 + answer) / 49;
  console.log(`a request of 49 tokens, ${known} of them known: mean ${mean}, expected ${expected.toFixed(3)}`);
  if (known !== 48 || Math.abs(mean - expected) > 0.01) throw new Error("the prefix was not shared, or not seen");
}
console.log(`all three: ${used()} pages, not ${3 * 3 + 2}`); // 5
if (used() !== 5) throw new Error(`${used()} pages`);
