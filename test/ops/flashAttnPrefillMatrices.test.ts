import { afterAll, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { type Device, flashAttnPrefillSupport } from "../../src/index.ts";
import { encodePrefill, headMajorRows, judge, type PrefillCase, prefillScene, valueKinds } from "../helpers/prefill.ts";
import { judgeOptions } from "../helpers/prefillJudgement.ts";
import { type OptionCase, OptionScene, rowOf, runOptions } from "../helpers/prefillOptions.ts";

// Prefill where matrices have units of their own: P is multiplied in two parts. The CPU is told to.

const device = openWith({ SOFTMETAL_MATRIX_UNITS: "1" });
const without = openWith({ SOFTMETAL_MATRIX_UNITS: "0" });
afterAll(() => {
  device.dispose();
  without.dispose();
});

/** The output of a case on a device, and what the judgement says of it. */
function outcomeOf(on: Device, entry: PrefillCase) {
  const scene = prefillScene(on, entry);
  using out = on.tensor(entry.row.dtype, scene.q.shape);
  using pass = on.pass();
  const classes = encodePrefill(pass, entry, scene, out);
  pass.commitAndWait();
  const rows = headMajorRows(entry, out);
  const failure = judge(entry, scene.problem, rows);
  classes?.dispose();
  scene.dispose();
  return { rows, failure };
}

const base: Omit<PrefillCase, "row"> = {
  ...{ batch: 1, heads: 2, kvHeads: 1, qL: 70, kL: 150, capacity: 160, causal: true, qOffsetInK: 80 },
  ...{ layout: "head-major", values: "normal", pattern: "random", maskShape: "by-head", tileClasses: true, seed: 11 },
};

/** One head size of each kind of tiles; the table of all sizes is that of the kernels as a whole. */
const rows = flashAttnPrefillSupport().filter(({ headDim }) => [64, 128, 256, 512].includes(headDim));

test.each(rows.map((row) => [row.kernel, row.mask, row] as const))(
  "%s, mask %s, against the float64 oracle",
  (_kernel, _mask, row) => {
    for (const values of valueKinds)
      expect([values, outcomeOf(device, { ...base, row, values }).failure]).toEqual([values, undefined]);
  },
  60_000,
);

test.each(["bf16", "f16"] as const)("%s: few elements are rounded otherwise than where P is whole", (dtype) => {
  for (const headDim of [64, 128, 256, 512]) {
    const entry: PrefillCase = { ...base, row: rowOf(headDim, dtype), heads: 4, kvHeads: 4 };
    const [parts, whole] = [outcomeOf(device, entry).rows, outcomeOf(without, entry).rows];
    const others = parts.filter((value, index) => value !== whole[index]).length / parts.length;
    // Of bfloat P has 16 bits, of half 22; one part alone would round every other element otherwise.
    expect(others).toBeWithin(dtype === "bf16" ? 1e-4 : 0, dtype === "bf16" ? 0.03 : 0.005);
  }
});

test.each(["bf16", "f16"] as const)("%s: logarithms and sinks are those of the weights, not of their unit", (dtype) => {
  const entry: OptionCase = {
    ...{ row: rowOf(64, dtype), heads: 2, kvHeads: 1, sequences: [{ rows: 70, keys: 150 }], storage: "linear" },
    ...{ isPacked: false, causal: true, window: 90, softcap: 20, sink: 1, hasSlopes: true, hasLse: true, seed: 3 },
  };
  for (const sink of [undefined, -30, 1, 6]) {
    for (const spread of [1, 40]) {
      const scene = new OptionScene(device, { ...entry, sink, spread });
      runOptions(device, scene);
      expect([sink, spread, judgeOptions(scene)]).toEqual([sink, spread, undefined]);
      scene.dispose();
    }
  }
});
