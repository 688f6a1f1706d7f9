/** A step that is recorded once and run again does what the same step encoded anew does. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, KvCache, type KvCacheOptions, type KvSequence } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());

const base: KvCacheOptions = { layers: 2, nKvHeads: 2, headDim: 64, capacity: 40 };

describe("a recorded step", () => {
  const kinds: [
    name: string,
    options: Partial<KvCacheOptions>,
    tokens: number,
    sequences: number,
    isTurned: boolean,
  ][] = [
    ["a dense line", { k: "f16", v: "f16" }, 1, 1, false],
    ["a quantized line with rope", {}, 1, 1, true],
    ["a line, 3 tokens a step", { k: "f16", v: "f16" }, 3, 1, true],
    ["a dense ring that wraps, with rope", { k: "f16", v: "f16", capacity: 12, window: 8 }, 1, 1, true],
    ["keys in bf16 beside codes, with rope", { k: "bf16" }, 2, 1, true],
    ["a ring that wraps", { capacity: 12, window: 8 }, 2, 1, false],
    ["a line of two sequences", { k: "f16", v: "f16" }, 1, 2, false],
  ];
  for (const [name, options, tokens, sequences, isTurned] of kinds) {
    test(name, () => {
      const rows = tokens * sequences;
      const rope = isTurned ? { rope: { theta: 10_000, pairing: "half" as const } } : {};
      const tensor = (...shape: number[]) => device.tensor("f32", shape);
      const [k, v] = [tensor(rows, 2, 64), tensor(rows, 2, 64)];
      const [q, out] = [tensor(rows, 4, 64), tensor(rows, 4, 64)];
      const run = (isRecorded: boolean) => {
        using cache = new KvCache(device, { ...base, ...options, sequences });
        const all: KvSequence[] = Array.from({ length: sequences }, () => cache.sequence());
        const results: Float32Array[] = [];
        const draw = normalDraws(5);
        const fill = () => {
          for (const x of [k, v, q]) x.set(Float32Array.from({ length: x.length }, draw));
        };
        const encode = (pass: Parameters<Parameters<Device["record"]>[0]>[0] | ReturnType<Device["pass"]>) => {
          for (const layer of [0, 1]) {
            cache.append(pass, layer, { k, v, sequences: all, ...rope });
            cache.attend(pass, layer, { q, out });
          }
        };
        const step = isRecorded ? device.record(encode) : undefined;
        const { bytes } = cache;
        for (let i = 0; i < 10; i++) {
          fill();
          if (step !== undefined) step.commitAndWait(cache.prepare());
          else {
            using pass = device.pass();
            encode(pass);
            pass.commitAndWait();
          }
          cache.advance(rows);
          results.push(out.toFloat32Array());
        }
        if (isRecorded) expect(cache.bytes).toBe(bytes);
        expect(all.map(({ length }) => length)).toEqual(all.map(() => 10 * tokens));
        step?.dispose();
        return results;
      };
      const plain = run(false);
      expect(new Set(plain.map((result) => `${result.slice(0, 4)}`)).size).toBe(10);
      expect(run(true)).toEqual(plain);
    });
  }

  test("what cannot be recorded, and a run without room", () => {
    const k = device.tensor("f32", [1, 2, 64]);
    const record = (options: Partial<KvCacheOptions>) => () => {
      using cache = new KvCache(device, { ...base, ...options });
      device.record((pass) => void cache.append(pass, 0, { k, v: k }));
    };
    expectRefusal(record({ pages: { tokens: 4, count: 4 } }), "unsupported", "pass", "pages");
    expectRefusal(record({ tail: 4 }), "unsupported", "pass", "tail");
    expectRefusal(record({ window: 4, keep: 2 }), "unsupported", "pass", "keep");

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
