/** Forks beside passes that are under way, in both storages: what moves is copied when nothing uses it. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, KvCache, type KvCacheOptions, type KvSequence } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());

const base: KvCacheOptions = { layers: 2, nKvHeads: 2, headDim: 64, capacity: 40, sequences: 3 };
const kinds: [name: string, options: Partial<KvCacheOptions>][] = [
  ["a dense line", { k: "f16", v: "f16" }],
  ["pages, the last one partial", { k: "f16", v: "f16", pages: { tokens: 8, count: 12 } }],
  ["quantized pages", { pages: { tokens: 8, count: 12 } }],
  ["a ring that has wrapped, with kept tokens", { capacity: 14, window: 9, keep: 3, rollback: 2 }],
  ["quantized pages with a tail", { tail: 4, pages: { tokens: 8, count: 12 } }],
];

/** Vectors of tokens from number `first` on, [count, of, 64], each token's from its number alone. */
function tokens(first: number, count: number, of: number, salt: number): Float32Array<ArrayBuffer> {
  const values = new Float32Array(count * of * 64);
  for (let i = 0; i < count; i++) {
    const draw = normalDraws(100 * (first + i) + salt);
    for (let d = 0; d < of * 64; d++) values[i * of * 64 + d] = draw();
  }
  return values;
}

/** A step of `count` tokens from number `first` on: encoded, to be committed; and its results. */
function encode(cache: KvCache, sequence: KvSequence, first: number, count: number) {
  const tensor = (of: number, salt: number) =>
    device.tensor("f32", [count, of, 64]).set(tokens(first, count, of, salt));
  const pass = device.pass();
  const outs = [0, 1].map((layer) => {
    const [k, v, q] = [tensor(2, 1 + layer), tensor(2, 3 + layer), tensor(4, 5 + layer)];
    const out = device.tensor("f32", [count, 4, 64]);
    cache.append(pass, layer, { k, v, sequences: [sequence] });
    cache.attend(pass, layer, { q, out });
    return out;
  });
  return { pass, results: () => outs.map((out) => out.toFloat32Array()) };
}

function step(cache: KvCache, sequence: KvSequence, first: number, count: number): Float32Array<ArrayBuffer>[] {
  const { pass, results } = encode(cache, sequence, first, count);
  pass.commitAndWait();
  cache.advance(count);
  return results();
}

describe("a fork", () => {
  for (const storage of ["shared", "private"] as const) {
    for (const [name, options] of kinds) {
      test(`${name}, ${storage}: refused from the first append to advance, and then of all tokens`, async () => {
        using cache = new KvCache(device, { ...base, ...options, storage });
        using alone = new KvCache(device, { ...base, ...options, storage });
        const [sequence, other] = [cache.sequence(), alone.sequence()];
        for (const [first, count] of [
          [0, 13],
          [13, 6],
        ] as const) {
          expect(step(cache, sequence, first, count)).toEqual(step(alone, other, first, count));
        }
        const free = cache.freePages;
        const refuse = () => {
          expectRefusal(() => sequence.fork(), "invalid-state", "cache", "fork during a step");
          expectRefusal(() => sequence.fork(19), "invalid-state", "cache", "fork during a step");
        };
        const { pass, results } = encode(cache, sequence, 19, 2);
        refuse();
        const done = pass.commit();
        refuse();
        await done;
        refuse();
        cache.advance(2);
        expect(results()).toEqual(step(alone, other, 19, 2));
        const fork = sequence.fork();
        // While the copy takes its first step, the other can neither be forked nor changed; and each has its own tokens.
        const mine = encode(cache, fork, 21, 1);
        const running = mine.pass.commit();
        refuse();
        await running;
        cache.advance(1);
        expect(mine.results()).toEqual(step(alone, other, 21, 1));
        other.trim(1);
        expect(step(cache, sequence, 77, 1)).toEqual(step(alone, other, 77, 1));
        expect([fork.length, sequence.length]).toEqual([22, 22]);
        fork.drop();
        if (cache.freePages !== undefined) expect(cache.freePages).toBe(free as number);
      });
    }
  }
});

test("tokens that come back to the tail, of pages that were given back, are not written again", () => {
  const options = { ...base, sequences: 2, window: 6, tail: 11, maxAppend: 40, pages: { tokens: 4, count: 20 } };
  using cache = new KvCache(device, options);
  const sequence = cache.sequence();
  step(cache, sequence, 0, 33);
  const free = cache.freePages;
  // 22 are quantized, of which pages of 20 are given back; of 30 tokens 11 would be, and of 33 the other 11 again.
  const fork = sequence.fork(30);
  const expected = step(cache, sequence, 33, 2);
  step(cache, fork, 30, 3);
  expect(step(cache, fork, 33, 2)).toEqual(expected);
  fork.drop();
  expect(cache.freePages).toBe(free);
});

test("a fork of no token, where pages were given back, is as a new sequence", () => {
  using cache = new KvCache(device, { ...base, k: "f16", v: "f16", window: 6, pages: { tokens: 4, count: 20 } });
  const sequence = cache.sequence();
  step(cache, sequence, 0, 33);
  const free = cache.freePages;
  const fork = sequence.fork(0);
  const [fresh, forked] = [cache.sequence(), fork].map((each) => {
    const before = cache.freePages;
    const results = [step(cache, each, 0, 17), step(cache, each, 17, 16)];
    const used = before - cache.freePages;
    each.drop();
    return { results, used };
  });
  expect(forked).toEqual(fresh);
  expect(cache.freePages).toBe(free);
});
