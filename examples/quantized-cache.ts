/** What a quantized cache saves, and what it changes: the same tokens through a KvCache of each format. */
import { Device, KvCache, type KvFormat } from "metal-attention";

const [tokens, heads, nKvHeads, headDim] = [256, 8, 2, 128];
using device = Device.open();
/** Numbers that look random, the same on every run, in a bell. */
const bell = (_: unknown, i: number) => {
  const uniform = (seed: number) => (Math.abs(Math.sin(i * 12.9898 + seed * 78.233)) * 43758.5453) % 1;
  return Array.from({ length: 12 }, (_, part) => uniform(part)).reduce((sum, value) => sum + value) - 6;
};
const random = (of: number) =>
  device.tensor("f16", [tokens, of, headDim]).set(Float32Array.from({ length: tokens * of * headDim }, bell));
using q = random(heads);
using k = random(nKvHeads);
using v = random(nKvHeads);

async function attend(formats: { k: KvFormat; v: KvFormat }): Promise<{ bytes: number; out: Float32Array }> {
  using cache = new KvCache(device, { layers: 1, nKvHeads, headDim, capacity: tokens, ...formats });
  using out = device.tensor("f32", q.shape);
  using pass = device.pass();
  cache.append(pass, 0, { k, v });
  cache.attend(pass, 0, { q, out });
  await pass.commit();
  cache.advance();
  return { bytes: cache.memory.rows + cache.memory.norms, out: out.toFloat32Array() };
}

const exact = await attend({ k: "f16", v: "f16" });
const rows = [];
for (const [bitsK, bitsV] of [
  [8, 8],
  [8, 4],
  [4, 4],
  [3, 3],
] as const) {
  const { bytes, out } = await attend({ k: { bits: bitsK }, v: { bits: bitsV } });
  const squares = (of: (i: number) => number) => exact.out.reduce((sum, _, i) => sum + of(i) ** 2, 0);
  const error = squares((i) => Number(out[i]) - Number(exact.out[i])) / squares((i) => Number(exact.out[i]));
  rows.push({
    K: bitsK,
    V: bitsV,
    bytes,
    "of f16": bytes / exact.bytes,
    "squared error": Number(error.toPrecision(3)),
  });
}
console.table(rows);
const [k8v8, k8v4, k4v4, k3v3] = rows.map((row) => row["squared error"]) as [number, number, number, number];
if (!(k8v8 < 0.001 && k8v8 < k8v4 && k8v4 < 0.02 && k8v4 < k4v4 && k4v4 < k3v3)) throw new Error("errors out of order");
if (rows[1]?.["of f16"] !== 12.5 / 32) throw new Error("8.25 and 4.25 bits a value were expected");
