/** What a cache refuses, with what words; that nothing is changed by it. */
import { afterAll, describe, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { KvSequence } from "../../src/cache/sequence.ts";
import { elementCount } from "../../src/device/tensor.ts";
import { Device, KvCache, type KvCacheOptions, type Pass, type Tensor } from "../../src/index.ts";
import { expectRefusal, rejectionOf, thrownBy } from "../helpers/errors.ts";

const device = Device.open();
afterAll(() => device.dispose());

const base: KvCacheOptions = { layers: 2, nKvHeads: 1, headDim: 64, capacity: 8, k: "f16", v: "f16" };
const tokens = (count: number, heads = 1): Tensor<"f32"> => device.tensor("f32", [count, heads, 64]);
const words = (count: number) => ({ k: tokens(count), v: tokens(count) });

/** One whole step. */
function step(cache: KvCache, count: number): void {
  using pass = device.pass();
  cache.append(pass, 0, words(count));
  cache.append(pass, 1, words(count));
  pass.commitAndWait();
  cache.advance(count);
}

test("what is no device, no sequence and no path is refused by name", async () => {
  for (const other of [Object.create(Device.prototype), new Proxy(device, {}), null, {}]) {
    expectRefusal(() => new KvCache(other as Device, base), "invalid-argument", "device");
  }
  using cache = new KvCache(device, { ...base, sequences: 2 });
  using pass = device.pass();
  for (const sequences of [new Array(1), [cache.sequence(), ...new Array(1)]]) {
    expectRefusal(
      () => cache.append(pass, 0, { ...words(2), sequences }),
      "invalid-argument",
      `sequences.${sequences.length - 1}`,
    );
  }
  for (const path of ["a\0b", 3, ""]) {
    const error = await rejectionOf(cache.save(path as string));
    expect([error.code, error.argument]).toEqual(["invalid-argument", "path"]);
  }
});

describe("options", () => {
  const cases: [name: string, options: object, code: string, argument: string, ...parts: (string | number)[]][] = [
    ["a name that is not known", { windows: 4 }, "invalid-argument", "windows", "did you mean window?"],
    ["no layers", { layers: 0 }, "invalid-argument", "layers", "at least 1"],
    ["more layers than there is memory to count", { layers: 4097 }, "overflow", "layers", 4097, 4096],
    ["more sequences than that", { sequences: 2 ** 20 + 1 }, "overflow", "sequences", 1048577, 1048576],
    ["half a token", { capacity: 1.5 }, "invalid-argument", "capacity", "1.5"],
    ["null for a format", { k: null }, "invalid-argument", "k", "null"],
    ["null for a count", { sequences: null }, "invalid-argument", "sequences", "null"],
    ["a dtype without kernels", { k: "f64" }, "invalid-argument", "k", "f64"],
    ["a width without a codebook", { k: { bits: 7 } }, "unsupported", "k.bits", "7"],
    ["a head size without kernels", { headDim: 72 }, "unsupported", "headDim", 72, 64],
    ["a window larger than the ring", { window: 9 }, "invalid-argument", "window", 9, 8],
    ["a window larger than what keep leaves", { window: 7, keep: 2 }, "invalid-argument", "window", 7, 6, "at least 9"],
    ["keep at the capacity", { window: 2, keep: 8 }, "invalid-argument", "keep", 8],
    ["keep without a window", { keep: 2 }, "invalid-argument", "keep", "window"],
    ["a tail of a dense cache", { tail: 4 }, "invalid-argument", "tail", "not quantized"],
    ["a tail in f32", { k: { bits: 8 }, tail: 4, tailDtype: "f32" }, "invalid-argument", "tailDtype", "f32"],
    ["a storage that is none", { storage: "managed" as "shared" }, "invalid-argument", "storage", "managed"],
    ["maxAppend without a tail", { maxAppend: 4 }, "invalid-argument", "maxAppend", "tail"],
    ["kept tokens in pages", { window: 4, keep: 2, pages: { tokens: 4, count: 4 } }, "unsupported", "keep", 2, "pages"],
    ["pages of nothing", { pages: { tokens: 0, count: 4 } }, "invalid-argument", "pages.tokens", "at least 1"],
    ["an unknown name of pages", { pages: { token: 1, count: 4 } }, "invalid-argument", "pages.token", "tokens"],
  ];
  for (const [name, options, code, argument, ...parts] of cases) {
    test(name, () => {
      const make = () => new KvCache(device, { ...base, ...options } as KvCacheOptions);
      expectRefusal(make, code as "invalid-argument", argument, ...parts);
    });
  }
});

test.each<[argument: string, options: Partial<KvCacheOptions>]>([
  ["capacity", { capacity: 2 ** 30 }],
  ["pages.count", { pages: { tokens: 2 ** 10, count: 2 ** 20 } }],
  ["keep", { capacity: 2 ** 30, window: 4, keep: 2 ** 30 - 4 }],
  ["tail", { k: { bits: 8 }, tail: 2 ** 30 }],
  ["capacity", { nKvHeads: 2 ** 31, capacity: 2 ** 30 }],
])("%s of more memory than the device has in one piece is refused by name", (argument, options) => {
  const error = thrownBy(() => new KvCache(device, { ...base, nKvHeads: 2 ** 10, ...options }));
  expect(error.argument).toBe(argument);
  expect(error.message).toMatch(/^[a-z.]+: (its memory is \d+ bytes; .* at most \d+|shape: .* more than \d+ elements)/);
});

test("options, arguments and a rope may be of a class with getters, each of which is read once", () => {
  const reads: string[] = [];
  /** An object whose fields are getters of its prototype. */
  const inherited = <T extends object>(fields: T): T => {
    const getters = Object.keys(fields).map((name) => {
      const get = () => {
        reads.push(name);
        return fields[name as keyof T];
      };
      return [name, { get, enumerable: true }] as const;
    });
    return Object.create(Object.create(null, Object.fromEntries(getters)));
  };
  const pages = inherited({ tokens: 4, count: 8 });
  using cache = new KvCache(device, inherited({ ...base, layers: 1, v: inherited({ bits: 4 as const }), pages }));
  using pass = device.pass();
  const rope = inherited({ theta: 10_000, pairing: "half" as const });
  const sequences = [cache.sequence()];
  cache.append(pass, 0, inherited({ ...words(2), rope, sequences, counts: [2] }));
  cache.attend(pass, 0, inherited({ q: tokens(2), out: tokens(2), lse: device.tensor("f32", [2, 1]) }));
  pass.commitAndWait();
  cache.advance();
  expect(cache.length).toBe(2);
  const names = ["layers", "nKvHeads", "headDim", "capacity", "pages", "tokens", "count", "bits"];
  names.push("rope", "sequences", "counts", "theta", "pairing", "q", "out", "lse");
  for (const name of names) expect(`${name} ${reads.filter((read) => read === name).length}`).toBe(`${name} 1`);
});

describe("a step", () => {
  test("a layer out of range", () => {
    using cache = new KvCache(device, base);
    using pass = device.pass();
    expectRefusal(() => cache.append(pass, 2, words(1)), "invalid-argument", "layer", 2, "0 to 1");
    expect(cache.sequences).toEqual([]);
  });

  test("an append beyond the capacity, with what to do", () => {
    using cache = new KvCache(device, base);
    step(cache, 6);
    using pass = device.pass();
    expectRefusal(() => cache.append(pass, 0, words(3)), "overflow", "k", 3, 6, 8, "trim", "window");
    expect(pass.describe()).toEqual([]);
    expect(cache.length).toBe(6);
    step(cache, 2);
  });

  test("keys that turn beyond position 2^24, before V is encoded", () => {
    const options = { ...base, layers: 1, window: 4, k: "bf16", v: { bits: 4 } } as const;
    using cache = new KvCache(device, options);
    const sequence = cache.sequence();
    const rope = { theta: 10_000, pairing: "half" } as const;
    const halves = (count: number) => device.tensor("f16", [count, 1, 64]);
    const call = (count: number) => ({ k: halves(count), v: halves(count), rope });
    const encode = (pass: Pass, count = 1) => cache.append(pass, 0, call(count));
    using _recorded = device.record((pass) => void encode(pass));
    // As after so many tokens.
    const state = KvSequence.use(sequence, cache, "sequence");
    state.length = 2 ** 24 - 1;
    using pass = device.pass();
    expectRefusal(() => encode(pass, 3), "overflow", "k", 3, 2 ** 24 - 1, 2 ** 24, "crop");
    expect(pass.describe()).toEqual([]);
    encode(pass, 2);
    expect(pass.describe().length).toBeGreaterThan(0);
    cache.abandon();
    state.length = 2 ** 24 + 1;
    expectRefusal(() => cache.prepare(), "overflow", "k", 2 ** 24 + 1);
  });

  test("keys of a second sequence that turn beyond position 2^24", () => {
    using cache = new KvCache(device, { ...base, layers: 1, window: 4, sequences: 2 });
    const sequences = [cache.sequence(), cache.sequence()];
    // As after so many tokens.
    KvSequence.use(sequences[1], cache, "sequence").length = 2 ** 24 + 1;
    const rope = { theta: 10_000, pairing: "half" } as const;
    using pass = device.pass();
    expectRefusal(() => cache.append(pass, 0, { ...words(2), rope, sequences }), "overflow", "k", 1, 2 ** 24 + 1);
    expect(pass.describe()).toEqual([]);
  });

  test("a second append of a layer", () => {
    using cache = new KvCache(device, base);
    using pass = device.pass();
    cache.append(pass, 0, words(1));
    const before = pass.describe().length;
    expectRefusal(() => cache.append(pass, 0, words(1)), "invalid-state", "cache", "layer 0", "advance");
    expect(pass.describe().length).toBe(before);
  });

  test("other tokens than the step began with", () => {
    using cache = new KvCache(device, base);
    using pass = device.pass();
    cache.append(pass, 0, words(1));
    expectRefusal(() => cache.append(pass, 1, words(2)), "invalid-argument", "k", "1 in sequence 0", "2 in sequence 0");
  });

  test("attend before append", () => {
    using cache = new KvCache(device, base);
    using pass = device.pass();
    const call = { q: tokens(1, 2), out: tokens(1, 2) };
    expectRefusal(() => cache.attend(pass, 0, call), "invalid-state", "cache", "append");
    cache.append(pass, 0, words(1));
    expectRefusal(() => cache.attend(pass, 1, call), "invalid-state", "cache", "layer 1");
  });

  test("shapes and options of attend", () => {
    using cache = new KvCache(device, { ...base, window: 4 });
    using pass = device.pass();
    cache.append(pass, 0, words(2));
    const [q, out] = [tokens(2, 2), tokens(2, 2)];
    expectRefusal(() => cache.attend(pass, 0, { q: tokens(1, 2), out }), "invalid-argument", "q", 1, 2);
    expectRefusal(() => cache.attend(pass, 0, { q, out: tokens(2, 3) }), "invalid-argument", "out", "2,2,64");
    expectRefusal(() => cache.attend(pass, 0, { q, out, window: 5 }), "invalid-argument", "window", 5, 4);
    const misspelt = { q, out, sofcap: 3 };
    expectRefusal(() => cache.attend(pass, 0, misspelt), "invalid-argument", "sofcap", "softcap");
  });

  test("results of attend over what it reads, or over each other", () => {
    using cache = new KvCache(device, { ...base, sequences: 2 });
    using pass = device.pass();
    cache.append(pass, 0, words(2));
    const [q, out] = [tokens(2, 2), tokens(2, 2)];
    const [sinks, lse] = [device.tensor("f32", [2]), device.tensor("f32", [2, 2])];
    const before = pass.describe().length;
    const first = (of: Tensor<"f32">, shape: number[]) =>
      of.reshape([of.length]).slice(0, elementCount(shape)).reshape(shape);
    const calls: [argument: string, other: string, args: object][] = [
      ["out", "q", { q, out: q }],
      ["out", "lse", { q, out, lse: first(out, [2, 2]) }],
      ["out", "sinks", { q, out, sinks: first(out, [2]) }],
      ["out", "alibiSlopes", { q, out, alibiSlopes: first(out, [2]) }],
      ["lse", "q", { q, out, lse: first(q, [2, 2]) }],
      ["lse", "sinks", { q, out, lse, sinks: first(lse, [2]) }],
      ["lse", "alibiSlopes", { q, out, lse, sinks, alibiSlopes: first(lse, [2]) }],
    ];
    for (const [argument, other, args] of calls) {
      expectRefusal(
        () => cache.attend(pass, 0, args as Parameters<typeof cache.attend>[2]),
        "invalid-argument",
        argument,
        `${argument} and ${other} overlap`,
      );
    }
    expect(pass.describe().length).toBe(before);
  });

  test("a handle of another cache, and one that was dropped", () => {
    using cache = new KvCache(device, { ...base, sequences: 2 });
    using other = new KvCache(device, base);
    using pass = device.pass();
    const [foreign, own] = [other.sequence(), cache.sequence()];
    const append = (sequence: typeof own) => cache.append(pass, 0, { ...words(1), sequences: [sequence] });
    expectRefusal(() => append(foreign), "invalid-handle", "sequences.0", "another cache");
    own.drop();
    expectRefusal(() => append(own), "disposed", "sequences.0");
  });

  test("a sequence that is dropped while the counts are read, whose pages stay free", () => {
    using cache = new KvCache(device, { ...base, layers: 1, pages: { tokens: 2, count: 3 } });
    const sequence = cache.sequence();
    const counts = Object.defineProperty([0], 0, {
      get: () => {
        sequence.drop();
        return 3;
      },
    });
    using pass = device.pass();
    expectRefusal(
      () => cache.append(pass, 0, { ...words(3), sequences: [sequence], counts }),
      "disposed",
      "sequences.0",
    );
    expect([pass.describe(), cache.freePages, cache.sequences]).toEqual([[], 3, []]);
  });

  test("an empty list of sequences", () => {
    using cache = new KvCache(device, base);
    using pass = device.pass();
    const append = () => cache.append(pass, 0, { ...words(1), sequences: [] });
    expectRefusal(append, "invalid-argument", "sequences", "at least 1, got an empty list");
    expectRefusal(() => cache.prepare(1, []), "invalid-argument", "sequences", "an empty list");
  });

  test("more tokens in a recorded step than a ring or a tail takes at once", () => {
    const record = (options: Partial<KvCacheOptions>) => () => {
      using cache = new KvCache(device, { ...base, ...options });
      device.record((pass) => void cache.append(pass, 0, words(4)));
    };
    expectRefusal(record({ window: 6 }), "overflow", "k", 4, "take 3", "capacity of 9");
    expectRefusal(record({ k: { bits: 8 }, tail: 2, maxAppend: 3 }), "overflow", "k", 4, "take 3", "maxAppend of 4");
  });

  test("pages that are not there, and how many would do", () => {
    using cache = new KvCache(device, { ...base, pages: { tokens: 2, count: 2 } });
    using pass = device.pass();
    expectRefusal(() => cache.append(pass, 0, words(6)), "overflow", "pages", "needs 3", "of 2 only 2", "at least 3");
    expect(pass.describe()).toEqual([]);
    expect(cache.freePages).toBe(2);
  });

  test("advance before the pass has completed, or before all layers", () => {
    using cache = new KvCache(device, base);
    using pass = device.pass();
    expectRefusal(() => cache.advance(), "invalid-state", "cache", "append first");
    cache.append(pass, 0, words(1));
    expectRefusal(() => cache.advance(), "invalid-state", "cache", "1 of 2", "layer 1");
    cache.append(pass, 1, words(1));
    expectRefusal(() => cache.advance(), "invalid-state", "cache", "encoding");
    expectRefusal(() => cache.advance(2), "invalid-argument", "nTokens", 2, 1);
    pass.commitAndWait();
    cache.advance(1);
    expect(cache.length).toBe(1);
  });

  test("advance within another one, which reads the ids", () => {
    using cache = new KvCache(device, base);
    using pass = device.pass();
    for (const layer of [0, 1]) cache.append(pass, layer, words(1));
    pass.commitAndWait();
    const ids = {
      length: 1,
      get 0() {
        cache.advance();
        return 5;
      },
    };
    expectRefusal(() => cache.advance(1, ids), "invalid-state", "cache", "ended while");
    expect(cache.length).toBe(1);
  });

  test("keys of another rope", () => {
    using cache = new KvCache(device, base);
    const rope = (theta: number) => ({ theta, pairing: "half" as const });
    {
      using pass = device.pass();
      for (const layer of [0, 1]) cache.append(pass, layer, { ...words(1), rope: rope(10_000) });
      pass.commitAndWait();
      cache.advance();
    }
    using pass = device.pass();
    const wrong = { invFreq: null, pairing: "half" } as unknown as ReturnType<typeof rope>;
    using fresh = new KvCache(device, base);
    for (const none of [null, 5, "half"]) {
      const append = () => fresh.append(pass, 0, { ...words(1), rope: none as unknown as ReturnType<typeof rope> });
      expectRefusal(append, "invalid-argument", "rope", "expected an object");
    }
    expectRefusal(
      () => fresh.append(pass, 0, { ...words(1), rope: wrong }),
      "invalid-argument",
      "rope.invFreq",
      "null",
    );
    const append = () => cache.append(pass, 0, { ...words(1), rope: rope(500_000) });
    expectRefusal(append, "invalid-argument", "rope", "theta 10000", "theta 500000");
  });

  test("a disposed cache, a pass of another device, a pass that is recorded", () => {
    const cache = new KvCache(device, base);
    using other = Device.open();
    using foreign = other.pass();
    expectRefusal(() => cache.append(foreign, 0, words(1)), "invalid-handle", "pass", "another device");
    using pass = device.pass();
    cache.dispose();
    expectRefusal(() => cache.append(pass, 0, words(1)), "disposed", undefined, "cache");
  });

  test("what a disposed cache, or one of a disposed device, had", () => {
    using other = Device.open();
    const caches = [new KvCache(device, base), new KvCache(other, base)];
    const sequences = caches.map((cache) => cache.sequence());
    caches[0]?.dispose();
    other.dispose();
    for (const [i, cache] of caches.entries()) {
      const sequence = sequences[i] as KvSequence;
      for (const read of [
        () => cache.bytes,
        () => cache.memory,
        () => cache.length,
        () => cache.sequences,
        () => cache.freePages,
        () => sequence.length,
        () => sequence.fork(),
      ]) {
        expectRefusal(read, "disposed", undefined, "cache");
      }
      sequence.drop();
      expect([cache.disposed, sequence.dropped]).toEqual([true, false]);
    }
  });
});

describe("a step that does not end well", () => {
  test("one whose pass was disposed is forgotten by the next", () => {
    using cache = new KvCache(device, base);
    {
      using pass = device.pass();
      cache.append(pass, 0, words(3));
    }
    step(cache, 2);
    expect(cache.length).toBe(2);
  });

  test.each<[name: string, end: (cache: KvCache, pass: Pass) => void]>([
    ["is abandoned", (cache) => cache.abandon()],
    ["has its pass disposed", (_, pass) => pass.dispose()],
  ])("one that %s leaves lengths, and its pages are free at once", (_, end) => {
    using cache = new KvCache(device, { ...base, pages: { tokens: 2, count: 3 } });
    step(cache, 3);
    using pass = device.pass();
    cache.append(pass, 0, words(3));
    expect(cache.freePages).toBe(0);
    end(cache, pass);
    expect([cache.length, cache.freePages]).toEqual([3, 1]);
  });

  test("one that is abandoned before its commit writes nothing where others have written since", async () => {
    using cache = new KvCache(device, { ...base, sequences: 2, pages: { tokens: 2, count: 3 } });
    step(cache, 3);
    using late = device.pass();
    using other = device.pass();
    cache.append(late, 0, words(2));
    cache.append(other, 1, words(2));
    cache.attend(other, 1, { q: tokens(2), out: tokens(2) });
    cache.abandon();
    // It has the page that the abandoned step had taken.
    cache.sequences[0]?.fork();
    expectRefusal(() => late.commitAndWait(), "invalid-state", "pass", "abandoned");
    expect(await rejectionOf(other.commit())).toMatchObject({ code: "invalid-state", argument: "pass" });
    expect(late.info.state).toBe("encoding");
    // One that was done already is what it was.
    using done = device.pass();
    cache.append(done, 0, { ...words(1), sequences: [cache.sequences[0] as KvSequence] });
    done.commitAndWait();
    cache.abandon();
    done.wait();
  });

  test("one that was never committed takes nothing of a ring", () => {
    using cache = new KvCache(device, { ...base, window: 8, rollback: 3 });
    for (let i = 0; i < 20; i++) step(cache, 1);
    const [sequence] = cache.sequences;
    using pass = device.pass();
    cache.append(pass, 0, words(2));
    cache.abandon();
    using disposed = device.pass();
    cache.append(disposed, 0, words(2));
    disposed.dispose();
    expect(sequence?.trim(3)).toBe(3);
  });

  test("one whose first append the device refuses leaves a pass in which nothing was encoded", () => {
    using own = openWith({ SOFTMETAL_FAIL: "pipeline:1" });
    if (own.info.backend !== "SoftMetal") return;
    using cache = new KvCache(own, { ...base, layers: 1 });
    using pass = own.pass();
    const call = { k: own.tensor("f16", [1, 1, 64]), v: own.tensor("f16", [1, 1, 64]) };
    expect(thrownBy(() => cache.append(pass, 0, call)).code).toBe("device-unavailable");
    cache.append(pass, 0, call);
    pass.commitAndWait();
    cache.advance();
    expect(cache.length).toBe(1);
  });

  test("one that is refused half-way takes its pass along, at the next append", () => {
    using own = openWith({ SOFTMETAL_FAIL: "pipeline:2" });
    if (own.info.backend !== "SoftMetal") return;
    // K and V are two dispatches.
    using cache = new KvCache(own, { ...base, layers: 1, v: "bf16" });
    using pass = own.pass();
    const call = { k: own.tensor("f16", [1, 1, 64]), v: own.tensor("f16", [1, 1, 64]) };
    expect(thrownBy(() => cache.append(pass, 0, call)).code).toBe("device-unavailable");
    expect(pass.describe().length).toBe(1);
    expectRefusal(() => cache.append(pass, 0, call), "invalid-state", "pass", "abandoned", "a new pass");
    using next = own.pass();
    cache.append(next, 0, call);
    next.commitAndWait();
    cache.advance();
    expect(cache.length).toBe(1);
  });

  test("one whose second pass the device refuses goes on in another", () => {
    using own = openWith({ SOFTMETAL_FAIL: "pipeline:2" });
    if (own.info.backend !== "SoftMetal") return;
    using cache = new KvCache(own, base);
    using first = own.pass();
    cache.append(first, 0, { k: own.tensor("f16", [1, 1, 64]), v: own.tensor("f16", [1, 1, 64]) });
    // Another dtype, another pipeline.
    const call = { k: own.tensor("f32", [1, 1, 64]), v: own.tensor("f32", [1, 1, 64]) };
    using second = own.pass();
    expect(thrownBy(() => cache.append(second, 1, call)).code).toBe("device-unavailable");
    cache.append(first, 1, call);
    first.commitAndWait();
    cache.advance();
    expect(cache.length).toBe(1);
  });

  test("what one that was abandoned may have written is gone from a ring", () => {
    using cache = new KvCache(device, { ...base, window: 8, rollback: 3 });
    for (let i = 0; i < 20; i++) step(cache, 1);
    const [sequence] = cache.sequences;
    using pass = device.pass();
    cache.append(pass, 0, words(2));
    pass.commitAndWait();
    cache.abandon();
    expectRefusal(() => sequence?.trim(3), "invalid-state", "n", "wrapped");
    expect(sequence?.trim(2)).toBe(2);
  });

  test("sequences do not change under it", () => {
    using cache = new KvCache(device, { ...base, sequences: 2 });
    step(cache, 2);
    const [sequence] = cache.sequences;
    using pass = device.pass();
    cache.append(pass, 0, words(1));
    for (const change of ["fork", "drop", "trim", "crop"] as const) {
      expectRefusal(() => sequence?.[change](1), "invalid-state", "cache", change, "abandon");
    }
  });
});
