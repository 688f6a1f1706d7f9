/** How many dispatches an append takes, whatever the number of its sequences, tokens and pages. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, KvCache, type KvCacheOptions } from "../../src/index.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());

const base: KvCacheOptions = { layers: 1, nKvHeads: 2, headDim: 64, capacity: 60, sequences: 3 };
const dense = { k: "f16", v: "f16" } as const;
const pages = { tokens: 4, count: 45 };
const rope = { rope: { theta: 10_000, pairing: "half" as const } };

/** What the append of a step is made of, which is done after. */
function append(cache: KvCache, counts: readonly number[], isTurned = false, dtype: "f32" | "f16" = "f32"): string[] {
  const sequences = cache.sequences.length > 0 ? cache.sequences : counts.map(() => cache.sequence());
  const rows = counts.reduce((sum, count) => sum + count, 0);
  const draw = normalDraws(rows);
  const tensor = () => device.tensor(dtype, [rows, 2, 64]).set(Float32Array.from({ length: rows * 128 }, draw));
  using pass = device.pass();
  cache.append(pass, 0, { k: tensor(), v: tensor(), sequences, counts, ...(isTurned && rope) });
  const found = pass.describe().map(({ op }) => op);
  pass.commitAndWait();
  cache.advance();
  return found;
}

describe("dispatches of an append", () => {
  const [copy, quantize] = ["kvCacheAppend", "hadamardQuantizeKvSeq"];
  const cases: [name: string, options: Partial<KvCacheOptions>, expected: string[], isTurned?: boolean][] = [
    ["a dense line, turned", dense, [copy], true],
    ["a dense ring", { ...dense, window: 20 }, [copy]],
    ["dense pages, turned", { ...dense, pages }, [copy], true],
    ["codes of one width", { k: { bits: 4 } }, [quantize]],
    ["codes of two widths", {}, [quantize]],
    ["codes in pages, turned", { pages }, [quantize], true],
    ["codes and values", { k: { bits: 8 }, v: "f16" }, [quantize, copy]],
    ["a ring that keeps", { ...dense, window: 20, keep: 2 }, [copy, copy]],
    ["a tail", { tail: 40 }, [copy]],
    ["a tail, turned", { tail: 40 }, [copy], true],
    ["a tail of bf16 and pages, turned", { tail: 40, tailDtype: "bf16", pages }, [copy], true],
  ];
  for (const [name, options, expected, isTurned] of cases) {
    test(`${name}: one for three sequences`, () => {
      for (const dtype of ["f32", "f16"] as const) {
        using cache = new KvCache(device, { ...base, ...options });
        expect(append(cache, [5, 5, 5], isTurned, dtype)).toEqual(expected);
        expect(append(cache, [1, 1, 1], isTurned, dtype)).toEqual(expected);
      }
    });
  }

  test("many tokens of several sequences", () => {
    using cache = new KvCache(device, { ...base, capacity: 600 });
    expect(append(cache, [500, 500, 500], true)).toEqual([quantize]);
  });

  test("a block that leaves the tail, from K and V of 16 bits: one for each sequence", () => {
    const ofPages = [4, 7, 48, 64].map((tokens) => ({ pages: { tokens, count: 60 } }));
    for (const more of [{}, ...ofPages, { k: { bits: 5 }, v: { bits: 3 } }] as const) {
      using cache = new KvCache(device, { ...base, capacity: 200, tail: 32, ...more });
      expect(append(cache, [40, 40, 40], true)).toEqual([copy]);
      expect(append(cache, [30, 30, 30], true, "f16")).toEqual([copy, quantize, quantize, quantize]);
    }
    using cache = new KvCache(device, { ...base, sequences: 1, capacity: 200, tail: 32, v: "f16" });
    append(cache, [60]);
    expect(append(cache, [10])).toEqual([copy, quantize, copy]);
  });

  test("blocks leave a tail one by one, wherever in it they lie", () => {
    const kinds: Partial<KvCacheOptions>[] = [{}, { maxAppend: 7 }, { tail: 5 }, { pages: { tokens: 5, count: 120 } }];
    for (const more of kinds) {
      using cache = new KvCache(device, { ...base, sequences: 1, capacity: 600, tail: 40, maxAppend: 9, ...more });
      const size = Math.min(32, more.tail ?? 40);
      let blocks = 0;
      for (let i = 0; i < 80; i++) {
        const found = append(cache, [7]).filter((op) => op === quantize).length;
        // Seven tokens push one block out, or two of five.
        expect(found).toBeLessThanOrEqual(size === 5 ? 2 : 1);
        blocks += found;
      }
      expect(blocks).toBeGreaterThan(560 / size / 3);
    }
  });

  test("a prompt over many pages is written at once", () => {
    for (const [options, expected] of [
      [dense, [copy]],
      [{}, [quantize]],
    ] as const) {
      using cache = new KvCache(device, { ...base, ...options, sequences: 1, pages });
      expect(append(cache, [38])).toEqual([...expected]);
    }
  });

  test("a long prompt is over pages what it is without", () => {
    const attended = (more: Partial<KvCacheOptions>) => {
      using cache = new KvCache(device, { ...base, capacity: 600, sequences: 1, ...more });
      append(cache, [3], true);
      append(cache, [590], true);
      const [x, out] = [device.tensor("f32", [1, 2, 64]), device.tensor("f32", [1, 2, 64])];
      x.set(Float32Array.from({ length: 128 }, normalDraws(3)));
      using pass = device.pass();
      cache.append(pass, 0, { k: x, v: x, ...rope });
      cache.attend(pass, 0, { q: x, out });
      pass.commitAndWait();
      return out.toFloat32Array();
    };
    expect(attended({ pages: { tokens: 7, count: 90 } })).toEqual(attended({}));
  });
});
