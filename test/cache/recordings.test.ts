/** Recorded steps of a cache that come and go, and which of them `prepare` takes. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  Device,
  KvCache,
  type KvCacheOptions,
  type KvSequence,
  type Pass,
  type RecordedPass,
} from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
afterAll(() => device.dispose());

const headDim = 64;
const options: KvCacheOptions = { layers: 1, nKvHeads: 1, headDim, capacity: 256, k: "f32", v: "f32" };

/** A step of `count` tokens, whose values `seed` says: what encodes it, and where its result is. */
function stepOf(cache: KvCache, count: number, seed: number, sequence?: KvSequence) {
  const draw = normalDraws(seed);
  const rows = () =>
    device.tensor("f32", [count, 1, headDim]).set(Float32Array.from({ length: count * headDim }, draw));
  const [k, v, q, out] = [rows(), rows(), rows(), device.tensor("f32", [count, 1, headDim])];
  const encode = (pass: Pass) => {
    cache.append(pass, 0, { k, v, ...(sequence && { sequences: [sequence] }) });
    cache.attend(pass, 0, { q, out });
  };
  return { encode, out };
}

function run(cache: KvCache, encode: (pass: Pass) => void): void {
  using pass = device.pass();
  encode(pass);
  pass.commitAndWait();
  cache.advance();
}

describe("tokens that leave the tail", () => {
  test("of pages that were given back are written nowhere, in a recorded step as in an encoded one", () => {
    const pages = { tokens: 1, count: 400 };
    const kind = { k: { bits: 8 }, v: { bits: 8 }, window: 60, rollback: 20, tail: 32, pages } as const;
    const resultOf = (isRecorded: boolean): Float32Array => {
      using cache = new KvCache(device, { ...options, ...kind, capacity: 400, sequences: 2 });
      const [a, b] = [cache.sequence(), cache.sequence()];
      run(cache, stepOf(cache, 8, 1, b).encode);
      run(cache, stepOf(cache, 100, 2, a).encode);
      // These get pages that the window of the other has given back.
      run(cache, stepOf(cache, 76, 3, b).encode);
      a.trim(20);
      for (let i = 0; i < 4; i++) {
        const { encode } = stepOf(cache, 1, 4 + i, a);
        if (isRecorded) {
          using step = device.record(encode);
          step.commitAndWait(cache.prepare());
          cache.advance();
        } else run(cache, encode);
      }
      const last = stepOf(cache, 1, 9, b);
      run(cache, last.encode);
      return last.out.toFloat32Array();
    };
    expect(resultOf(true)).toEqual(resultOf(false));
  });

  test.each([
    ["a ring of 8", { capacity: 8, window: 8, tail: 64 }],
    ["a ring of 1", { capacity: 1, window: 1, tail: 2 }],
    ["a ring of 1 behind kept tokens", { capacity: 21, window: 1, keep: 20, tail: 2 }],
  ] as const)("may be more than %s takes", (_, ring) => {
    const kind = { ...options, k: { bits: 8 }, v: { bits: 8 }, ...ring } as const;
    using encoded = new KvCache(device, kind);
    using recorded = new KvCache(device, kind);
    // What a window of so few tokens sees of a cache that keeps all of them.
    const { capacity: _capacity, ...rest } = ring;
    using long = new KvCache(device, { ...kind, ...rest, capacity: 200 });
    for (let i = 0; i < 110; i++) {
      const [a, b, c] = [encoded, recorded, long].map((cache) => stepOf(cache, 1, i));
      if (a === undefined || b === undefined || c === undefined) throw new Error("there are three");
      run(encoded, a.encode);
      run(long, c.encode);
      using step = device.record(b.encode);
      step.commitAndWait(recorded.prepare());
      recorded.advance();
      expect(a.out.bytes).toEqual(c.out.bytes);
      expect(b.out.bytes).toEqual(c.out.bytes);
    }
  });
});

describe("recordings of a cache", () => {
  test("give their memory back when they are disposed or fail", () => {
    using cache = new KvCache(device, { ...options, k: { bits: 8 }, v: { bits: 8 }, tail: 64 });
    const { encode } = stepOf(cache, 1, 1);
    cache.sequence();
    const before = cache.memory.tables;
    const step = device.record(encode);
    expect(cache.memory.tables).toBeGreaterThan(before);
    step.dispose();
    expect(cache.memory.tables).toBe(before);
    const fail = () =>
      device.record((pass) => {
        encode(pass);
        throw new Error("stop");
      });
    expect(fail).toThrow("stop");
    expect(cache.memory.tables).toBe(before);
  });

  test("one disposed after its run has begun has run", async () => {
    using cache = new KvCache(device, { ...options, k: { bits: 8 }, v: { bits: 8 }, tail: 64 });
    const [first, other] = [stepOf(cache, 1, 1), new KvCache(device, options)];
    const step = device.record(first.encode);
    const done = step.commit(cache.prepare());
    step.dispose();
    await done;
    cache.advance();
    expect(cache.length).toBe(1);
    run(other, stepOf(other, 1, 1).encode);
    other.dispose();
  });

  test("one whose pass was disposed while it was recorded takes no other along", () => {
    using cache = new KvCache(device, options);
    using _whole = device.record(stepOf(cache, 1, 1).encode);
    let disposed: RecordedPass | undefined;
    try {
      disposed = device.record((pass) => {
        stepOf(cache, 2, 2).encode(pass);
        pass.dispose();
      });
    } catch {}
    disposed?.dispose();
    expectRefusal(() => cache.prepare(2), "invalid-state", "cache", "recorded: 1 in all, 1 in sequence 0)");
    expect(cache.prepare()).toEqual({});
  });

  const newest: readonly (readonly [string, (cache: KvCache) => RecordedPass])[] = [
    [
      "was disposed",
      (cache) => {
        const [older, gone] = [device.record(stepOf(cache, 1, 1).encode), device.record(stepOf(cache, 1, 2).encode)];
        gone.dispose();
        return older;
      },
    ],
    [
      "has more tokens than there is room for",
      (cache) => {
        const older = device.record(stepOf(cache, 1, 1).encode);
        device.record(stepOf(cache, 12, 2).encode);
        run(cache, stepOf(cache, 250, 3).encode);
        return older;
      },
    ],
    [
      "has a sequence that was dropped",
      (cache) => {
        const [one, two] = [cache.sequence(), cache.sequence()];
        const older = device.record(stepOf(cache, 1, 1, one).encode);
        device.record(stepOf(cache, 1, 2, two).encode);
        two.drop();
        return older;
      },
    ],
  ];
  test.each(newest)("prepare takes the newest that fits, where the newest %s", (_, make) => {
    using cache = new KvCache(device, { ...options, sequences: 2 });
    using older = make(cache);
    const before = cache.length;
    older.commitAndWait(cache.prepare());
    cache.advance();
    expect(cache.length).toBe(before + 1);
  });

  test("a run of another than prepare meant is refused, with both", () => {
    using cache = new KvCache(device, options);
    using older = device.record(stepOf(cache, 2, 1).encode);
    using _newer = device.record(stepOf(cache, 3, 2).encode);
    const values = cache.prepare();
    expectRefusal(() => older.commitAndWait(values), "invalid-state", "cache", "2 in sequence 0", "3 in sequence 0");
  });

  test.each<[argument: string, given: unknown[], part: string]>([
    ["nTokens", ["x"], '"x"'],
    ["nTokens", [0.5], "0.5"],
    ["nTokens", [Symbol("x")], "Symbol(x)"],
    ["nTokens", [null], "null"],
    ["sequences", [1, null], "null"],
    ["sequences", [1, 0], "0"],
  ])("prepare refuses what is no %s", (argument, given, part) => {
    using cache = new KvCache(device, options);
    using _step = device.record(stepOf(cache, 1, 1).encode);
    expectRefusal(() => cache.prepare(...(given as [number])), "invalid-argument", argument, `got ${part}`);
  });

  test("prepare says why the newest does not fit, where none does", () => {
    using cache = new KvCache(device, { ...options, capacity: 4 });
    using _one = device.record(stepOf(cache, 1, 1).encode);
    using _two = device.record(stepOf(cache, 2, 2).encode);
    run(cache, stepOf(cache, 4, 3).encode);
    expectRefusal(() => cache.prepare(), "overflow", "k", "2 tokens after 4", 4);
  });
});

test("an attend takes no parameter for its window, nor one beyond the positions that there are", () => {
  using cache = new KvCache(device, options);
  const { encode } = stepOf(cache, 4, 1);
  const attend = (pass: Pass, window: number) => {
    encode(pass);
    const [q, out] = [device.tensor("f32", [4, 1, headDim]), device.tensor("f32", [4, 1, headDim])];
    const before = pass.describe().length;
    expectRefusal(() => cache.attend(pass, 0, { q, out, window }), "invalid-argument", "window");
    expect(pass.describe()).toHaveLength(before);
  };
  device.record((pass) => attend(pass, pass.parameter("w", { min: 1, max: 64 }))).dispose();
  using pass = device.pass();
  attend(pass, 2 ** 30 + 1);
});

test("sequences that share their last page need a page less than there are of them", () => {
  using cache = new KvCache(device, { ...options, capacity: 48, sequences: 2, pages: { tokens: 16, count: 3 } });
  const first = cache.sequence();
  run(cache, stepOf(cache, 32, 1, first).encode);
  const second = first.fork();
  for (const sequence of [first, second]) sequence.trim(4);
  expect(cache.freePages).toBe(1);
  const rows = () => device.tensor("f32", [4, 1, headDim]);
  run(cache, (pass) => cache.append(pass, 0, { k: rows(), v: rows(), sequences: [first, second] }));
  expect([first.length, second.length, cache.freePages]).toEqual([30, 30, 0]);
});
