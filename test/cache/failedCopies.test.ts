/** Copies of a cache in private memory that the device refuses: its sequences stay as they were, and go on. */
import { expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { normalArray } from "../../scripts/lib/random.ts";
import { KvCache, type KvCacheOptions, type KvSequence, MetalAttentionError } from "../../src/index.ts";

const D = 64;
const common = { layers: 1, nKvHeads: 1, headDim: D, k: "f16", v: "f16", storage: "private" } as const;

/** A cache on a device that refuses its pass `failing`, and a step of `count` tokens of each sequence. */
class Run implements Disposable {
  readonly #device;
  readonly cache: KvCache;

  constructor(options: Pick<KvCacheOptions, "capacity" | "sequences" | "pages" | "window">, failing?: number) {
    this.#device = openWith(failing === undefined ? {} : { SOFTMETAL_FAIL: `pass:${failing}` });
    this.cache = new KvCache(this.#device, { ...common, ...options });
  }

  step(sequences: readonly KvSequence[], count: number, seed: number): number[] {
    const rows = sequences.length * count;
    const tensor = (seed: number) => this.#device.tensor("f16", [rows, 1, D]).set(normalArray(rows * D, 1, seed));
    const out = this.#device.tensor("f16", [rows, 1, D]);
    using pass = this.#device.pass();
    const counts = sequences.map(() => count);
    this.cache.append(pass, 0, { k: tensor(seed), v: tensor(seed + 1), sequences, counts });
    this.cache.attend(pass, 0, { q: tensor(99), out });
    pass.commitAndWait();
    this.cache.advance();
    return [...out.toFloat32Array()];
  }

  [Symbol.dispose](): void {
    this.#device[Symbol.dispose]();
  }
}

/** Runs `story` without a failure, then with each pass refused in turn until none is; gives the codes of what it caught. */
function failures(story: (failing: number | undefined, caught: (call: () => void) => void) => unknown): string[] {
  const expected = story(undefined, (call) => call());
  const codes: string[] = [];
  for (let failing = 1; failing < 64; failing++) {
    let found: string | undefined;
    const caught = (call: () => void) => {
      try {
        call();
      } catch (error) {
        if (!(error instanceof MetalAttentionError)) throw error;
        found = error.code;
        // The failure is over: what was refused is done now.
        call();
      }
    };
    try {
      expect(story(failing, caught)).toEqual(expected);
    } catch (error) {
      // Refused where nothing of the cache is at stake: at a pass of the story's own.
      if (error instanceof MetalAttentionError && error.code === "out-of-memory") continue;
      throw error;
    }
    if (found === undefined) return codes;
    codes.push(found);
  }
  throw new Error("each run had a refused pass");
}

test("an append that cannot copy a shared page leaves the sequence its page", () => {
  const codes = failures((failing, caught) => {
    using run = new Run({ capacity: 64, sequences: 3, pages: { count: 8, tokens: 8 } }, failing);
    const first = run.cache.sequence();
    const before = run.step([first], 16, 1);
    const fork = first.fork(16);
    first.crop(6);
    let out: number[] = [];
    caught(() => {
      out = run.step([first], 1, 3);
    });
    const other = run.step([fork], 1, 5);
    fork.drop();
    // All pages are there: 7 of 64 tokens are in use.
    return { before, out, other, rest: run.step([first], 57, 7) };
  });
  expect(codes).toContain("out-of-memory");
});

test("a fork that cannot copy leaves no sequence", () => {
  for (const pages of [{ count: 8, tokens: 8 }, undefined]) {
    const codes = failures((failing, caught) => {
      using run = new Run({ capacity: 64, sequences: 2, ...(pages && { pages }) }, failing);
      const first = run.cache.sequence();
      const before = run.step([first], 12, 1);
      let fork: KvSequence | undefined;
      caught(() => {
        fork = first.fork();
      });
      return { before, count: run.cache.sequences.length, out: run.step([first, fork as KvSequence], 1, 3) };
    });
    expect(codes).toContain("out-of-memory");
  }
});

test("a step longer than the ring that cannot be kept leaves the ring as it was", () => {
  const codes = failures((failing, caught) => {
    using run = new Run({ capacity: 8, window: 8, sequences: 2 }, failing);
    const sequences = [run.cache.sequence(), run.cache.sequence()];
    const outs = Array.from({ length: 6 }, (_, i) => run.step(sequences, 1, 10 + 2 * i));
    caught(() => {
      try {
        outs[6] = run.step(sequences, 20, 50);
      } catch (error) {
        run.cache.abandon();
        throw error;
      }
    });
    return { outs, last: run.step(sequences, 1, 70) };
  });
  expect(codes).toContain("out-of-memory");
});

test("a recorded append that is refused opens no sequence", () => {
  using run = new Run({ capacity: 64, sequences: 1 });
  const { device } = run.cache;
  // More than a recorded step may have.
  using k = device.tensor("f16", [17, 1, D]);
  expect(() => device.record((pass) => run.cache.append(pass, 0, { k, v: k }))).toThrow(MetalAttentionError);
  expect(run.cache.sequences).toEqual([]);
  expect(run.cache.sequence().length).toBe(0);
});
