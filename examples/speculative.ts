/** Speculative decoding: a tree of drafted tokens is verified in one step, each seeing the prompt and its ancestors. */
import { Device, flashAttnDecode } from "metal-attention";

const headDim = 64;
const prompt = [1, 2, 3, 4];
/** Drafts: their values, and the draft that each follows; -1 for the prompt. Two ways on, one of which parts again. */
const drafts = [
  { value: 10, parent: -1 },
  { value: 20, parent: -1 },
  { value: 30, parent: 0 },
  { value: 40, parent: 0 },
  { value: 50, parent: 3 },
];
/** A draft and its ancestors. */
const path = (at: number): number[] => (at < 0 ? [] : [...path(drafts[at]?.parent ?? -1), at]);

using device = Device.open();
const values = [...prompt, ...drafts.map(({ value }) => value)];
const rows = (of: readonly number[]) => of.flatMap((value) => new Array<number>(headDim).fill(value));
using k = device.tensor("f32", [1, 16, headDim]); // one head, 16 slots; zeros: all scores are equal
using v = device.tensor("f32", [1, 16, headDim]).set(rows(values), 0);
using q = device.tensor("f32", [1, drafts.length, headDim]);
using out = device.tensor("f32", [1, drafts.length, headDim]);
// Bit c of a row's number: whether it sees draft c.
const bits = drafts.map((_, row) => path(row).reduce((mask, column) => mask | (1 << column), 0));
using treeMask = device.tensor("u32", [1, drafts.length]).set(bits);

using pass = device.pass();
flashAttnDecode(pass, { q, k, v, out, seqLen: values.length, treeMask });
await pass.commit();

const results = out.toFloat32Array();
for (const row of drafts.keys()) {
  const seen = [...prompt, ...path(row).map((at) => drafts[at]?.value ?? 0)];
  const expected = seen.reduce((sum, value) => sum + value, 0) / seen.length;
  const got = Number(results[row * headDim]);
  console.log(`draft ${row} behind [${path(row).slice(0, -1)}]: ${got.toFixed(4)}, the mean of ${seen.join(", ")}`);
  if (Math.abs(got - expected) > 1e-4) throw new Error(`expected ${expected}`);
}
// The drafts on the accepted path stay: here 0, 3 and 4. Their keys move to positions 4, 5 and 6, and decoding goes on.
