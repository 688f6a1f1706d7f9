/** Appends that are longer than a ring or a tail: memory for the time of the step, and nothing changed until it ends. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, KvCache, type KvCacheOptions, type KvSequence } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
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
  test("a ring has a ring of one layer for the step, one of all for what stays, a table, and no more", () => {
    using cache = new KvCache(device, { ...base, layers: 5, k: "f16", v: "f16", window: 9 });
    const sequences = [cache.sequence(), cache.sequence()];
    const k = tensor(0, 30, 2);
    const [q, out] = [tensor(0, 30, 4), device.tensor("f32", [30, 4, 64])];
    // K and V of two heads.
    const ofSlots = (slots: number) => 2 * 2 * slots * 64 * 2;
    for (let layer = 0; layer < 5; layer++) {
      using pass = device.pass();
      cache.append(pass, layer, { k, v: k, sequences: sequences.slice(1) });
      cache.attend(pass, layer, { q, out });
      pass.commitAndWait();
    }
    const { bytes } = cache;
    cache.advance();
    expect(bytes - cache.bytes).toBe(ofSlots(9 - 1 + 30) + 5 * ofSlots(16) + 2 * 4);
  });

  test("a prompt of 4,096 tokens over a tail takes memory of a layer, not of all", () => {
    const layers = 8;
    using cache = new KvCache(device, { layers, nKvHeads: 1, headDim: 64, capacity: 4200, tail: 128 });
    const x = device.tensor("f16", [4096, 1, 64]);
    x.set(Float32Array.from({ length: x.length }, draw));
    const out = device.tensor("f16", [4096, 1, 64]);
    for (let layer = 0; layer < layers; layer++) {
      using pass = device.pass();
      cache.append(pass, layer, { k: x, v: x });
      cache.attend(pass, layer, { q: x, out });
      pass.commitAndWait();
    }
    const { bytes } = cache;
    cache.advance();
    const most = bytes - cache.bytes;
    // K and V of a token in f16, and two words of a table.
    const ofTokens = 2 * 64 * 2;
    // The tail, part of a block and an append, in whole blocks.
    const slots = (append: number) => Math.ceil((128 + 31 + append) / 32) * 32;
    expect(most).toBe((ofTokens + 8) * slots(4096) + (layers * ofTokens + 8) * slots(256));
    expect(most).toBeLessThan(0.5 * layers * ofTokens * 4096);
    expect(cache.length).toBe(4096);
  });

  test("layers that are appended to before any is attended have memory each, and the same results", () => {
    const run = (isInTurn: boolean) => {
      using cache = new KvCache(device, { ...base, capacity: 90, tail: 3, maxAppend: 4 });
      const rows = [0, 1].map((layer) => tensor(40 * layer, 40, 2));
      const outs = rows.map(() => device.tensor("f32", [40, 4, 64]));
      using pass = device.pass();
      const attend = (layer: number) =>
        cache.attend(pass, layer, { q: tensor(0, 40, 4), out: outs[layer] as (typeof outs)[0] });
      for (const [layer, k] of rows.entries()) {
        cache.append(pass, layer, { k, v: k });
        if (isInTurn) attend(layer);
      }
      if (!isInTurn) for (const layer of rows.keys()) attend(layer);
      pass.commitAndWait();
      cache.advance();
      return outs.map((out) => out.toFloat32Array());
    };
    expect(run(false)).toEqual(run(true));
  });

  test("a layer is attended again until the next one is appended to, and refused after", () => {
    using cache = new KvCache(device, { ...base, capacity: 90, tail: 3, maxAppend: 4 });
    const k = tensor(0, 40, 2);
    const outs = [0, 1, 2].map(() => device.tensor("f32", [40, 4, 64]));
    const q = tensor(0, 40, 4);
    using pass = device.pass();
    const attend = (layer: number, i: number) => cache.attend(pass, layer, { q, out: outs[i] as (typeof outs)[0] });
    cache.append(pass, 0, { k, v: k });
    attend(0, 0);
    attend(0, 1);
    cache.append(pass, 1, { k, v: k });
    const before = pass.describe().length;
    expectRefusal(() => attend(0, 2), "invalid-state", "cache", "layer 0", "layer 1");
    expect(pass.describe().length).toBe(before);
    attend(1, 2);
    pass.commitAndWait();
    cache.advance();
    expect(outs[1]?.toFloat32Array()).toEqual(outs[0]?.toFloat32Array());
    expect(outs[2]?.toFloat32Array()).toEqual(outs[0]?.toFloat32Array());
  });

  test.each([3, 8])("a ring that is mostly window keeps what leaves the tail, maxAppend %d", (maxAppend) => {
    const run = (counts: readonly number[]) => {
      using cache = new KvCache(device, { ...base, window: 12, tail: 4, maxAppend });
      let at = 0;
      const results = [...counts, 1, 3].map((count) => {
        at += count;
        return step(cache, at - count, count);
      });
      return results.slice(-2);
    };
    const short = new Array<number>(7).fill(3);
    expect(run([...short, 6])).toEqual(run([...short, 3, 3]));
  });

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
