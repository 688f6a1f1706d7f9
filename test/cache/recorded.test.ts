/** A step that is recorded once and run again does what the same step encoded anew does. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, KvCache, type KvCacheOptions, type KvSequence, type Pass } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());

const base: KvCacheOptions = { layers: 2, nKvHeads: 2, headDim: 64, capacity: 40 };

/** A kind of cache, and what a step of it has. */
interface Case {
  readonly name: string;
  readonly options: Partial<KvCacheOptions>;
  /** Tokens of a sequence; 1 unless given. */
  readonly tokens?: number;
  readonly sequences?: number;
  readonly isTurned?: boolean;
  /** 10 unless given. */
  readonly steps?: number;
  /** Of attend, beside that of the cache. */
  readonly window?: number;
  readonly hasSinks?: boolean;
  readonly hasSlopes?: boolean;
}

const dense = { k: "f16", v: "f16" } as const;
const cases: readonly Case[] = [
  { name: "a dense line", options: dense },
  { name: "a quantized line with rope", options: {}, isTurned: true },
  { name: "a line, 3 tokens a step", options: dense, tokens: 3, isTurned: true },
  { name: "a dense ring that wraps, with rope", options: { ...dense, capacity: 12, window: 8 }, isTurned: true },
  { name: "keys in bf16 beside codes, with rope", options: { k: "bf16" }, tokens: 2, isTurned: true },
  { name: "a ring that wraps", options: { capacity: 12, window: 8 }, tokens: 2 },
  { name: "a line of two sequences", options: dense, sequences: 2 },
  { name: "dense pages", options: { ...dense, pages: { tokens: 4, count: 12 } }, isTurned: true, hasSinks: true },
  { name: "quantized pages, 3 tokens across their ends", options: { pages: { tokens: 4, count: 12 } }, tokens: 3 },
  { name: "pages of two sequences", options: { pages: { tokens: 4, count: 12 } }, sequences: 2, isTurned: true },
  {
    name: "pages with a window, quantized with a tail",
    options: { tail: 3, window: 6, pages: { tokens: 4, count: 6 } },
    steps: 30,
  },
  { name: "kept tokens", options: { ...dense, capacity: 12, window: 5, keep: 4 }, isTurned: true, hasSinks: true },
  { name: "quantized kept tokens, 3 a step", options: { capacity: 16, window: 6, keep: 4 }, tokens: 3, isTurned: true },
  { name: "a tail of a block of 32", options: { tail: 32, capacity: 90 }, steps: 70, isTurned: true, hasSinks: true },
  { name: "a tail that is quantized at each third step", options: { tail: 3 }, steps: 20, tokens: 1 },
  { name: "a tail shorter than a step", options: { tail: 2, maxAppend: 7 }, tokens: 5, steps: 7, isTurned: true },
  { name: "a tail in bf16 before dense keys", options: { k: "f16", tail: 4, tailDtype: "bf16" }, tokens: 2 },
  { name: "a tail of two sequences", options: { tail: 4 }, sequences: 2, isTurned: true, hasSinks: true },
  { name: "a tail of pages", options: { tail: 5, pages: { tokens: 4, count: 12 } }, steps: 24, hasSinks: true },
  {
    name: "a ring with kept tokens and a tail",
    options: { capacity: 16, window: 7, keep: 3, tail: 4, maxAppend: 5 },
    ...{ steps: 30, isTurned: true, hasSinks: true },
  },
  {
    name: "the same of two sequences, 2 tokens a step",
    options: { capacity: 16, window: 7, keep: 3, tail: 4, maxAppend: 5, rollback: 1 },
    ...{ tokens: 2, sequences: 2, steps: 12, isTurned: true },
  },
  {
    name: "kept tokens beyond the window, with a tail",
    options: { capacity: 24, window: 4, keep: 9, tail: 6, maxAppend: 5, rollback: 2 },
    ...{ steps: 30, hasSinks: true },
  },
  { name: "slopes over a line", options: {}, tokens: 2, hasSlopes: true },
  { name: "slopes over a tail", options: { tail: 4 }, tokens: 3, hasSlopes: true },
  { name: "slopes over tails of two sequences", options: { tail: 4 }, sequences: 2, hasSlopes: true, hasSinks: true },
  { name: "slopes over kept tokens", options: { ...dense, capacity: 12, window: 5, keep: 4 }, hasSlopes: true },
  {
    name: "slopes over pages with a window and a tail",
    options: { tail: 3, window: 6, pages: { tokens: 4, count: 6 } },
    ...{ steps: 20, hasSlopes: true },
  },
  {
    name: "slopes over kept tokens beyond the window, with a tail",
    options: { capacity: 24, window: 4, keep: 9, tail: 6, maxAppend: 5, rollback: 2 },
    ...{ tokens: 2, steps: 20, hasSlopes: true },
  },
  { name: "a window within a tail, and one beyond", options: { tail: 8, capacity: 50 }, window: 6, steps: 20 },
];

describe("a recorded step", () => {
  for (const { name, options, tokens = 1, sequences = 1, steps = 10, ...rest } of cases) {
    test(`${name}: the bits of the steps encoded anew`, () => {
      const rows = tokens * sequences;
      const rope = rest.isTurned === true ? { rope: { theta: 10_000, pairing: "half" as const } } : {};
      const tensor = (...shape: number[]) => device.tensor("f32", shape);
      const [k, v] = [tensor(rows, 2, 64), tensor(rows, 2, 64)];
      const [q, out, lse] = [tensor(rows, 4, 64), tensor(rows, 4, 64), tensor(rows, 4)];
      const sinks = tensor(4).set(Float32Array.of(0.5, -2, 1, 3));
      const slopes = tensor(4).set(Float32Array.of(0.3, 0.01, 0, -0.05));
      const run = (isRecorded: boolean) => {
        using cache = new KvCache(device, { ...base, ...options, sequences });
        const all: KvSequence[] = Array.from({ length: sequences }, () => cache.sequence());
        const results: Float32Array[] = [];
        const draw = normalDraws(5);
        const fill = () => {
          for (const x of [k, v, q]) x.set(Float32Array.from({ length: x.length }, draw));
        };
        const encode = (pass: Pass) => {
          for (const layer of [0, 1]) {
            cache.append(pass, layer, { k, v, sequences: all, ...rope });
            cache.attend(pass, layer, {
              ...{ q, out, lse },
              // A window of one layer alone, as models mix them.
              ...(rest.window !== undefined && layer === 1 && { window: rest.window }),
              ...(rest.hasSinks === true && { sinks }),
              // Slopes of one layer alone, so that the step has both views.
              ...(rest.hasSlopes === true && layer === 1 && { alibiSlopes: slopes }),
            });
          }
        };
        const step = isRecorded ? device.record(encode) : undefined;
        const { bytes } = cache;
        for (let i = 0; i < steps; i++) {
          fill();
          if (step !== undefined) step.commitAndWait(cache.prepare());
          else {
            using pass = device.pass();
            encode(pass);
            pass.commitAndWait();
          }
          cache.advance(rows);
          results.push(out.toFloat32Array(), lse.toFloat32Array());
          // Back by one, at times, and on.
          if (i % 5 === 3) for (const sequence of all) sequence.trim(1);
        }
        if (isRecorded) expect(cache.bytes).toBe(bytes);
        expect(all.map(({ length }) => length)).toEqual(all.map(() => steps * tokens - Math.floor((steps + 1) / 5)));
        step?.dispose();
        return results;
      };
      const plain = run(false);
      expect(new Set(plain.map((result) => `${result.slice(0, 4)}`)).size).toBe(2 * steps);
      expect(run(true)).toEqual(plain);
    });
  }

  test("keys of another rope than the cache has by then: refused before anything is written", () => {
    using cache = new KvCache(device, { ...base, ...dense, layers: 1 });
    const tokens = (heads: number) => device.tensor("f32", [1, heads, 64]);
    const stream = { k: tokens(2), v: tokens(2) };
    const one = { rope: { theta: 10_000, pairing: "half" } } as const;
    const other = { rope: { theta: 500_000, pairing: "half" } } as const;
    const append = (pass: Pass, rope: object) => cache.append(pass, 0, { ...stream, ...rope });
    const record = (rope: object) => device.record((pass) => append(pass, rope));
    const encode = (rope: object) => {
      using pass = device.pass();
      append(pass, rope);
      pass.commitAndWait();
      cache.advance();
    };
    using step = record(one);
    const run = () => {
      step.commitAndWait(cache.prepare());
      cache.advance();
    };
    run();
    expectRefusal(() => encode(other), "invalid-argument", "rope", "10000", "500000", "crop");
    expectRefusal(() => record(other), "invalid-argument", "rope", "10000", "500000", "crop");
    // What was recorded is no matter where nothing is left of it.
    cache.sequences[0]?.crop(0);
    encode(other);
    expectRefusal(() => cache.prepare(), "invalid-argument", "rope", "500000", "10000", "crop");
    expectRefusal(() => record({}), "invalid-argument", "rope", "500000", "none");
    expect(cache.length).toBe(1);
    cache.sequences[0]?.crop(0);
    encode({});
    expectRefusal(() => cache.prepare(), "invalid-argument", "rope", "none", "10000");
    cache.sequences[0]?.crop(0);
    run();
    expectRefusal(() => encode({}), "invalid-argument", "rope", "10000", "none");
    cache.sequences[0]?.crop(0);
    record(other).dispose();
    encode({});
    expect(cache.length).toBe(1);
  });

  test("what cannot be recorded, and a run without room", () => {
    const k = device.tensor("f32", [1, 2, 64]);
    const many = device.tensor("f32", [17, 2, 64]);
    {
      using cache = new KvCache(device, base);
      const record = () => device.record((pass) => void cache.append(pass, 0, { k: many, v: many }));
      expectRefusal(record, "unsupported", "k", 17, 16);
    }
    {
      using cache = new KvCache(device, base);
      const q = device.tensor("f32", [1, 2, 64]);
      const out = device.tensor("f32", [1, 2, 64]);
      const record = () =>
        device.record((pass) => {
          cache.append(pass, 0, { k, v: k });
          cache.attend(pass, 0, { q, out, isPrompt: true });
        });
      expectRefusal(record, "unsupported", "isPrompt", "recorded");
    }

    using cache = new KvCache(device, { ...base, layers: 1, capacity: 2 });
    expectRefusal(() => cache.prepare(), "invalid-state", "cache", "recorded");
    using step = device.record((pass) => void cache.append(pass, 0, { k, v: k }));
    expectRefusal(() => cache.prepare(2), "invalid-state", "cache", "recorded");
    for (let i = 0; i < 2; i++) {
      step.commitAndWait(cache.prepare());
      expectRefusal(() => cache.prepare(), "invalid-state", "cache", "during a step");
      cache.advance();
    }
    expectRefusal(() => cache.prepare(1), "overflow", "k", "capacity 2");
    cache.sequences[0]?.trim(1);
    cache.prepare();
    cache.abandon();
    expect(cache.length).toBe(1);
  });
});
