import { afterAll, describe, expect, test } from "bun:test";
import { classifyMaskTiles, Device, type FlashAttnPrefillSupport } from "../../src/index.ts";
import { judgeOptions } from "../helpers/prefillJudgement.ts";
import { type OptionCase, OptionScene, randomMask, rowOf, runOptions } from "../helpers/prefillOptions.ts";

// Window, soft cap, sinks, ALiBi, logarithms, and sequences of lengths of their own, packed or not, over linear caches,
// rings and pages: every subset of the scores' options with every kind of sequence.

const device = Device.open();
afterAll(() => device.dispose());

type Sequences = Pick<OptionCase, "sequences" | "storage" | "isPacked" | "hasLengths" | "capacity" | "pageTokens"> & {
  readonly name: string;
};

/** Sequences in every kind of storage: the tiles have 64 rows and 32 keys at D = 64, 32 and 16 at 256. */
function kindsOf(round: number): readonly Sequences[] {
  const one = (
    [
      [67, 98],
      [33, 33],
      [1, 49],
      [16, 32],
    ] as const
  )[round % 4] as readonly [number, number];
  const alike = [
    { rows: one[0], keys: one[1] },
    { rows: one[0], keys: one[1] },
  ];
  const own = [
    { rows: one[0], keys: one[1] },
    { rows: one[0], keys: 17 + round },
  ];
  const ragged = (
    [
      [65, 1, 20],
      [5, 63, 8],
      [1, 1, 40],
      [0, 32, 9],
    ] as const
  )[round % 4] as readonly number[];
  const packed = ragged.map((rows) => ({ rows, keys: rows }));
  const resumed = ragged.map((rows, b) => ({ rows, keys: rows + ([16, 0, 37][b % 3] as number) }));
  const short = ragged.map((rows, b) => ({ rows, keys: b === 0 ? Math.max(1, rows - 9) : rows }));
  const pageTokens = [7, 16, 1, 24][round % 4] as number;
  const capacity = [29, 16, 40, 5][round % 4] as number;
  return [
    { name: "linear", sequences: alike, storage: "linear", isPacked: false },
    { name: "linear, lengths", sequences: own, storage: "linear", isPacked: false, hasLengths: true },
    { name: "packed", sequences: packed, storage: "packed", isPacked: true },
    { name: "packed rows, linear", sequences: round % 2 === 0 ? resumed : short, storage: "linear", isPacked: true },
    { name: "ring", sequences: alike, storage: "ring", isPacked: false, capacity },
    { name: "packed rows, ring", sequences: resumed, storage: "ring", isPacked: true, capacity, hasLengths: true },
    { name: "pages", sequences: own, storage: "pages", isPacked: false, pageTokens },
    { name: "packed rows, pages", sequences: resumed, storage: "pages", isPacked: true, pageTokens, hasLengths: true },
  ];
}

/** Every subset of the options of scores, with some values of each. */
function scoresOf(round: number): readonly Partial<OptionCase>[] {
  return Array.from({ length: 16 }, (_, subset) => ({
    ...(subset & 1 && { window: [9, 1, 16, 17, 40, 3][(subset + round) % 6] }),
    ...(subset & 2 && { softcap: [2, 0.5, 50][(subset + round) % 3] }),
    ...(subset & 4 && { sink: [0, -3, 4][(subset + round) % 3] }),
    ...(subset & 8 && { hasSlopes: true }),
  }));
}

type Named<T> = T & { readonly name: string };

function casesOf(row: FlashAttnPrefillSupport, rounds: number): Named<OptionCase>[] {
  const cases: Named<OptionCase>[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const [kind, { name, ...sequences }] of kindsOf(round).entries()) {
      for (const [subset, scores] of scoresOf(round).entries()) {
        const turn = kind + subset + round;
        const entry: OptionCase = {
          ...{ row, ...sequences, ...scores, seed: cases.length + 1 },
          ...(turn % 3 === 0 ? { heads: 3, kvHeads: 1 } : { heads: 2, kvHeads: 2 }),
          causal: scores.window !== undefined || turn % 4 !== 1,
          hasLse: (turn + (subset >> 1)) % 2 === 0,
          isTokenMajor: turn % 5 === 2,
          spread: [1, 1, 6][turn % 3] as number,
        };
        cases.push({ ...entry, name: `${row.kernel} ${round} ${name} ${JSON.stringify(scores)}` });
      }
    }
  }
  return cases;
}

function runCases(cases: readonly Named<OptionCase>[], atLeast: number): void {
  const failures = cases.flatMap((entry) => {
    const scene = new OptionScene(device, entry);
    runOptions(device, scene);
    const failure = judgeOptions(scene);
    scene.dispose();
    return failure === undefined ? [] : [`${entry.name}: ${failure}`];
  });
  expect(failures).toEqual([]);
  expect(new Set(cases.map(({ name }) => name)).size).toBe(cases.length);
  expect(cases.length).toBeGreaterThanOrEqual(atLeast);
}

const timeout = 120_000;

describe("every subset of options with every kind of sequence, against the float64 oracle", () => {
  test("D = 64, bf16", () => runCases(casesOf(rowOf(64, "bf16"), 8), 1024), timeout);
  test("D = 256, f16", () => runCases(casesOf(rowOf(256, "f16"), 2), 256), timeout);
  test("D = 512, bf16", () => runCases(casesOf(rowOf(512, "bf16"), 1), 128), timeout);
});

describe("every subset of options beside a mask, with and without tile classes", () => {
  test.each(["additive", "bool"] as const)(
    "%s, D = 64",
    (kind) => {
      const row = rowOf(64, "bf16", kind);
      const [rows, keys] = [37, 45];
      const failures: string[] = [];
      let count = 0;
      for (const [subset, scores] of [...scoresOf(0), ...scoresOf(1), ...scoresOf(2)].entries()) {
        const sequences = [{ rows, keys }];
        const causal = scores.window !== undefined || subset % 2 === 0;
        const entry: OptionCase = {
          ...{ row, heads: 2, kvHeads: 1, sequences, storage: "linear", isPacked: false, causal, seed: subset + 1 },
          ...scores,
          hasLse: subset % 3 === 0,
        };
        const scene = new OptionScene(device, entry);
        const { tensor, mask } = randomMask(device, kind, rows, keys, subset);
        using pass = device.pass();
        using tileClasses = classifyMaskTiles(pass, { mask: tensor, headDim: row.headDim });
        pass.commitAndWait();
        for (const more of [{}, { tileClasses }]) {
          runOptions(device, scene, { mask: tensor, ...more });
          const failure = judgeOptions(scene, mask);
          if (failure !== undefined) failures.push(`${JSON.stringify(scores)} ${Object.keys(more)}: ${failure}`);
          count += 1;
        }
        tensor.dispose();
        scene.dispose();
      }
      expect(failures).toEqual([]);
      expect(count).toBe(96);
    },
    timeout,
  );
});
