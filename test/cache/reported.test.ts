/** What users of other caches have reported, each as a test of this one. */
import { afterAll, describe, expect, test } from "bun:test";
import { seededBits } from "../../scripts/lib/random.ts";
import {
  applyRope,
  Device,
  KvCache,
  type KvCacheOptions,
  type KvSequence,
  kvCacheBytes,
  type Tensor,
} from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

const device = Device.open();
afterAll(() => device.dispose());

const base: KvCacheOptions = { layers: 1, nKvHeads: 1, headDim: 64, capacity: 64 };
const dense = { k: "f16", v: "f16" } as const;

/** Rows of 64 values each, the same for the same seed. */
function rowsOf(count: number, seed: number, heads = 1): Tensor<"f32"> {
  const bits = seededBits(seed);
  return device
    .tensor("f32", [count, heads, 64])
    .set(Float32Array.from({ length: count * heads * 64 }, () => bits() / 2 ** 31 - 1));
}

interface StepOptions {
  readonly sequences?: readonly KvSequence[];
  readonly counts?: readonly number[];
  readonly lse?: Tensor<"f32">;
  readonly window?: number;
}

/** Appends rows `from` up to `to` of `all` and gives what attention makes of them. */
function step(cache: KvCache, all: Tensor<"f32">, from: number, to: number, options: StepOptions = {}): Float32Array {
  const { lse, window, ...whose } = options;
  using part = all.slice(from, to);
  using q = rowsOf(all.shape[0] as number, 77, 2).slice(from, to);
  using out = device.tensor("f32", [to - from, 2, 64]);
  using pass = device.pass();
  cache.append(pass, 0, { k: part, v: part, ...whose });
  cache.attend(pass, 0, { q, out, ...(lse && { lse }), ...(window && { window }) });
  pass.commitAndWait();
  cache.advance();
  return out.toFloat32Array();
}

/** The whole of `all` in parts of these sizes. */
function inParts(cache: KvCache, all: Tensor<"f32">, sizes: readonly number[]): Float32Array {
  const results: number[] = [];
  const count = all.shape[0] as number;
  for (let at = 0, i = 0; at < count; i++) {
    const to = Math.min(count, at + (sizes[i % sizes.length] as number));
    results.push(...step(cache, all, at, to));
    at = to;
  }
  return Float32Array.from(results);
}

describe("append", () => {
  test.each<[name: string, options: Partial<KvCacheOptions>]>([
    ["a quantized line", {}],
    ["a dense line", dense],
    ["keys in bf16 beside codes", { k: "bf16" }],
    ["a ring that wraps behind kept tokens", { ...dense, capacity: 20, window: 6, keep: 3 }],
    ["a tail", { tail: 5, maxAppend: 64 }],
    ["pages", { k: "f32", v: "f32", pages: { tokens: 4, count: 8 } }],
  ])("wrong rotary positions: rope in the append turns as applyRope does before it: %s", (_, options) => {
    const rope = { theta: 10_000, pairing: "half" } as const;
    using all = rowsOf(20, 1);
    using turned = device.tensor("f32", [20, 1, 64]);
    {
      using pass = device.pass();
      applyRope(pass, { x: all, out: turned, layout: "sequence-major", ...rope });
      pass.commitAndWait();
    }
    const attend = (isFused: boolean) => {
      using cache = new KvCache(device, { ...base, ...options });
      const results: number[] = [];
      for (const [from, to] of [
        [0, 2],
        [2, 8],
        [8, 9],
        [9, 20],
      ] as const) {
        using q = rowsOf(20, 5, 2).slice(from, to);
        using out = device.tensor("f32", [to - from, 2, 64]);
        using pass = device.pass();
        using v = all.slice(from, to);
        using k = (isFused ? all : turned).slice(from, to);
        expect(cache.append(pass, 0, { k, v, ...(isFused && { rope }) })).toBe(from);
        cache.attend(pass, 0, { q, out });
        pass.commitAndWait();
        cache.advance();
        results.push(...out.toFloat32Array());
      }
      return results;
    };
    expect(attend(true)).toEqual(attend(false));
  });

  test("the position that append gave stays what it is", () => {
    using cache = new KvCache(device, base);
    using all = rowsOf(3, 1);
    using pass = device.pass();
    const start = cache.append(pass, 0, { k: all, v: all });
    pass.commitAndWait();
    cache.advance();
    expect([start, cache.length]).toEqual([0, 3]);
  });

  const kinds: [name: string, options: Partial<KvCacheOptions>][] = [
    ["a dense line", dense],
    ["a quantized line", {}],
    ["a ring", { ...dense, capacity: 24, window: 12 }],
    ["a ring that keeps", { capacity: 27, window: 12, keep: 3 }],
    ["a tail", { tail: 5, maxAppend: 64 }],
    ["a tail in a ring", { capacity: 30, window: 12, keep: 3, tail: 5 }],
    ["a short tail", { tail: 2, maxAppend: 4, pages: { tokens: 8, count: 8 } }],
    ["pages", { ...dense, pages: { tokens: 8, count: 8 } }],
  ];
  for (const [name, options] of kinds) {
    test(`${name}: the same bits however appends are cut`, () => {
      using all = rowsOf(50, 2);
      const run = (sizes: readonly number[]) => {
        using cache = new KvCache(device, { ...base, ...options });
        return inParts(cache, all, sizes);
      };
      const one = run([1]);
      expect(one.every(Number.isFinite)).toBe(true);
      expect(run([13])).toEqual(one);
      expect(run([3, 1, 7])).toEqual(one);
      // One more than the short tail takes at once, and than the ring.
      expect(run([5])).toEqual(one);
      expect(run([14])).toEqual(one);
      // More than the ring, or the tail, has slots for.
      expect(run([2, 40])).toEqual(one);
      expect(run([50])).toEqual(one);
    });
  }

  test("pages, a ring and a line give the same bits where they hold the same", () => {
    using all = rowsOf(40, 3);
    const run = (options: Partial<KvCacheOptions>) => {
      using cache = new KvCache(device, { ...base, ...dense, ...options });
      return inParts(cache, all, [5]);
    };
    const line = run({});
    expect(run({ pages: { tokens: 4, count: 10 } })).toEqual(line);
    expect(run({ capacity: 44, window: 40 })).toEqual(line);
    expect(run({ sequences: 3 })).toEqual(line);
  });
});

describe("a prompt in parts", () => {
  test.each<[name: string, options: Partial<KvCacheOptions>]>([
    ["a dense line", dense],
    ["dense pages", { ...dense, pages: { tokens: 8, count: 20 } }],
    ["codes", {}],
    ["codes in pages", { pages: { tokens: 8, count: 20 } }],
    ["codes with a tail", { tail: 9 }],
    ["a dense ring", { ...dense, window: 20 }],
    ["kept tokens", { ...dense, window: 20, keep: 3 }],
  ])("%s: the bits of the whole, however few rows a part has", (_, options) => {
    const draw = seededBits(31);
    const random = (heads: number) =>
      device
        .tensor("f16", [72, heads, 64])
        .set(Float32Array.from({ length: 72 * heads * 64 }, () => draw() / 2 ** 31 - 1));
    const [k, v, q] = [random(1), random(1), random(2)];
    const run = (sizes: readonly number[]) => {
      using cache = new KvCache(device, { ...base, capacity: 100, ...options });
      const results: number[] = [];
      for (const count of sizes) {
        const at = cache.length;
        const out = device.tensor("f16", [count, 2, 64]);
        using pass = device.pass();
        cache.append(pass, 0, { k: k.slice(at, at + count), v: v.slice(at, at + count) });
        cache.attend(pass, 0, { q: q.slice(at, at + count), out, isPrompt: true });
        pass.commitAndWait();
        cache.advance();
        results.push(...out.toFloat32Array());
      }
      return results;
    };
    const whole = run([72]);
    for (const sizes of [
      [36, 36],
      [32, 32, 8],
      [16, 56],
      [1, 1, 70],
      [20, 1, 17, 2, 32],
    ])
      expect(run(sizes)).toEqual(whole);
  });
});

describe("window and keep", () => {
  test("tokens dropped, or wrong at the boundary: a long append sees its window at every row", () => {
    using all = rowsOf(60, 4);
    const run = (capacity: number, sizes: readonly number[]) => {
      using cache = new KvCache(device, { ...base, ...dense, capacity, window: 16 });
      return inParts(cache, all, sizes);
    };
    const wide = run(128, [60]);
    // As many as the ring takes at once, and one more.
    for (const most of [1, 5, 9]) for (const cut of [most, most + 1]) expect(run(15 + most, [cut])).toEqual(wide);
  });

  test("pages before the window go back to the pool, and what others write there is not seen", () => {
    const pool = { ...base, ...dense, window: 10, sequences: 2, pages: { tokens: 4, count: 8 } };
    using cache = new KvCache(device, pool);
    using line = new KvCache(device, { ...base, ...dense });
    using all = rowsOf(40, 20);
    using bad = device.tensor("f32", [12, 1, 64]).set(new Float32Array(768).fill(Number.NaN));
    const own = cache.sequence();
    for (let at = 0; at < 40; at += 4) {
      expect(step(cache, all, at, at + 4, { sequences: [own] })).toEqual(step(line, all, at, at + 4, { window: 10 }));
      // At most the pages of the window, of the step, and one cut by the window's end.
      expect(cache.freePages).toBeGreaterThanOrEqual(8 - 4);
      const other = cache.sequence();
      step(cache, bad, 0, 12, { sequences: [other] });
      other.drop();
    }
    expectRefusal(() => own.crop(20), "invalid-state", "length", "given back", "rollback");
    own.crop(0);
    expect(cache.freePages).toBe(8);
    using fresh = new KvCache(device, { ...base, ...dense });
    expect(step(cache, all, 0, 4, { sequences: [own] })).toEqual(step(fresh, all, 0, 4));
  });

  test("kept tokens are seen from everywhere, and no window moves them", () => {
    using cache = new KvCache(device, { ...base, ...dense, capacity: 12, window: 4, keep: 2 });
    // Keys of 0 weigh all that a row sees alike; the values are 0 but for the kept tokens.
    using k = device.tensor("f32", [40, 1, 64]);
    using v = device.tensor("f32", [40, 1, 64]).set(new Float32Array(2 * 64).fill(600), 0);
    using q = rowsOf(5, 6, 2);
    using out = device.tensor("f32", [5, 2, 64]);
    for (let at = 0; at < 40; at += 5) {
      using pass = device.pass();
      cache.append(pass, 0, { k: k.slice(at, at + 5), v: v.slice(at, at + 5) });
      cache.attend(pass, 0, { q, out });
      pass.commitAndWait();
      cache.advance();
      const expected = Array.from({ length: 5 }, (_, i) => {
        const position = at + i;
        return (600 * Math.min(2, position + 1)) / (Math.min(2, position + 1) + Math.min(4, Math.max(0, position - 1)));
      });
      const got = out.toFloat32Array();
      for (const [i, mean] of expected.entries()) expect(got[i * 128]).toBeCloseTo(mean, 2);
    }
  });
});

describe("trim, crop and fork", () => {
  test("a wrapped ring refuses what it has overwritten, and rollback makes room", () => {
    const after = (rollback: number) => {
      const cache = new KvCache(device, { ...base, ...dense, capacity: 8, window: 8, rollback });
      using all = rowsOf(20, 7);
      inParts(cache, all, [1]);
      return cache;
    };
    using tight = after(0);
    const [sequence] = tight.sequences as [KvSequence];
    expect(sequence.trim(1)).toBe(1);
    expectRefusal(() => sequence.trim(1), "invalid-state", "n", "wrapped", "rollback");
    expect(sequence.length).toBe(19);
    using roomy = after(3);
    expect(roomy.sequences[0]?.trim(4)).toBe(4);
  });

  test("what follows a trim has the bits of a cache that never had the tokens", () => {
    using all = rowsOf(30, 8);
    using other = rowsOf(30, 9);
    const options = { ...base, capacity: 12, window: 8, keep: 2, rollback: 4 };
    using cache = new KvCache(device, options);
    using fresh = new KvCache(device, options);
    for (const each of [cache, fresh]) inParts(each, all.slice(0, 20), [1]);
    for (let i = 0; i < 3; i++) step(cache, other, i, i + 1);
    cache.sequences[0]?.trim(3);
    expect(step(cache, all, 20, 21)).toEqual(step(fresh, all, 20, 21));
  });

  test.each<[tail: number, maxAppend: number, rollback: number]>([
    [4, 1, 10],
    [4, 4, 10],
    [4, 8, 10],
    [4, 16, 10],
    [8, 2, 20],
    [32, 1, 40],
  ])(
    "a tail of %i, appends of at most %i: back by a rollback of %i, also after a step that came to nothing",
    (...sizes) => {
      const [tail, maxAppend, rollback] = sizes;
      const options = { ...base, capacity: 140, tail, maxAppend, rollback };
      using all = rowsOf(140, 8);
      for (const hasAbandoned of [false, true]) {
        for (let length = rollback + 1; length < 120; length += 3) {
          using cache = new KvCache(device, options);
          using fresh = new KvCache(device, options);
          inParts(cache, all.slice(0, length), [maxAppend]);
          inParts(fresh, all.slice(0, length - rollback), [maxAppend]);
          if (hasAbandoned) {
            using lost = rowsOf(maxAppend, 9);
            using pass = device.pass();
            cache.append(pass, 0, { k: lost, v: lost });
            pass.commitAndWait();
            cache.abandon();
          }
          cache.sequences[0]?.trim(rollback);
          const next = (of: KvCache) => step(of, all, length - rollback, length - rollback + 1);
          expect({ length, hasAbandoned, next: next(cache) }).toEqual({ length, hasAbandoned, next: next(fresh) });
        }
      }
    },
  );

  test("crop(0) leaves nothing, and lengths are absolute", () => {
    using cache = new KvCache(device, { ...base, ...dense });
    using all = rowsOf(9, 10);
    inParts(cache, all, [9]);
    const [sequence] = cache.sequences as [KvSequence];
    expectRefusal(() => sequence.crop(-1), "invalid-argument", "length", -1);
    expectRefusal(() => sequence.crop(10), "invalid-argument", "length", 10, 9);
    expectRefusal(() => sequence.trim(-1), "invalid-argument", "n", -1);
    sequence.crop(0);
    expect(cache.length).toBe(0);
    expect(sequence.trim(5)).toBe(0);
    using fresh = new KvCache(device, { ...base, ...dense });
    expect(step(cache, all, 0, 4)).toEqual(step(fresh, all, 0, 4));
  });

  test("a fork copies no full page, and neither of the two changes the other", () => {
    using cache = new KvCache(device, { ...base, ...dense, sequences: 3, pages: { tokens: 4, count: 12 } });
    using all = rowsOf(14, 11);
    using other = rowsOf(14, 12);
    const first = cache.sequence();
    step(cache, all, 0, 10, { sequences: [first] });
    expect(cache.freePages).toBe(9);
    const second = first.fork();
    expect(cache.freePages).toBe(8);
    const whole = first.fork(8);
    expect(cache.freePages).toBe(8);
    // Both write behind what they share.
    step(cache, other, 10, 12, { sequences: [second] });
    step(cache, other, 8, 9, { sequences: [whole] });
    using fresh = new KvCache(device, { ...base, ...dense });
    step(fresh, all, 0, 10);
    expect(step(cache, all, 10, 14, { sequences: [first] })).toEqual(step(fresh, all, 10, 14));
    for (const sequence of [first, second, whole]) sequence.drop();
    expect(cache.freePages).toBe(12);
  });

  test("a sequence that goes back into a shared page gets one of its own, and gives all back", () => {
    using cache = new KvCache(device, { ...base, ...dense, sequences: 2, pages: { tokens: 4, count: 6 } });
    using all = rowsOf(12, 18);
    const first = cache.sequence();
    step(cache, all, 0, 8, { sequences: [first] });
    const second = first.fork();
    expect(cache.freePages).toBe(4);
    first.crop(6);
    step(cache, rowsOf(12, 19), 0, 1, { sequences: [first] });
    expect(cache.freePages).toBe(3);
    using fresh = new KvCache(device, { ...base, ...dense });
    step(fresh, all, 0, 8);
    expect(step(cache, all, 8, 10, { sequences: [second] })).toEqual(step(fresh, all, 8, 10));
    for (const sequence of [first, second]) sequence.drop();
    expect(cache.freePages).toBe(6);
  });

  test("a prefix is found by the ids of its tokens", () => {
    using cache = new KvCache(device, { ...base, ...dense, sequences: 2 });
    using all = rowsOf(5, 13);
    const sequence = cache.sequence();
    using pass = device.pass();
    cache.append(pass, 0, { k: all, v: all });
    pass.commitAndWait();
    cache.advance(5, [3, 1, 4, 1, 5]);
    expect(cache.match([3, 1, 4, 9])).toEqual({ sequence, length: 3 });
    expect(cache.match([9])).toBeUndefined();
    expect(cache.match(Int32Array.of(3, 1))).toEqual({ sequence, length: 2 });
  });

  test("ids that a file could not hold, or that equal nothing, are refused, and the step goes on", () => {
    using cache = new KvCache(device, { ...base, ...dense });
    using all = rowsOf(2, 13);
    using pass = device.pass();
    cache.append(pass, 0, { k: all, v: all });
    pass.commitAndWait();
    const advance = (ids: unknown) => () => cache.advance(2, ids as number[]);
    expectRefusal(advance([1, Number.NaN]), "invalid-argument", "tokens[1]", "NaN");
    expectRefusal(advance([1.5, 1]), "invalid-argument", "tokens[0]", "1.5");
    expectRefusal(advance([undefined, 1]), "invalid-argument", "tokens[0]", "undefined");
    expectRefusal(advance(BigInt64Array.of(4n, 5n)), "invalid-argument", "tokens[0]", "4n");
    expectRefusal(advance("ab"), "invalid-argument", "tokens", "ab");
    expectRefusal(advance(null), "invalid-argument", "tokens", "null");
    expectRefusal(advance({ length: 2 ** 40 }), "invalid-argument", "tokens", 2 ** 40, 2);
    const match = (ids: unknown) => () => cache.match(ids as number[]);
    expectRefusal(match(null), "invalid-argument", "tokens", "null");
    expectRefusal(match(BigInt64Array.of(4n, 5n)), "invalid-argument", "tokens[0]", "4n");
    expectRefusal(match([4, "5"]), "invalid-argument", "tokens[1]", '"5"');
    expectRefusal(match([4, 5, 1.5]), "invalid-argument", "tokens[2]", "1.5");
    expectRefusal(match(device.tensor("i32", [2])), "invalid-argument", "tokens[0]", "undefined");
    expectRefusal(match({ length: 2 ** 40 }), "invalid-argument", "tokens[0]", "undefined");
    expect(cache.length).toBe(0);
    cache.advance(2, { length: 2, 0: 7, 1: 8 });
    expect(cache.match([7, 8])?.length).toBe(2);
  });
});

describe("batches", () => {
  test("ragged sequences in one call have the bits of each alone", () => {
    using all = rowsOf(30, 14);
    const options = { ...base, ...dense, sequences: 3, pages: { tokens: 4, count: 24 } };
    using cache = new KvCache(device, options);
    const sequences = [cache.sequence(), cache.sequence(), cache.sequence()];
    const counts = [4, 1, 7];
    const together = step(cache, all, 0, 12, { sequences, counts });
    const next = step(cache, all, 12, 15, { sequences });
    let row = 0;
    for (const [i, count] of counts.entries()) {
      using alone = new KvCache(device, { ...base, ...dense });
      expect(step(alone, all, row, row + count)).toEqual(together.slice(row * 128, (row + count) * 128));
      expect(step(alone, all, 12 + i, 13 + i)).toEqual(next.slice(i * 128, (i + 1) * 128));
      row += count;
    }
  });

  test("rows of no tokens: refused, the sequence and the output as they were", () => {
    using cache = new KvCache(device, { ...base, ...dense, sequences: 2 });
    const sequences = [cache.sequence(), cache.sequence()];
    using all = rowsOf(4, 21);
    step(cache, all, 0, 4, { sequences, counts: [1, 3] });
    using none = all.slice(0, 0);
    using pass = device.pass();
    const append = (k: Tensor<"f32">, counts: readonly number[]) => () =>
      cache.append(pass, 0, { k, v: k, sequences, counts });
    expectRefusal(append(all, [0, 4]), "invalid-argument", "counts.0", "0 tokens", "leave the sequence out");
    expectRefusal(append(none, [0, 0]), "invalid-argument", "counts.0", "0 tokens");
    expect(pass.describe()).toEqual([]);
    // A sequence that is left out stays, and the rows of the other are its own.
    using fresh = new KvCache(device, { ...base, ...dense });
    step(fresh, all, 1, 4);
    expect(step(cache, all, 0, 1, { sequences: sequences.slice(1) })).toEqual(step(fresh, all, 0, 1));
    expect(sequences.map(({ length }) => length)).toEqual([1, 4]);
  });

  test("a page whose end holds NaN, and memory that was another sequence's, are not seen", () => {
    using cache = new KvCache(device, { ...base, ...dense, sequences: 2, pages: { tokens: 16, count: 2 } });
    using bad = device.tensor("f32", [16, 1, 64]).set(new Float32Array(1024).fill(Number.NaN));
    const first = cache.sequence();
    step(cache, bad, 0, 16, { sequences: [first] });
    first.drop();
    const second = cache.sequence();
    using all = rowsOf(16, 15);
    using fresh = new KvCache(device, { ...base, ...dense });
    expect(step(cache, all, 0, 3, { sequences: [second] })).toEqual(step(fresh, all, 0, 3));
  });
});

describe("memory", () => {
  test("bytes are what the device allocated, codes counted as codes", () => {
    const kept: Tensor[] = [];
    const shape = { layers: 2, nKvHeads: 2, headDim: 64, capacity: 1024 };
    // Of its own, on which nobody else gives anything back.
    using own = Device.open();
    const before = own.info.currentAllocatedSize;
    using cache = new KvCache(own, shape);
    const { rows, norms, tables, scratch, tail } = cache.memory;
    const each = (bits: 4 | 8) =>
      kvCacheBytes({ headDim: 64, nKvHeads: 2, capacity: 1024, nLayers: 2, bits }).total / 2;
    expect(rows + norms).toBe(each(8) + each(4));
    expect([tables, scratch, tail]).toEqual([8, 0, 0]);
    expect(cache.bytes).toBe(rows + norms + 8);
    // Buffers are rounded to pages, and have guard zones at times: beside those of the same bytes.
    const allocated = own.info.currentAllocatedSize;
    const vectors = 2 * 1024;
    for (const layerBytes of [64 * vectors, 32 * vectors, 4 * vectors, 4 * vectors]) {
      for (let layer = 0; layer < 2; layer++) kept.push(own.tensor("u8", [layerBytes]));
    }
    for (let table = 0; table < 2; table++) kept.push(own.tensor("i32", [1]));
    expect(own.info.currentAllocatedSize - allocated).toBe(allocated - before);
  });

  test("a quantized cache takes no more memory while it is filled", () => {
    using cache = new KvCache(device, { ...base, capacity: 512, tail: 8, maxAppend: 64 });
    using all = rowsOf(64, 16);
    step(cache, all, 0, 64);
    const { bytes } = cache;
    for (let i = 0; i < 6; i++) step(cache, all, 0, 64);
    expect([cache.length, cache.bytes]).toEqual([448, bytes]);
    expect(bytes).toBeLessThan(512 * 64 * 4 * 2);
  });

  test("memory stays flat over a million tokens in a ring, which then has the bits of one that saw 8,000", () => {
    const ring = { ...base, capacity: 1210, window: 200, keep: 2, tail: 8, maxAppend: 1000 };
    using cache = new KvCache(device, ring);
    using all = rowsOf(1000, 17);
    const append = (to: KvCache, from: number, count: number) => {
      using part = all.slice(from, from + count);
      using pass = device.pass();
      to.append(pass, 0, { k: part, v: part });
      pass.commitAndWait();
      to.advance(count);
    };
    for (let i = 0; i < 3; i++) append(cache, 0, 1000);
    const [bytes, allocated] = [cache.bytes, device.info.currentAllocatedSize];
    for (let i = 3; i < 1000; i++) append(cache, 0, 1000);
    expect([cache.length, cache.bytes]).toEqual([1_000_000, bytes]);
    expect(device.info.currentAllocatedSize).toBeLessThanOrEqual(allocated);
    // Sums are cut at multiples of 256 of positions, of which 8,000 and a million leave the same.
    using fresh = new KvCache(device, ring);
    for (let i = 0; i < 8; i++) append(fresh, 0, 1000);
    expect(step(cache, all, 0, 9)).toEqual(step(fresh, all, 0, 9));
  });
});
