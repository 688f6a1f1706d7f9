import { afterAll, describe, expect, test } from "bun:test";
import {
  buildSlidingWindowMask,
  Device,
  type FlashAttnPrefillArgs,
  flashAttnPrefill,
  flashAttnPrefillSupport,
  type Tensor,
} from "../../src/index.ts";
import { bitsOf } from "../helpers/elements.ts";
import { type OptionCase, OptionScene, runOptions } from "../helpers/prefillOptions.ts";

// Ways to the same result that must not differ in a single bit.

const device = Device.open();
afterAll(() => device.dispose());

const [row] = flashAttnPrefillSupport().filter((each) => each.headDim === 64 && each.dtype === "bf16");
if (row === undefined) throw new Error("no kernel of bf16 with D = 64");

const scores = { causal: true, window: 20, softcap: 8, sink: 0.5, hasSlopes: true, hasLse: true } as const;
const plain: OptionCase = {
  ...{ row, heads: 3, kvHeads: 1, sequences: [{ rows: 40, keys: 71 }], storage: "linear", isPacked: false },
  ...{ causal: true, seed: 3 },
};
const all: OptionCase = { ...plain, ...scores };

/** Output and logarithms of each sequence. */
function run(entry: OptionCase, more: Partial<FlashAttnPrefillArgs> = {}) {
  const scene = new OptionScene(device, entry);
  runOptions(device, scene, more);
  const results = entry.sequences.map((_, b) => ({
    out: scene.bitsOfSequence(b),
    lse: entry.hasLse ? new Uint32Array(scene.logarithmsOfSequence(b).buffer) : undefined,
  }));
  scene.dispose();
  return results;
}

/** Whether a result is there at all: neither zeros nor what was there before. */
function expectResult(results: ReturnType<typeof run>): void {
  for (const { out } of results) expect(new Set(out).size).toBeGreaterThan(100);
}

describe("the same bits", () => {
  test("a window, and a mask that says the same", () => {
    for (const window of [1, 5, 16, 17, 33, 70, 100]) {
      const expected = run({ ...plain, window });
      expectResult(expected);
      for (const dtype of ["bool", "bf16"] as const) {
        using mask = device.tensor(dtype, [40, 71]);
        using pass = device.pass();
        buildSlidingWindowMask(pass, { mask, window, qOffsetInK: 31 });
        pass.commitAndWait();
        expect(run({ ...plain, causal: false }, { mask })).toEqual(expected);
        expect(run({ ...plain, window }, { mask })).toEqual(expected);
      }
    }
  });

  test("options that change nothing, and none", () => {
    const expected = run(plain);
    expectResult(expected);
    expect(run({ ...plain, window: 71 })).toEqual(expected);
    expect(run({ ...plain, sink: Number.NEGATIVE_INFINITY })).toEqual(expected);
    expect(run({ ...plain, hasLse: true }).map(({ out }) => out)).toEqual(expected.map(({ out }) => out));
    const full = run({ ...plain, causal: false });
    expect(run({ ...plain, causal: false, sink: Number.NEGATIVE_INFINITY })).toEqual(full);
    expect(full).not.toEqual(expected);
  });

  test("lengths of the host and of the device, capacities, layouts", () => {
    const expected = run(all);
    expectResult(expected);
    expect(run({ ...all, hasLengths: true })).toEqual(expected);
    expect(run({ ...all, capacity: 71 })).toEqual(expected);
    expect(run({ ...all, hasLengths: true, capacity: 200 })).toEqual(expected);
    expect(run({ ...all, isTokenMajor: true })).toEqual(expected);
    expect(run({ ...all, isPacked: true })).toEqual(expected);
  });

  test("a ring that has wrapped, at each offset, and a linear cache", () => {
    const expected = run(all);
    // 40 rows with a window of 20 see 59 keys.
    for (let capacity = 59; capacity <= 72; capacity++) {
      expect(run({ ...all, storage: "ring", capacity })).toEqual(expected);
      expect(run({ ...all, storage: "ring", capacity, hasLengths: true, isTokenMajor: true })).toEqual(expected);
    }
    expect(run({ ...all, storage: "ring", capacity: 58 })).not.toEqual(expected);
  });

  test("pages of any size in any order, and a linear cache", () => {
    const expected = run(all);
    for (const pageTokens of [1, 3, 16, 64, 100]) {
      for (const pageOrder of [1, 2, 3]) {
        expect(run({ ...all, storage: "pages", pageTokens, pageOrder })).toEqual(expected);
      }
    }
  });

  test("a sequence among others, packed and not, and alone", () => {
    const sequences = [33, 1, 0, 64, 20, 2].map((rows) => ({ rows, keys: rows }));
    const packed = { ...all, sequences, isPacked: true, storage: "packed" } as const;
    const expected = run(packed);
    expect(run({ ...packed, storage: "linear" })).toEqual(expected);
    expect(run({ ...packed, storage: "pages", pageTokens: 9 })).toEqual(expected);
    expect(run({ ...packed, storage: "ring", capacity: 64 })).toEqual(expected);
    const [first] = sequences as [OptionCase["sequences"][number]];
    expect(run({ ...all, sequences: [first] })).toEqual(expected.slice(0, 1));
  });

  test("100 packed sequences, of which most are short", () => {
    const sequences = Array.from({ length: 100 }, (_, b) => ({ rows: b % 7 === 3 ? 35 : b % 3, keys: 1 }));
    const own = sequences.map(({ rows }) => ({ rows, keys: rows }));
    const packed = run({ ...all, sequences: own, isPacked: true, storage: "packed" });
    expect(run({ ...all, sequences: own, isPacked: true, storage: "pages", pageTokens: 4 })).toEqual(packed);
    expect(packed.map(({ out }) => out.length)).toEqual(own.map(({ rows }) => rows * 3 * 64));
  });

  test("a prompt in chunks with all options, and done at once", () => {
    const [tokens, D] = [90, 64];
    const whole: OptionCase = { ...all, heads: 1, sequences: [{ rows: tokens, keys: tokens }] };
    const scene = new OptionScene(device, whole);
    runOptions(device, scene);
    const { q, out, lse, qOffsetInK: _, ...rest } = scene.args;
    const expected = [bitsOf(scene.out).slice(), bitsOf(scene.lse).slice()];
    for (const chunks of [
      [32, 32, 26],
      [1, 88, 1],
      [17, 23, 50],
    ]) {
      bitsOf(scene.out).fill(0);
      scene.lse.view().fill(0);
      let first = 0;
      for (const chunk of chunks) {
        const end = first + chunk;
        const rows = <T extends Tensor>(tensor: T, size: number): T =>
          tensor.reshape([tokens, size]).slice(first, end).reshape([1, 1, chunk, size]) as T;
        using pass = device.pass();
        const part = { q: rows(q, D), out: rows(out, D), lse: rows(scene.lse, 1).reshape([1, 1, chunk]) };
        flashAttnPrefill(pass, { ...rest, ...part, seqLenK: end, qOffsetInK: first });
        pass.commitAndWait();
        first = end;
      }
      expect(first).toBe(tokens);
      expect([bitsOf(scene.out), bitsOf(scene.lse)]).toEqual(expected);
    }
    expect(lse).toBe(scene.lse);
    scene.dispose();
  });
});

describe("what a sequence is when the device has nonsense", () => {
  /** The rows of all sequences of a packed case with other offsets than its own. */
  function withOffsets(offsets: readonly number[]) {
    const entry: OptionCase = { ...all, sequences: [10, 30, 24].map((rows) => ({ rows, keys: rows })), isPacked: true };
    const scene = new OptionScene(device, { ...entry, storage: "packed" });
    using seqOffsets = device.tensor("i32", [offsets.length]).set([...offsets]);
    runOptions(device, scene, { seqOffsets });
    const bits = bitsOf(scene.out).slice();
    scene.dispose();
    return bits;
  }

  test("offsets that do not ascend, are negative or beyond the end", () => {
    const total = 66;
    const int = 2 ** 31;
    expect(withOffsets([0, 10, 5, 64])).toEqual(withOffsets([0, 10, 10, 64]));
    expect(withOffsets([-7, 10, 40, 64])).toEqual(withOffsets([0, 10, 40, 64]));
    expect(withOffsets([0, 10, 40, int - 1])).toEqual(withOffsets([0, 10, 40, total]));
    expect(withOffsets([0, int - 1, -int, 12])).toEqual(withOffsets([0, total, total, total]));
    // What begins behind a gap leaves the gap as it was.
    const gap = withOffsets([20, 30, 40, 64]);
    expect(new Set(gap.subarray(0, 20 * 3 * 64)).size).toBe(1);
    expect(new Set(gap.subarray(20 * 3 * 64)).size).toBeGreaterThan(100);
  });

  test("lengths that are negative or beyond the capacity, pages outside of the pool", () => {
    const run = (storage: "linear" | "pages", more: (scene: OptionScene) => Partial<FlashAttnPrefillArgs>) => {
      const scene = new OptionScene(device, { ...all, storage, pageTokens: 74, capacity: 74, hasLengths: true });
      // No key is NaN.
      for (const tensor of [scene.args.k, scene.args.v] as Tensor[]) {
        const bits = bitsOf(tensor);
        for (let i = 0; i < bits.length; i++) if (((bits[i] as number) & 0x7f80) === 0x7f80) bits[i] = 0x3f80;
      }
      runOptions(device, scene, more(scene));
      const bits = bitsOf(scene.out).slice();
      scene.dispose();
      return bits;
    };
    const lengths = (value: number) => () => ({ seqLens: device.tensor("i32", [1]).set([value]) });
    expect(run("linear", lengths(2 ** 31 - 1))).toEqual(run("linear", lengths(74)));
    expect(run("linear", lengths(-5)).every((bits) => bits === 0)).toBe(true);
    const page = (value: number) => () => ({ blockTable: device.tensor("i32", [1, 1]).set([value]) });
    expect(run("pages", page(2 ** 31 - 1))).toEqual(run("pages", page(1)));
    expect(run("pages", page(-9))).toEqual(run("pages", page(0)));
    expect(run("pages", page(0))).not.toEqual(run("pages", page(1)));
  });
});
