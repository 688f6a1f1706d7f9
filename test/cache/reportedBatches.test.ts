/** More of what users of other caches have reported: of batches, of groups of heads, of memory. */
import { afterAll, describe, expect, spyOn, test } from "bun:test";
import {
  applyRope,
  Device,
  KvCache,
  type KvCacheOptions,
  type KvSequence,
  kvCacheBytes,
  type Tensor,
} from "../../src/index.ts";
import { normalDraws } from "../helpers/random.ts";
import { attention } from "./attention.ts";

const device = Device.open();
afterAll(() => device.dispose());

const [kvHeads, heads] = [2, 6];
const base: KvCacheOptions = { layers: 1, nKvHeads: kvHeads, headDim: 64, capacity: 64, sequences: 3 };
const dense = { k: "f16", v: "f16" } as const;
const rope = { theta: 10_000, pairing: "half" } as const;

interface Given {
  readonly k: Tensor<"f32">;
  readonly v: Tensor<"f32">;
  readonly q: Tensor<"f32" | "f16">;
}

/** Keys, values and queries of so many tokens, all of f16 exactly. */
function givenOf(count: number, seed: number, dtype: "f32" | "f16" = "f32", on = device): Given {
  const draw = normalDraws(seed);
  const fill = <T extends "f32" | "f16">(type: T, of: number): Tensor<T> =>
    on
      .tensor(type, [count, of, 64])
      .set(Float32Array.from({ length: count * of * 64 }, () => Math.round(draw() * 256) / 256));
  return { k: fill("f32", kvHeads), v: fill("f32", kvHeads), q: fill(dtype, heads) };
}

const sum = (counts: readonly number[]) => counts.reduce((all, count) => all + count, 0);

/** A step; gives what attention makes of it, [rows, heads, 64], and the dispatches that attend. */
function step(
  cache: KvCache,
  sequences: readonly KvSequence[],
  counts: readonly number[],
  { k, v, q }: Given,
  isTurned = false,
): { readonly out: Float32Array; readonly attended: readonly string[] } {
  using out = device.tensor(q.dtype, q.shape);
  using pass = device.pass();
  cache.append(pass, 0, { k, v, sequences, counts, ...(isTurned && { rope }) });
  const written = pass.describe().length;
  cache.attend(pass, 0, { q, out });
  const attended = pass.describe().slice(written);
  pass.commitAndWait();
  cache.advance();
  return { out: out.toFloat32Array(), attended: attended.map(({ op }) => op) };
}

type Kind = readonly [name: string, options: Partial<KvCacheOptions>];
const kinds: readonly Kind[] = [
  ["a dense line", dense],
  ["codes", {}],
  ["a ring that keeps", { ...dense, capacity: 20, window: 9, keep: 3, rollback: 3 }],
  ["a tail", { tail: 4, maxAppend: 40, rollback: 3 }],
  ["pages", { ...dense, pages: { tokens: 4, count: 40 } }],
  ["codes in pages", { pages: { tokens: 4, count: 40 } }],
];

describe("batches", () => {
  test.each(kinds)("wrong rotary positions: each sequence has its own, after forks and trims too: %s", (_, options) => {
    const run = (isFused: boolean) => {
      using cache = new KvCache(device, { ...base, ...options });
      const results: Float32Array[] = [];
      const go = (sequences: readonly KvSequence[], counts: readonly number[]) => {
        const given = givenOf(sum(counts), results.length);
        if (!isFused) {
          const places = sequences.flatMap(({ length }, i) =>
            Array.from({ length: counts[i] as number }, (_, j) => length + j),
          );
          using positions = device.tensor("i32", [places.length]).set(places);
          using pass = device.pass();
          applyRope(pass, { x: given.k, layout: "sequence-major", positions, ...rope });
          pass.commitAndWait();
        }
        results.push(step(cache, sequences, counts, given, isFused).out);
      };
      const [a, b] = [cache.sequence(), cache.sequence()];
      go([a, b], [7, 2]);
      go([a, b], [1, 1]);
      const c = a.fork(6);
      go([c, b, a], [2, 5, 1]);
      a.trim(2);
      b.crop(b.length - 1);
      go([b, a, c], [3, 4, 1]);
      go([a, b, c], [1, 1, 1]);
      return results;
    };
    expect(run(true)).toEqual(run(false));
  });

  // Codes of 8 bits are a hundredth off, the keys of another head or sequence whole units.
  const groups: readonly (readonly [...Kind, worst: number])[] = [
    ["a line", dense, 0],
    ["pages", { ...dense, pages: { tokens: 8, count: 30 } }, 0],
    ["a tail", { k: "f16", v: { bits: 8 }, tail: 4, maxAppend: 40 }, 0.05],
  ];
  const programs = [
    {
      what: "rows of decode",
      dtype: "f32",
      error: 8e-5,
      steps: [
        [4, 1, 7],
        [1, 1, 1],
        [2, 5, 1],
      ],
    },
    {
      what: "prompts",
      dtype: "f16",
      error: 4e-3,
      steps: [
        [20, 33, 17],
        [18, 1, 24],
      ],
    },
  ] as const;
  for (const { what, dtype, error, steps } of programs) {
    test.each(groups)(
      `wrong grouping: each head its keys, each sequence its length: ${what}, %s`,
      (_, options, worst) => {
        using cache = new KvCache(device, { ...base, ...options });
        const sequences = [cache.sequence(), cache.sequence(), cache.sequence()];
        const known = sequences.map(() => ({ keys: [] as Float32Array[], values: [] as Float32Array[] }));
        for (const [seed, counts] of steps.entries()) {
          const given = givenOf(sum(counts), seed, dtype);
          const { out } = step(cache, sequences, counts, given);
          const [k, v, q] = [given.k.toFloat32Array(), given.v.toFloat32Array(), given.q.toFloat32Array()];
          const rowOf = (all: Float32Array, of: number, row: number) =>
            all.subarray(row * of * 64, (row + 1) * of * 64);
          let row = 0;
          for (const [s, count] of counts.entries()) {
            const { keys, values } = known[s] as (typeof known)[number];
            for (let i = 0; i < count; i++, row++) {
              keys.push(rowOf(k, kvHeads, row));
              values.push(rowOf(v, kvHeads, row));
              const expected = attention(rowOf(q, heads, row), keys, values, heads, kvHeads);
              const off = rowOf(out, heads, row).map((value, d) => Math.abs(value - (expected[d] as number)));
              expect(Math.max(...off)).toBeLessThan(Math.max(worst, error));
            }
          }
        }
      },
    );
  }

  test.each(kinds)("memory that holds NaN, of another sequence before, is not seen: %s", (_, options) => {
    for (const dtype of ["f32", "f16"] as const) {
      const run = (isSpoilt: boolean) => {
        using cache = new KvCache(device, { ...base, ...options });
        if (isSpoilt) {
          const sequences = [cache.sequence(), cache.sequence()];
          const bad = givenOf(72, 1);
          for (const x of [bad.k, bad.v]) x.view().fill(Number.NaN);
          step(cache, sequences, [36, 36], bad);
          for (const sequence of sequences) sequence.drop();
        }
        const [a, b] = [cache.sequence(), cache.sequence()];
        return [
          [3, 2],
          [1, 1],
          [2, 19],
        ].map((counts, seed) => step(cache, [a, b], counts, givenOf(sum(counts), seed, dtype)).out);
      };
      const clean = run(false);
      expect(clean.every((out) => out.every(Number.isFinite))).toBe(true);
      expect(run(true)).toEqual(clean);
    }
  });
});

describe("forks", () => {
  test("no deep copies: a fork takes no memory and writes the end of one page, and attention copies nothing", () => {
    for (const options of [dense, {}]) {
      using made = spyOn(device, "tensor");
      using cache = new KvCache(device, { ...base, ...options, pages: { tokens: 8, count: 20 } });
      const tensors = made.mock.results.map(({ value }) => value as Tensor).filter(({ dtype }) => dtype !== "i32");
      const sequence = cache.sequence();
      step(cache, [sequence], [29], givenOf(29, 1));
      const alone = step(cache, [sequence], [1], givenOf(1, 2)).attended;
      sequence.trim(1);
      const before = tensors.map(({ bytes }) => bytes.slice());
      const { memory, freePages } = cache;
      made.mockClear();
      const fork = sequence.fork();
      expect(made).not.toHaveBeenCalled();
      expect([cache.memory, cache.freePages]).toEqual([memory, freePages - 1]);
      for (const [i, { bytes, shape }] of tensors.entries()) {
        const page = bytes.length / (shape[0] as number);
        const changed = Array.from(bytes.keys()).filter((at) => bytes[at] !== before[i]?.[at]);
        expect(new Set(changed.map((at) => Math.floor(at / page))).size).toBe(1);
        // 5 of the 8 tokens of the page.
        expect(changed.length).toBeLessThanOrEqual((5 * page) / 8);
      }
      const together = step(cache, [sequence, fork], [1, 1], givenOf(2, 3)).attended;
      expect([alone, together]).toEqual([["flashAttnDecode"], ["flashAttnDecode"]]);
      expect(cache.memory.rows).toBe(memory.rows);
    }
  });
});

describe("memory", () => {
  const more: readonly Kind[] = [
    ...kinds,
    ["a ring of codes with a tail", { capacity: 20, window: 9, keep: 3, tail: 4, maxAppend: 5, tailDtype: "bf16" }],
    ["a tail in pages", { tail: 4, maxAppend: 5, pages: { tokens: 4, count: 40 } }],
    ["private", { tail: 4, maxAppend: 5, storage: "private" }],
  ];
  test.each(more)(
    "bytes are those of the tensors that it has, after each step and during long ones: %s",
    (_, options) => {
      using made = spyOn(device, "tensor");
      const cache = new KvCache(device, { ...base, ...options });
      let others = new Set<Tensor>();
      const check = () => {
        const own = made.mock.results.map(({ value }) => value as Tensor).filter((each) => !others.has(each));
        const bytes = own.reduce((all, each) => all + (each.disposed ? 0 : each.byteLength), 0);
        expect(cache.bytes).toBe(bytes);
      };
      check();
      const sequences = [cache.sequence(), cache.sequence()];
      for (const [seed, counts] of [
        [3, 5],
        [1, 1],
        [30, 2],
        [1, 1],
      ].entries()) {
        const { k, v, q } = givenOf(sum(counts), seed);
        const out = device.tensor("f32", q.shape);
        others = new Set<Tensor>([...others, k, v, q, out]);
        using pass = device.pass();
        cache.append(pass, 0, { k, v, sequences, counts });
        check();
        cache.attend(pass, 0, { q, out });
        check();
        pass.commitAndWait();
        cache.advance();
        check();
      }
      cache.dispose();
    },
  );

  test("rows and norms are what kvCacheBytes says, of every width and dtype", () => {
    const shape = { headDim: 128, nKvHeads: 3, capacity: 100 };
    const halfOf = (format: Parameters<typeof kvCacheBytes>[0]) => kvCacheBytes(format).total / 2;
    const formats = [
      ...([2, 3, 4, 5, 6, 8] as const).map((bits) => ({ bits })),
      ...(["f32", "f16", "bf16"] as const).map((dtype) => ({ dtype })),
    ];
    for (const [i, k] of formats.entries()) {
      const v = formats[(i + 4) % formats.length] as (typeof formats)[number];
      const stored = (format: (typeof formats)[number]) => ("dtype" in format ? format.dtype : format);
      using cache = new KvCache(device, { ...shape, layers: 2, k: stored(k), v: stored(v) });
      const expected = halfOf({ ...shape, nLayers: 2, ...k }) + halfOf({ ...shape, nLayers: 2, ...v });
      expect(cache.memory.rows + cache.memory.norms).toBe(expected);
    }
  });

  test.each([0, 32])(
    "a quantized cache never takes as much as a dense one, while prompts attend: a tail of %d",
    (tail) => {
      const shape = { headDim: 64, nKvHeads: kvHeads, capacity: 1024 };
      const layers = 8;
      const whole = kvCacheBytes({ ...shape, nLayers: layers, dtype: "f16" }).total;
      // Of its own, on which nobody else gives anything back.
      using own = Device.open();
      const { k, v, q } = givenOf(256, 1, "f16", own);
      using out = own.tensor("f16", q.shape);
      const before = own.info.currentAllocatedSize;
      using cache = new KvCache(own, { ...shape, layers, tail });
      let most = 0;
      for (let at = 0; at < 1024; at += 256) {
        using pass = own.pass();
        for (let layer = 0; layer < layers; layer++) {
          cache.append(pass, layer, { k, v });
          cache.attend(pass, layer, { q, out });
        }
        most = Math.max(most, own.info.currentAllocatedSize - before);
        pass.commitAndWait();
        most = Math.max(most, own.info.currentAllocatedSize - before);
        cache.advance();
      }
      expect(cache.length).toBe(1024);
      expect(most).toBeGreaterThan(cache.memory.rows);
      expect(most).toBeLessThan(whole);
    },
  );
});
