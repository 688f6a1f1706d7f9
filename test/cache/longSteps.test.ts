/** Appends that are longer than a ring or a tail: memory for the time of the step, and nothing changed until it ends. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, KvCache, type KvCacheOptions, type KvSequence } from "../../src/index.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());

const base: KvCacheOptions = { layers: 2, nKvHeads: 2, headDim: 64, capacity: 16, sequences: 2 };
const kinds: [name: string, options: Partial<KvCacheOptions>][] = [
  ["a dense ring", { k: "f16", v: "f16", window: 9, rollback: 2 }],
  ["a ring that keeps", { window: 6, keep: 3 }],
  ["a ring with a tail", { window: 6, keep: 3, tail: 4, maxAppend: 5, rollback: 1 }],
  ["a tail", { capacity: 90, tail: 3, maxAppend: 4 }],
  ["private", { window: 6, keep: 3, tail: 4, maxAppend: 5, rollback: 1, storage: "private" }],
];

const draw = normalDraws(1);
const source = Float32Array.from({ length: 120 * 256 }, draw);
const tensor = (from: number, count: number, heads: number) =>
  device.tensor("f32", [count, heads, 64]).set(source.subarray(from * heads * 64, (from + count) * heads * 64));

/** A step of `count` tokens from `from` on of the second sequence; gives what attention makes of them. */
function step(
  cache: KvCache,
  from: number,
  count: number,
  end: "advance" | "abandon" | "dispose" = "advance",
): number[] {
  while (cache.sequences.length < 2) cache.sequence();
  const sequence = cache.sequences[1] as KvSequence;
  const results: number[] = [];
  const pass = device.pass();
  const outs = [0, 1].map((layer) => {
    const k = tensor(from, count, 2);
    cache.append(pass, layer, { k, v: k, sequences: [sequence] });
    const out = device.tensor("f32", [count, 4, 64]);
    cache.attend(pass, layer, { q: tensor(from, count, 4), out });
    return out;
  });
  if (end === "dispose") pass.dispose();
  else pass.commitAndWait();
  if (end === "advance") cache.advance(count);
  else cache.abandon();
  for (const out of outs) results.push(...out.toFloat32Array());
  return results;
}

describe("an append longer than the cache takes at once", () => {
  for (const [name, options] of kinds) {
    test(`${name}: goes on as after short ones, and memory comes back`, () => {
      const run = (counts: readonly number[]) => {
        using cache = new KvCache(device, { ...base, ...options });
        const layers: number[][] = [[], []];
        let at = 0;
        for (const count of [...counts, 1, 3]) {
          const rows = step(cache, at, count);
          for (const [layer, all] of layers.entries())
            all.push(...rows.slice(layer * count * 256, (layer + 1) * count * 256));
          at += count;
        }
        return layers;
      };
      expect(run([20, 31])).toEqual(run(Array.from({ length: 17 }, () => 3)));
      using cache = new KvCache(device, { ...base, ...options });
      // Scratch memory stays.
      step(cache, 2, 30, "abandon");
      step(cache, 0, 2);
      const { bytes } = cache;
      using pass = device.pass();
      const k = tensor(2, 30, 2);
      cache.append(pass, 0, { k, v: k, sequences: [cache.sequences[1] as KvSequence] });
      expect(cache.bytes).toBeGreaterThan(bytes);
      cache.abandon();
      expect(cache.bytes).toBe(bytes);
    });

    test(`${name}: one that is abandoned, done or not, leaves the state before it`, () => {
      const run = (isInterrupted: boolean) => {
        using cache = new KvCache(device, { ...base, ...options });
        for (let at = 0; at < 30; at += 3) step(cache, at, 3);
        if (isInterrupted) {
          step(cache, 60, 40, "abandon");
          step(cache, 50, 40, "dispose");
        }
        // A long step keeps as much to go back to as there was.
        cache.sequences[1]?.trim(1);
        return step(cache, 29, 2);
      };
      expect(run(true)).toEqual(run(false));
    });
  }
});
