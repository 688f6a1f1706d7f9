/** What becomes of a cache whose recorded step is run, fails, or is run out of turn. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, KvCache, type KvCacheOptions, type KvSequence } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());
device.registerSource(
  "stray.metal",
  `#include <metal_stdlib>
  kernel void stray(device uint *x [[buffer(0)]], const device ulong &at [[buffer(1)]]) { x[at] = 1; }`,
);

const base: KvCacheOptions = { layers: 1, nKvHeads: 1, headDim: 64, capacity: 24 };

/** A cache with a recorded step, which fails in a run where `breaks` says so. */
function recordedCache(options: Partial<KvCacheOptions>) {
  const cache = new KvCache(device, { ...base, ...options });
  const sequence = cache.sequence();
  const tensor = (of: number) => device.tensor("f32", [1, of, 64]);
  const [k, q, out] = [tensor(1), tensor(2), tensor(2)];
  const at = device.tensor("u64", [1]);
  const step = device.record((pass) => {
    cache.append(pass, 0, { k, v: k });
    cache.attend(pass, 0, { q, out });
    pass.dispatch(device.pipeline("stray"), { buffers: [device.tensor("u32", [1]), at], grid: 1, threads: 1 });
  });
  const fill = (seed: number) => {
    const draw = normalDraws(seed);
    for (const x of [k, q]) x.set(Float32Array.from({ length: x.length }, draw));
  };
  const breaks = (isBroken: boolean) => at.view().fill(isBroken ? 2n ** 40n : 0n);
  const dispose = () => cache.dispose();
  return { cache, sequence, step, out, fill, breaks, [Symbol.dispose]: dispose };
}

describe("a run of a recorded step", () => {
  const kinds: [name: string, options: Partial<KvCacheOptions>][] = [
    ["a line", {}],
    ["pages", { pages: { tokens: 2, count: 12 } }],
    ["a tail", { tail: 2 }],
    ["a ring with kept tokens", { capacity: 9, window: 6, keep: 2, rollback: 1 }],
  ];
  for (const [name, options] of kinds) {
    test(`${name}: one that fails leaves the state before it`, async () => {
      const results = (failing: readonly number[]) => {
        using one = recordedCache(options);
        const { cache, sequence, step, out, fill, breaks } = one;
        const all: Float32Array[] = [];
        for (let i = 0; i < 12; i++) {
          if (failing.includes(i)) {
            const { freePages } = cache;
            fill(100 + i);
            breaks(true);
            expectRefusal(() => step.commitAndWait(cache.prepare()), "execution", undefined);
            expectRefusal(() => cache.advance(), "invalid-state", "cache", "failed");
            expect(sequence.length).toBe(i);
            breaks(false);
            // The step is forgotten by what comes next, and its page with it.
            if (i % 2 === 0) cache.abandon();
            else sequence.crop(i);
            expect(cache.freePages).toBe(freePages);
          }
          fill(i);
          step.commitAndWait(cache.prepare());
          cache.advance();
          all.push(out.toFloat32Array());
        }
        return all;
      };
      expect(results([0, 3, 6, 7, 11])).toEqual(results([]));
    });
  }

  test("advance before a run, while it is in flight, and after", async () => {
    using one = recordedCache({});
    const { cache, sequence, step } = one;
    const values = cache.prepare();
    expectRefusal(() => cache.advance(), "invalid-state", "cache", "not committed");
    const running = step.commit(values);
    // It may have completed by now; if not, nothing moves.
    try {
      cache.advance();
    } catch (error) {
      expect((error as Error).message).toContain("committed, not completed");
      expect(sequence.length).toBe(0);
      await running;
      cache.advance();
    }
    await running;
    expect(sequence.length).toBe(1);
  });

  test("runs out of turn", async () => {
    using one = recordedCache({});
    const { cache, sequence, step, breaks } = one;
    expectRefusal(() => step.commitAndWait(), "invalid-state", "cache", "prepare()");
    const values = cache.prepare();
    step.commitAndWait(values);
    expectRefusal(() => step.commitAndWait(values), "invalid-state", "cache", "run already");
    cache.advance();
    expectRefusal(() => step.commitAndWait(values), "invalid-state", "cache", "prepare()");
    expect(sequence.length).toBe(1);
    // One that failed may be done again.
    breaks(true);
    const again = cache.prepare();
    expectRefusal(() => step.commitAndWait(again), "execution", undefined);
    breaks(false);
    await step.commit(again);
    cache.advance();
    expect(sequence.length).toBe(2);
    // A step that is encoded is no turn of a recorded one.
    const k = device.tensor("f32", [1, 1, 64]);
    using pass = device.pass();
    cache.append(pass, 0, { k, v: k });
    expectRefusal(() => step.commitAndWait(values), "invalid-state", "cache", "prepare()");
  });

  test("the values of another prepare()", () => {
    using one = recordedCache({ tail: 2, window: 5 });
    const { cache, step } = one;
    let before = {};
    for (let i = 0; i < 9; i++) {
      const values = cache.prepare();
      const [name] = Object.keys(values).filter((key) => values[key] !== (before as typeof values)[key]);
      if (i > 0 && name !== undefined) {
        expectRefusal(() => step.commitAndWait(before), "invalid-argument", name, "prepare()", `${values[name]}`);
        expectRefusal(() => step.commitAndWait(), "invalid-argument", Object.keys(values)[0], "undefined");
      }
      step.commitAndWait(values);
      cache.advance();
      before = values;
    }
    expect(cache.length).toBe(9);
  });

  test("which of several recordings, and none that did not end well", () => {
    using cache = new KvCache(device, { ...base, sequences: 2 });
    const sequences = [cache.sequence(), cache.sequence()] as const;
    const k = device.tensor("f32", [1, 1, 64]);
    const record = (sequence: (typeof sequences)[number], fails = false) =>
      device.record((pass) => {
        cache.append(pass, 0, { k, v: k, sequences: [sequence] });
        if (fails) throw new Error("not recorded");
      });
    expect(() => record(sequences[0], true)).toThrow("not recorded");
    expectRefusal(() => cache.prepare(), "invalid-state", "cache", "nothing such was recorded");
    const steps = sequences.map((sequence) => record(sequence));
    expect(() => record(sequences[0], true)).toThrow("not recorded");
    // The newest, where nothing is said: another's run is refused.
    const values = cache.prepare(1);
    expectRefusal(
      () => steps[0]?.commitAndWait(values),
      "invalid-state",
      "cache",
      "the run does 1 in sequence 0",
      "1 in sequence 1",
    );
    steps[1]?.commitAndWait(values);
    cache.advance();
    steps[0]?.commitAndWait(cache.prepare(1, [sequences[0]]));
    cache.advance();
    expect(sequences.map(({ length }) => length)).toEqual([1, 1]);
    expectRefusal(() => cache.prepare(2, [sequences[0]]), "invalid-state", "cache", "nothing such was recorded");
    expectRefusal(() => cache.prepare(undefined, [...sequences]), "invalid-state", "cache", "nothing such");
    // A sequence in the place of one that was dropped is another.
    sequences[0].drop();
    const next = cache.sequence();
    expectRefusal(() => cache.prepare(1, [next]), "invalid-state", "cache", "nothing such was recorded", "(dropped)");
  });

  test("what was asked for and what there is, where the number is that of one sequence", () => {
    using cache = new KvCache(device, { ...base, sequences: 2 });
    const both = [cache.sequence(), cache.sequence()];
    const k = device.tensor("f32", [2, 1, 64]);
    expectRefusal(() => cache.prepare(1), "invalid-state", "cache", "asked for: 1 tokens in all; recorded: none");
    using _ = device.record((pass) => {
      cache.append(pass, 0, { k, v: k, sequences: both });
    });
    const refuse = (nTokens: number | undefined, sequences: KvSequence[] | undefined, asked: string) =>
      expectRefusal(
        () => cache.prepare(nTokens, sequences),
        "invalid-state",
        "cache",
        "nothing such was recorded",
        `asked for: ${asked}; recorded: 2 in all, 1 in sequence 0, 1 in sequence 1`,
      );
    refuse(1, both, "1 tokens in all of sequences 0, 1");
    refuse(1, undefined, "1 tokens in all");
    refuse(undefined, [both[1] as KvSequence], "sequences 1");
    cache.prepare(2, both);
  });

  test("two caches in one recorded pass", () => {
    using a = new KvCache(device, base);
    using b = new KvCache(device, { ...base, pages: { tokens: 2, count: 12 } });
    const k = device.tensor("f32", [1, 1, 64]);
    using step = device.record((pass) => {
      for (const cache of [a, b]) cache.append(pass, 0, { k, v: k });
    });
    for (let i = 0; i < 3; i++) {
      const values = a.prepare();
      expectRefusal(() => step.commitAndWait(values), "invalid-state", "cache", "prepare()");
      step.commitAndWait({ ...values, ...b.prepare() });
      for (const cache of [a, b]) cache.advance();
    }
    expect([a.length, b.length]).toEqual([3, 3]);
  });
});
