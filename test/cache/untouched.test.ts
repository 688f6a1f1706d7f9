/** What a refused call leaves as it was: the pass, every byte of the cache, its memory, and the bits of what follows. */
import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  Device,
  type KvAttendArgs,
  KvCache,
  type KvCacheOptions,
  type KvSequence,
  type MetalAttentionErrorCode,
  type Pass,
  type Tensor,
} from "../../src/index.ts";
import { expectRefusal, rejectionOf } from "../helpers/errors.ts";
import { normalDraws } from "../helpers/random.ts";

const device = Device.open();
const folder = mkdtempSync(join(tmpdir(), "metal-attention-untouched-"));
afterAll(() => {
  device.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const base: KvCacheOptions = { layers: 2, nKvHeads: 1, headDim: 64, capacity: 8, k: "f16", v: "f16" };
const tensor = (count: number, heads: number, seed: number): Tensor<"f32"> =>
  device
    .tensor("f32", [count, heads, 64])
    .set(Float32Array.from({ length: count * heads * 64 }, normalDraws(seed + 100 * heads)));
/** Keys, values and queries of 1 token, 2 tokens, and so on. */
const words = Array.from({ length: 11 }, (_, i) => ({ k: tensor(i + 1, 1, i), v: tensor(i + 1, 1, 50 + i) }));
const queries = Array.from({ length: 11 }, (_, i) => ({ q: tensor(i + 1, 2, i), out: tensor(i + 1, 2, 50 + i) }));
const wordsOf = (count: number) => words[count - 1] as (typeof words)[number];
const queriesOf = (count: number) => queries[count - 1] as (typeof queries)[number];

type Sequences = readonly [KvSequence, ...KvSequence[]];

interface Scene {
  readonly cache: KvCache;
  readonly pass: Pass;
  /** Its sequences, and one of another cache. */
  readonly sequences: Sequences;
  readonly foreign: KvSequence;
  /** Its tensors on the device. */
  readonly tensors: readonly Tensor[];
}

/** A cache whose sequences have `lengths` tokens. */
function sceneOf(options: Partial<KvCacheOptions>, lengths: readonly number[], foreign: KvSequence): Scene {
  using made = spyOn(device, "tensor");
  const cache = new KvCache(device, { ...base, ...options });
  const tensors = made.mock.results.map(({ value }) => value as Tensor);
  const sequences = lengths.map(() => cache.sequence()) as unknown as Sequences;
  for (const [i, count] of lengths.entries()) if (count > 0) step(cache, sequences.slice(i, i + 1), [count]);
  return { cache, sequences, foreign, tensors, pass: device.pass() };
}

/** A whole step; gives what attention makes of it. */
function step(cache: KvCache, sequences: readonly KvSequence[], counts: readonly number[]): Float32Array[] {
  const rows = counts.reduce((sum, count) => sum + count, 0);
  using pass = device.pass();
  const results = [0, 1].map((layer) => {
    const out = device.tensor("f32", [rows, 2, 64]);
    cache.append(pass, layer, { ...wordsOf(rows), sequences, counts });
    cache.attend(pass, layer, { q: queriesOf(rows).q, out });
    return out;
  });
  pass.commitAndWait();
  cache.advance(rows);
  return results.map((out) => out.toFloat32Array());
}

/** All that a refusal could change. */
const stateOf = ({ cache, pass, sequences, tensors }: Scene) => ({
  encoded: pass.describe(),
  lengths: sequences.map(({ length }) => length),
  live: cache.sequences.length,
  free: cache.freePages,
  memory: cache.memory,
  written: tensors.map(({ bytes }) => Bun.hash(bytes)),
});

interface Case {
  readonly name: string;
  readonly options?: Partial<KvCacheOptions>;
  /** Tokens that the sequences have; one of 5 unless given. */
  readonly lengths?: readonly number[];
  /** What the step under way has appended, to layer 0, of the first sequence; none unless given. */
  readonly begun?: number;
  readonly prepare?: (sequences: Sequences) => void;
  readonly call: (scene: Scene) => unknown;
  /** Code, argument, and what the message has to say. */
  readonly refusal: readonly [code: MetalAttentionErrorCode, argument: string, ...parts: (string | number)[]];
}

const append = (count: number, layer = 0) => {
  const given = wordsOf(count);
  return ({ cache, pass, sequences }: Scene) =>
    cache.append(pass, layer, { ...given, sequences: sequences.slice(0, 1) });
};
/** So many tokens of each of several sequences. */
const appendAll =
  (...counts: number[]) =>
  ({ cache, pass, sequences }: Scene) => {
    cache.append(pass, 0, { ...wordsOf(counts.reduce((sum, count) => sum + count, 0)), sequences, counts });
  };
const attend =
  (count: number, layer: number, window?: number) =>
  ({ cache, pass }: Scene) =>
    cache.attend(pass, layer, { ...queriesOf(count), ...(window !== undefined && { window }) });

const halfWords = device.tensor("f16", [2, 1, 64]);
const disposed = device.tensor("f32", [2]);
disposed.dispose();

const pages = (count: number): Partial<KvCacheOptions> => ({ sequences: 3, pages: { tokens: 2, count } });
/** A tensor of a dtype that the types do not allow. */
const wrong = (dtype: "f16" | "i32", shape: readonly number[]) =>
  device.tensor(dtype, shape) as Tensor as Tensor<"f32">;
const [three, one] = [device.tensor("f32", [3]), device.tensor("f32", [1])];
const [halves, halvesOfRows, integers] = [wrong("f16", [2]), wrong("f16", [3, 2]), wrong("i32", [3, 2, 64])];
const inOut = queriesOf(3)
  .out.reshape([3 * 2 * 64])
  .slice(0, 6)
  .reshape([3, 2]);

/** Arguments of an attend of 3 tokens and 2 heads that some operation of several would refuse. */
const attends: readonly [name: string, args: Partial<KvAttendArgs>, refusal: Case["refusal"]][] = [
  ["sinks of another length", { sinks: three }, ["invalid-argument", "sinks", "[2]", "[3]"]],
  ["slopes of another length", { alibiSlopes: one }, ["invalid-argument", "alibiSlopes", "[2]", "[1]"]],
  ["disposed sinks", { sinks: disposed }, ["disposed", "sinks", "disposed"]],
  ["sinks in f16", { sinks: halves }, ["unsupported", "sinks", "f32", "f16"]],
  ["slopes in f16", { alibiSlopes: halves }, ["unsupported", "alibiSlopes", "f32", "f16"]],
  ["out in i32", { out: integers }, ["unsupported", "out", "bf16", "i32"]],
  ["lse in f16", { lse: halvesOfRows }, ["unsupported", "lse", "f32", "f16"]],
  ["a softcap below 0", { softcap: -1 }, ["invalid-argument", "softcap", -1]],
  ["a scale that is no number", { scale: Number.NaN }, ["invalid-argument", "scale", "NaN"]],
  ["out in the place of q", { out: queriesOf(3).q }, ["invalid-argument", "out", "q overlap", 3 * 2 * 64 * 4]],
  ["lse in out", { lse: inOut }, ["invalid-argument", "out", "lse overlap", 3 * 2 * 4]],
];

const cases: readonly Case[] = [
  {
    name: "an append to a layer behind the last",
    call: append(1, 2),
    refusal: ["invalid-argument", "layer", "2 is out of range", "2 layers", "0 to 1"],
  },
  { name: "an append to a layer below 0", call: append(1, -1), refusal: ["invalid-argument", "layer", -1] },
  { name: "an append to half a layer", call: append(1, 0.5), refusal: ["invalid-argument", "layer", 0.5] },
  {
    name: "an attend of a layer behind the last",
    begun: 1,
    call: attend(1, 5),
    refusal: ["invalid-argument", "layer", "5 is out of range", "0 to 1"],
  },
  {
    name: "an append beyond the capacity of a line",
    call: append(4),
    refusal: ["overflow", "k", "4 tokens after 5", "capacity 8", "trim", "`window`"],
  },
  {
    name: "an append beyond the capacity of a line with a tail",
    options: { k: { bits: 8 }, tail: 2, maxAppend: 2 },
    call: append(4),
    refusal: ["overflow", "k", "4 tokens after 5", "capacity 8", "trim", "`window`"],
  },
  {
    name: "an append beyond the capacity of a sequence, of which the pool has pages",
    options: pages(30),
    call: append(4),
    refusal: ["overflow", "k", "4 tokens after 5", "capacity 8", "trim"],
  },
  {
    name: "an append of which one sequence has no room",
    options: { sequences: 3 },
    lengths: [1, 7, 0],
    call: appendAll(2, 2, 2),
    refusal: ["overflow", "k", "2 tokens after 7", "capacity 8", "trim"],
  },
  {
    name: "a second append of a layer in a step",
    begun: 2,
    call: append(2),
    refusal: ["invalid-state", "cache", "layer 0 was appended to", "advance()", "abandon()"],
  },
  {
    name: "other tokens than the step began with",
    begun: 2,
    call: append(3, 1),
    refusal: ["invalid-argument", "k", "2 in sequence 0", "3 in sequence 0"],
  },
  {
    name: "an attend before any append",
    call: attend(1, 1),
    refusal: ["invalid-state", "cache", "layer 1", "append"],
  },
  {
    name: "an attend of a layer without its append",
    begun: 1,
    call: attend(1, 1),
    refusal: ["invalid-state", "cache", "layer 1", "append"],
  },
  {
    name: "an attend with a window larger than the ring's",
    options: { window: 4 },
    begun: 2,
    call: attend(2, 0, 5),
    refusal: ["invalid-argument", "window", "5 is larger than the 4"],
  },
  {
    name: "an append of a handle of another cache beside one of its own",
    options: { sequences: 2 },
    call: ({ cache, pass, sequences, foreign }) =>
      cache.append(pass, 0, { ...wordsOf(2), sequences: [...sequences, foreign] }),
    refusal: ["invalid-handle", "sequences.1", "another cache"],
  },
  {
    name: "a recorded step of a handle of another cache",
    call: ({ cache, foreign }) => cache.prepare(1, [foreign]),
    refusal: ["invalid-handle", "sequences.0", "another cache"],
  },
  {
    name: "an append that needs more pages than are free",
    options: pages(3),
    call: append(3),
    refusal: ["overflow", "pages", "needs 1 more", "of 3 only 0", "at least 4"],
  },
  {
    name: "an append of two sequences, of which the pages do for one",
    options: pages(4),
    lengths: [3, 1],
    call: appendAll(2, 3),
    refusal: ["overflow", "pages", "needs 2 more", "of 4 only 1", "at least 5"],
  },
  {
    name: "an append behind a page that is shared, without one for the copy",
    options: pages(2),
    lengths: [4],
    prepare([sequence]) {
      sequence.fork();
      sequence.crop(3);
    },
    call: append(1),
    refusal: ["overflow", "pages", "needs 1 more", "of 2 only 0", "at least 3"],
  },
  {
    name: "an append longer than the tail that needs more pages than are free",
    options: { ...pages(3), k: { bits: 8 }, tail: 2, maxAppend: 2 },
    lengths: [2],
    call: append(6),
    refusal: ["overflow", "pages", "needs 3 more", "of 3 only 2", "at least 4"],
  },
  {
    name: "a fork without a page for the copy",
    options: pages(3),
    call: ({ sequences: [sequence] }) => sequence.fork(),
    refusal: ["overflow", "pages", "needs 1 more", "of 3 only 0", "at least 4"],
  },
  {
    name: "a fork beyond the number of sequences",
    options: { sequences: 2 },
    lengths: [5, 1],
    call: ({ sequences: [sequence] }) => sequence.fork(3),
    refusal: ["overflow", "sequences", "all 2 are in use"],
  },
  ...attends.flatMap(([name, args, refusal]) =>
    [{}, { k: { bits: 8 }, v: { bits: 4 }, tail: 4 } as const, { window: 4, keep: 1 }].map((options) => ({
      name: `an attend with ${name}, ${JSON.stringify(options)}`,
      options,
      lengths: [4],
      begun: 3,
      call: ({ cache, pass }: Scene) => cache.attend(pass, 0, { ...queriesOf(3), ...args }),
      refusal,
    })),
  ),
  ...(
    [
      ["rope.theta", { theta: -1, pairing: "half" }, [-1]],
      ["rope.rotaryDim", { theta: 1e4, pairing: "half", rotaryDim: 66 }, [66, 64]],
      ["rope.pairing", { theta: 1e4, pairing: "both" as "half" }, ["both", "interleaved"]],
      ["rope.invFreq", { invFreq: new Float32Array(40), pairing: "half", rotaryDim: 64 }, [32, 40]],
      ["rope.attentionScale", { theta: 1e4, pairing: "half", attentionScale: Number.NaN }, ["NaN"]],
    ] as const
  ).map(([argument, rope, parts]) => ({
    name: `an append of ${argument} as it cannot be, V staged before`,
    options: { k: "bf16", v: { bits: 4 } } as const,
    call: ({ cache, pass }: Scene) => cache.append(pass, 0, { k: wordsOf(2).k, v: halfWords, rope }),
    refusal: ["invalid-argument", argument, ...parts] as const,
  })),
];

/** What the first sequence, alone, makes of a step after all that. */
function goneOn({ cache, pass, sequences: [first] }: Scene): Float32Array[] {
  cache.abandon();
  pass.dispose();
  for (const sequence of cache.sequences) if (sequence !== first) sequence.drop();
  first.trim(1);
  return step(cache, [first], [1]);
}

describe("a refusal leaves the pass, the memory and the state as they were", () => {
  for (const { name, options = {}, lengths = [5], begun, prepare, call, refusal } of cases) {
    test(name, () => {
      using other = new KvCache(device, base);
      const foreign = other.sequence();
      const results = [true, false].map((isRefused) => {
        const scene = sceneOf(options, lengths, foreign);
        const { cache, pass, sequences } = scene;
        prepare?.(sequences);
        if (begun !== undefined) {
          cache.append(pass, 0, { ...wordsOf(begun), sequences: sequences.slice(0, 1) });
        }
        if (isRefused) {
          const before = stateOf(scene);
          const [code, argument, ...parts] = refusal;
          using made = spyOn(device, "tensor");
          expectRefusal(() => call(scene), code, argument, ...parts);
          expect(stateOf(scene)).toEqual(before);
          for (const { value } of made.mock.results) expect((value as Tensor).disposed).toBe(true);
        }
        const bits = goneOn(scene);
        cache.dispose();
        return bits;
      });
      expect(results[0]?.every((layer) => layer.some((value) => value !== 0))).toBe(true);
      expect(results[0]).toEqual(results[1] as Float32Array<ArrayBuffer>[]);
    });
  }
});

test("options that are refused take no memory", () => {
  const make = (options: Partial<KvCacheOptions>) => () => new KvCache(device, { ...base, ...options });
  using made = spyOn(device, "tensor");
  expectRefusal(make({ window: 9 }), "invalid-argument", "window", "9 is larger than the ring of 8", "at least 9");
  expectRefusal(make({ window: 7, keep: 2 }), "invalid-argument", "window", "7 is larger than the ring of 6");
  expectRefusal(make({ window: 2, keep: 8 }), "invalid-argument", "keep", "8 is not below the capacity 8");
  expectRefusal(make({ window: 2, keep: 11 }), "invalid-argument", "keep", "11 is not below the capacity 8");
  expect(made).not.toHaveBeenCalled();
  make({})().dispose();
  expect(made).toHaveBeenCalled();
});

test("a file of other formats or another shape: both values, no memory, and the file as it was", async () => {
  const path = join(folder, "cache.safetensors");
  const options: KvCacheOptions = { ...base, k: { bits: 8 }, v: { bits: 4 }, tail: 2, maxAppend: 4 };
  {
    using cache = new KvCache(device, options);
    step(cache, [cache.sequence()], [5]);
    await cache.save(path);
  }
  const bytes = await Bun.file(path).bytes();
  const eight = '{"bits":8,"packing":"byte"}';
  const four = '{"bits":4,"packing":"nibble"}';
  const unlike: [expected: Partial<KvCacheOptions>, what: string, saved: string, here: string][] = [
    [{ k: { bits: 6 } }, "k", eight, '{"bits":6,"packing":"byte"}'],
    [{ k: "bf16" }, "k", eight, '"bf16"'],
    [{ v: { bits: 5, packing: "dense" } }, "v", four, '{"bits":5,"packing":"dense"}'],
    [{ v: { bits: 8 } }, "v", four, eight],
    [{ tailDtype: "bf16" }, "tailDtype", '"f16"', '"bf16"'],
    [{ tail: 3 }, "tail", "2", "3"],
    [{ headDim: 128 }, "headDim", "64", "128"],
    [{ nKvHeads: 2 }, "nKvHeads", "1", "2"],
    [{ capacity: 16 }, "capacity", "8", "16"],
    [{ window: 3 }, "window", "nothing", "3"],
    [{ pages: { tokens: 4, count: 2 } }, "pages", "nothing", '{"tokens":4,"count":2}'],
  ];
  using made = spyOn(device, "tensor");
  for (const [expected, what, saved, here] of unlike) {
    const error = await rejectionOf(KvCache.load(device, path, expected));
    expect([error.code, error.argument]).toEqual(["invalid-argument", path]);
    expect(error.message).toContain(`its ${what} is ${saved}, and here ${here}`);
  }
  expect(made).not.toHaveBeenCalled();
  expect(await Bun.file(path).bytes()).toEqual(bytes);
  using loaded = await KvCache.load(device, path, options);
  expect(loaded.length).toBe(5);
});
