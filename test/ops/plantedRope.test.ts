import { afterAll, expect } from "bun:test";
import { Device } from "../../src/index.ts";
import { referenceApplyRope } from "../../src/reference/index.ts";
import { plant, type ShaderPatch } from "../helpers/shaders.ts";
import { testTable } from "../helpers/table.ts";

// Mistakes planted in the shader, which the oracle must see.

const device = Device.open();
afterAll(() => device.dispose());

interface Mistake extends ShaderPatch {
  readonly name: string;
}

const [batch, nHeads, nKvHeads, nTokens, headDim] = [2, 5, 3, 3, 12];
const invFreq = Float32Array.of(1, 0.3, 0.01);
const attentionScale = 1.25;
/** Far enough for an angle that is not reduced to be off. */
const positions = Int32Array.of(5, 16_000_001, -7, 16_777_213, 16_777_202, 1_234_567);

/** A pair a thread, of a part of the coordinates; or two, of all. */
const forms = [
  { isWide: false, isInterleaved: false, invFreq },
  { isWide: false, isInterleaved: true, invFreq },
  { isWide: true, isInterleaved: false, invFreq: Float32Array.of(1, 0.3, 0.01, 0.7, 0.05, 0.002) },
];

/** Largest error of q and k, over all forms and layouts. */
function largestError(kernel: string): number {
  let largest = 0;
  for (const { isWide, isInterleaved, invFreq } of forms) {
    for (const isSequenceMajor of [false, true]) {
      const streams = [nHeads, nKvHeads].map((heads) => {
        // Room for the heads of q and k together, so that a mistake reads and writes inside.
        const x = device.tensor("f32", [batch * (nHeads + nKvHeads) * nTokens * headDim]);
        x.set(Float32Array.from({ length: x.length }, (_, i) => Math.sin(i * 1.7)));
        return {
          heads,
          x,
          out: device.tensor("f32", x.shape),
          values: Float64Array.from(x.toFloat32Array()).subarray(0, batch * heads * nTokens * headDim),
        };
      });
      const [q, k] = streams as [(typeof streams)[0], (typeof streams)[0]];
      const constants = [isInterleaved, true, true, !isWide, isWide].map(
        (value, i) => ({ index: 400 + i, dtype: "bool", value }) as const,
      );
      using pipeline = device.pipeline(kernel, { constants });
      const words = [batch, nHeads, nKvHeads, nTokens, headDim, 2 * invFreq.length, isSequenceMajor ? 1 : 0, 1, 0, 0];
      const params = new Uint32Array(words);
      new Float32Array(params.buffer)[9] = attentionScale;
      using pass = device.pass();
      pass.dispatch(pipeline, {
        buffers: [q.x, q.out, k.x, k.out, device.tensor("i32", [6]).set(positions)],
        bytes: { 5: invFreq, 6: params },
        grid: [headDim / (isWide ? 4 : 2), batch * nTokens, 3],
        threads: [headDim / (isWide ? 4 : 2), 1, 1],
      });
      pass.commitAndWait();
      for (const { heads, values, out } of streams) {
        const shape = { batch, nHeads: heads, nTokens, headDim, isSequenceMajor, isInterleaved };
        const position = (b: number, t: number): number => positions[b * nTokens + t] ?? 0;
        const wanted = referenceApplyRope(values, { ...shape, invFreq, attentionScale, position });
        const got = out.toFloat32Array();
        wanted.forEach((want, i) => {
          const error = Math.abs((got[i] as number) - want);
          largest = Math.max(largest, Number.isNaN(error) ? Number.POSITIVE_INFINITY : error);
        });
      }
    }
  }
  return largest;
}

const kernel = "apply_rope_f32";
const largestAllowed = 2e-6;

testTable("the shader as it is", [{ name: "passes" }], () => {
  expect(largestError(plant(device, "apply_rope.metal", kernel, []))).toBeLessThan(largestAllowed);
});

const mistakes: readonly Mistake[] = [
  { name: "turned the other way", find: /fma\(x, angles\.cosine, -\(y/, replace: "fma(x, angles.cosine, (y" },
  { name: "the second coordinate not turned", find: /fma\(y, angles\.cosine, x \* angles\.sine\)/, replace: "y" },
  {
    name: "sine and cosine exchanged",
    find: /\(quarter & 1\) != 0/,
    replace: "(quarter & 1) == 0",
  },
  { name: "the cosine's sign a quarter late", find: /\(\(quarter \+ 1\) & 2\)/, replace: "(quarter & 2)" },
  { name: "the sine's sign left out", find: /select\(y, -y, .*? != 0\)/, replace: "y" },
  { name: "quarters not taken off", find: /fma\(quarters, Value\(-0\.25f\), turn\)/, replace: "turn" },
  { name: "quarters of the rest not counted", find: /Whole\(quarters \+ more\)/, replace: "Whole(quarters)" },
  { name: "terms of the sine left out", find: /fma\(sine, square, Value\(81\.60523f\)\)/, replace: "Value(81.60523f)" },
  {
    name: "terms of the cosine left out",
    find: /fma\(cosine, square, Value\(64\.93937f\)\)/,
    replace: "Value(64.93937f)",
  },
  { name: "the rest of a product dropped", find: /turn\) \+ product_rest/, replace: "turn)" },
  { name: "the rest of the frequency dropped", find: / \+ position \* turns_rest/, replace: "" },
  { name: "the rest of 1 / (2 pi) dropped", find: / \+ frequency \* kTurnsPerRadianRest/, replace: "" },
  {
    name: "the scale not applied",
    find: /\{scale \* angles\.cosine, scale \* angles\.sine\}/,
    replace: "angles",
  },
  {
    name: "two pairs by one angle",
    find: /\(\(constant Value \*\)inv_freq\)\[index\]/,
    replace: "Value(inv_freq[index * N])",
  },
  { name: "the cosine for the sine", find: /scale \* angles\.sine/, replace: "scale * angles.cosine" },
  { name: "pairs one further apart", find: /walk, index, runs, angles/, replace: "walk, index, runs + 1, angles" },
  {
    name: "neighbours one further",
    find: /turn_runs<From, To, N, true>\(from, to, walk, 2 \* ulong\(index\)/,
    replace: "turn_runs<From, To, N, true>(from, to, walk, 2 * ulong(index) + 1",
  },
  { name: "one pair too many turns", find: /index < runs/, replace: "index <= runs" },
  { name: "one pair too few turns", find: /index < runs/, replace: "index + 1 < runs" },
  { name: "what does not turn is left out", find: /to \+ apart, first, second\)/, replace: "to, first, second)" },
  { name: "positions of the first batch for all", find: /params\.positionsPerBatch \?/, replace: "false ?" },
  {
    name: "the last head of a walk left out",
    find: /i < walk\.count; i\+\+\) \{\s+Value x/,
    replace: "i + 1 < walk.count; i++) { Value x",
  },
  { name: "groups one head short", find: /\(heads \+ groups - 1\) \/ groups/, replace: "heads / groups" },
  {
    name: "k at the heads of q",
    find: /max\(first, params\.nHeads\) - params\.nHeads;/,
    replace: "max(first, params.nHeads) - params.nHeads + 1;",
  },
  {
    name: "k with the heads of q in a row",
    find: /walk_of\(params, row, params\.nKvHeads/,
    replace: "walk_of(params, row, params.nHeads",
  },
  {
    name: "written one head on",
    find: /vector \* head_dim, step, count/,
    replace: "vector * head_dim + step, step, count",
  },
  { name: "the layouts exchanged", find: /if \(!params\.sequenceMajor\)/, replace: "if (params.sequenceMajor)" },
];
testTable("a mistake is found", mistakes, (mistake) => {
  expect(largestError(plant(device, "apply_rope.metal", kernel, [mistake]))).toBeGreaterThan(4 * largestAllowed);
});
