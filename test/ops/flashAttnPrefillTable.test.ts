import { afterAll, describe, expect, test } from "bun:test";
import { Device, type FlashAttnPrefillSupport, flashAttnPrefillSupport } from "../../src/index.ts";
import {
  encodePrefill,
  GuardedOutput,
  headMajorRows,
  judge,
  maskPatterns,
  maskShapes,
  type PrefillCase,
  prefillScene,
  valueKinds,
} from "../helpers/prefill.ts";

// Every row of the support table with every pair of lengths around the edges
// of its tiles; what else a case has goes around in cycles of coprime lengths,
// so that every pair of them occurs.

const device = Device.open();
afterAll(() => device.dispose());

const groups = [
  [1, 1],
  [2, 1],
  [3, 3],
  [4, 1],
  [6, 2],
  [8, 1],
  [16, 1],
] as const;

const pick = <T>(list: readonly T[], index: number): T => list[index % list.length] as T;

function casesOf(row: FlashAttnPrefillSupport, rowIndex: number): PrefillCase[] {
  const { queryTile: BQ, keyTile: BK } = row;
  const lengths = [...new Set([1, BK - 1, BK, BK + 1, BQ - 1, BQ, BQ + 1])];
  // Tiles of 8 x 8 have fewer edges; two tiles and a part stand in.
  const all = lengths.length === 7 ? lengths : [...lengths, 2 * BQ, 2 * BQ + 1, 3 * BQ - 1];
  return all.flatMap((qL, qIndex) =>
    all.map((kL, kIndex): PrefillCase => {
      const seed = rowIndex * 49 + qIndex * 7 + kIndex;
      // Many heads where the lengths are short.
      const [heads, kvHeads] = pick(groups, qL * kL > 600 ? seed % 3 : seed);
      return {
        row,
        batch: qL * kL * heads > 1200 ? 1 : 1 + (seed % 3),
        heads,
        kvHeads,
        qL,
        kL,
        capacity: kL + pick([0, 1, 0, 19, 5], seed),
        causal: seed % 2 === 0,
        qOffsetInK: kL > qL ? pick([0, kL - qL, 1, (kL - qL) >> 1], seed) : 0,
        layout: seed % 3 === 0 ? "sequence-major" : "head-major",
        values: pick(valueKinds, Math.floor(seed / 2)),
        pattern: pick(maskPatterns.slice(0, 6), Math.floor(seed / 3) + rowIndex),
        maskShape: pick(maskShapes, Math.floor(seed / 2)),
        tileClasses: seed % 4 !== 3,
        seed,
      };
    }),
  );
}

function failureOf(entry: PrefillCase): string | undefined {
  const scene = prefillScene(device, entry);
  const guarded = new GuardedOutput(device, entry);
  using pass = device.pass();
  const classes = encodePrefill(pass, entry, scene, guarded.out);
  const kernel = pass.describe().at(-1)?.kernel;
  pass.commitAndWait();
  const failure = judge(entry, scene.problem, headMajorRows(entry, guarded.out));
  const intact = guarded.intact;
  guarded.dispose();
  classes?.dispose();
  scene.dispose();
  if (kernel !== entry.row.kernel) return `ran ${kernel}`;
  return intact ? failure : "wrote outside its output";
}

let counted = 0;

describe("every row of the support table against the float64 oracle", () => {
  test.each(flashAttnPrefillSupport().map((row, index) => [row.kernel, row.mask, row, index] as const))(
    "%s, mask %s",
    (_kernel, _mask, row, index) => {
      const failures = casesOf(row, index).flatMap((entry) => {
        counted += 1;
        const failure = failureOf(entry);
        return failure === undefined ? [] : [{ ...entry, row: row.kernel, failure }];
      });
      expect(failures).toEqual([]);
    },
    120_000,
  );

  test("were at least 2,000 cases", () => {
    expect(flashAttnPrefillSupport().length).toBe(2 * 8 * 3);
    expect(counted).toBeGreaterThanOrEqual(2000);
  });
});
