import { afterAll, describe, expect, test } from "bun:test";
import {
  type AttentionDType,
  classifyMaskTiles,
  Device,
  dequantizeKv,
  flashAttnPrefill,
  hadamardQuantizeKvSeq,
} from "../../src/index.ts";
import type { CodeFormat } from "../../src/reference/index.ts";
import { judgeOptions } from "../helpers/prefillJudgement.ts";
import { type OptionCase, OptionScene, randomMask, rowOf, runOptions } from "../helpers/prefillOptions.ts";
import { normalDraws } from "../helpers/random.ts";
import { testTable } from "../helpers/table.ts";
import { type Refusal, refused, untyped, WatchedTensors } from "../helpers/watched.ts";

// Prefill over a quantized cache: what the codes stand for, rounded to the dtype of q.

const device = Device.open();
afterAll(() => device.dispose());

const formats: readonly CodeFormat[] = [
  { bits: 8, packing: "byte" },
  { bits: 4, packing: "nibble" },
  { bits: 2, packing: "dense" },
  { bits: 3, packing: "dense" },
  { bits: 5, packing: "dense" },
  { bits: 6, packing: "byte" },
];
const [k8, v4] = formats as [CodeFormat, CodeFormat];

const two = [0, 1].map(() => ({ rows: 35, keys: 50 }));
const ragged = [33, 1, 20].map((rows, b) => ({ rows, keys: rows + b * 9 }));
const kinds: readonly Partial<OptionCase>[] = [
  { sequences: two, storage: "linear", isPacked: false },
  { sequences: two, storage: "linear", isPacked: false, window: 9 },
  { sequences: [...two, { rows: 35, keys: 12 }], storage: "linear", isPacked: false, window: 20 },
  { sequences: ragged, storage: "linear", isPacked: true },
  { sequences: ragged, storage: "linear", isPacked: true, window: 7 },
  { sequences: two, storage: "ring", isPacked: false, capacity: 37, window: 30 },
  { sequences: ragged, storage: "ring", isPacked: true, capacity: 16, hasLengths: true },
  { sequences: two, storage: "pages", isPacked: false, pageTokens: 7 },
  { sequences: ragged, storage: "pages", isPacked: true, pageTokens: 16, window: 18 },
  { sequences: two, storage: "linear", isPacked: false, causal: false },
  { sequences: ragged, storage: "pages", isPacked: true, pageTokens: 7, causal: false },
];

function casesOf(
  headDim: number,
  dtype: AttentionDType,
  pairs: readonly (readonly [CodeFormat | undefined, CodeFormat | undefined])[],
) {
  const row = rowOf(headDim, dtype);
  return pairs.flatMap(([formatK, formatV], p) =>
    kinds.flatMap((kind, i): OptionCase[] => {
      if (kind.storage === "pages" && (formatK === undefined || formatV === undefined)) return [];
      const codes = { ...(formatK && { formatK }), ...(formatV && { formatV }) };
      const scores = { ...(i % 2 && { softcap: 4 }), ...(i % 3 === 1 && { sink: 1 }), hasSlopes: (i + p) % 2 === 1 };
      const rest = { heads: 4, kvHeads: 2, causal: true, hasLse: (i + p) % 3 !== 1, seed: p * 20 + i + 1 };
      const isTokenMajor = (i + p) % 4 === 1;
      return [{ row, ...rest, ...scores, ...codes, ...kind, isTokenMajor } as OptionCase];
    }),
  );
}

function runCases(cases: readonly OptionCase[], count: number): void {
  const failures = cases.flatMap((entry, i) => {
    const scene = new OptionScene(device, entry);
    runOptions(device, scene);
    const failure = judgeOptions(scene);
    scene.dispose();
    return failure === undefined ? [] : [`${i}: ${failure}`];
  });
  expect(failures).toEqual([]);
  expect(cases.length).toBe(count);
}

const timeout = 120_000;

describe("every storage of codes, against the float64 oracle", () => {
  test(
    "every format for K and for V, D = 64, bf16",
    () => {
      const pairs = formats.flatMap((format, i) => [[format, formats[(i + 1) % 6]]] as [CodeFormat, CodeFormat][]);
      runCases(casesOf(64, "bf16", pairs), 66);
    },
    timeout,
  );
  test(
    "codes beside a dense cache, f16",
    () => {
      runCases(
        casesOf(64, "f16", [
          [k8, undefined],
          [undefined, v4],
        ]),
        16,
      );
    },
    timeout,
  );
  test.each([80, 128, 256, 512])(
    "8 and 4 bits, D = %d, f16",
    (headDim) => {
      runCases(casesOf(headDim, "f16", [[k8, v4]]), 11);
    },
    timeout,
  );
});

test.each(["additive", "bool"] as const)(
  "codes beside a mask, with and without tile classes: %s",
  (kind) => {
    const row = rowOf(64, "bf16", kind);
    const [rows, keys] = [37, 45];
    const failures: string[] = [];
    let count = 0;
    for (let i = 0; i < 24; i++) {
      const [formatK, formatV] = [formats[i % 6], formats[(i + 1 + (i >> 3)) % 6]] as [CodeFormat, CodeFormat];
      const entry: OptionCase = {
        ...{ row, heads: 4, kvHeads: 2, sequences: [{ rows, keys }], storage: "linear", isPacked: false, seed: i + 1 },
        ...{
          causal: i % 2 === 0,
          hasLse: i % 3 === 0,
          hasSlopes: i % 8 > 3,
          isTokenMajor: i % 5 === 1,
          formatK,
          formatV,
        },
        ...(i % 4 === 0 && { window: 3 + i }),
        ...(i % 8 > 5 && { softcap: 4 }),
        ...(i % 7 > 3 && { sink: 1 }),
      };
      const scene = new OptionScene(device, entry);
      const { tensor, mask } = randomMask(device, kind, rows, keys, i);
      using pass = device.pass();
      using tileClasses = classifyMaskTiles(pass, { mask: tensor, headDim: 64 });
      pass.commitAndWait();
      for (const more of [{}, { tileClasses }]) {
        runOptions(device, scene, { mask: tensor, ...more });
        const failure = judgeOptions(scene, mask);
        if (failure !== undefined) failures.push(`${i} ${Object.keys(more)}: ${failure}`);
        count += 1;
      }
      tensor.dispose();
      scene.dispose();
    }
    expect(failures).toEqual([]);
    expect(count).toBe(48);
  },
  120_000,
);

describe("the same bits", () => {
  const base: OptionCase = {
    ...{ row: rowOf(64, "f16"), heads: 4, kvHeads: 2, sequences: [{ rows: 40, keys: 71 }], storage: "linear" },
    ...{ isPacked: false, causal: true, window: 20, hasLse: true, seed: 3, formatK: k8, formatV: v4 },
  };
  const run = (entry: OptionCase) => {
    const scene = new OptionScene(device, entry);
    runOptions(device, scene);
    const bits = scene.bitsOfSequence(0);
    scene.dispose();
    return bits;
  };

  test("a line, a ring, pages, lengths of the device", () => {
    const expected = run(base);
    expect(new Set(expected).size).toBeGreaterThan(100);
    expect(run({ ...base, hasLengths: true })).toEqual(expected);
    expect(run({ ...base, storage: "ring", capacity: 60 })).toEqual(expected);
    expect(run({ ...base, storage: "ring", capacity: 66, hasLengths: true })).toEqual(expected);
    for (const pageTokens of [1, 16, 50]) expect(run({ ...base, storage: "pages", pageTokens })).toEqual(expected);
    expect(run({ ...base, isPacked: true })).toEqual(expected);
    expect(run({ ...base, formatV: k8 })).not.toEqual(expected);
  });

  test("two calls of a pass, which share the scratch", () => {
    const scenes = [base, { ...base, seed: 4, sequences: [{ rows: 9, keys: 33 }] }].map(
      (entry) => new OptionScene(device, entry),
    );
    const alone = [base, { ...base, seed: 4, sequences: [{ rows: 9, keys: 33 }] }].map(run);
    using pass = device.pass();
    for (const { args } of scenes) flashAttnPrefill(pass, args);
    expect(pass.describe().map(({ barrierBefore }) => barrierBefore)).toEqual([false, false, true, true, false, true]);
    pass.commitAndWait();
    expect(scenes.map((scene) => scene.bitsOfSequence(0))).toEqual(alone);
    for (const scene of scenes) scene.dispose();
  });
});

const watched = new WatchedTensors();
test("the scale factor of an encoding of D = 512 is that of the call", () => {
  const [heads, keys, headDim] = [1, 5, 512];
  const draw = normalDraws(3);
  const values = (count: number) => Float32Array.from({ length: count * headDim }, draw);
  using src = device.tensor("f32", [keys, heads, headDim]).set(values(keys));
  using packed = device.tensor("u8", [heads, keys, headDim]);
  using norms = device.tensor("f32", [heads, keys, 2]);
  using dense = device.tensor("f16", [1, heads, keys, headDim]);
  using q = device.tensor("f16", [1, heads, keys, headDim]).set(values(keys));
  using out = device.tensor("f16", q.shape);
  using expected = device.tensor("f16", q.shape);
  for (const scaleFactorD512 of [4, 1, 0.25]) {
    using pass = device.pass();
    hadamardQuantizeKvSeq(pass, { src, packed, norms, bits: 8, writePosStart: 0, scaleFactorD512: 1 });
    using plane = dense.reshape([heads, keys, headDim]);
    dequantizeKv(pass, { packed, norms, bits: 8, out: plane, scaleFactorD512 });
    const codes = { packed, norms, bits: 8 } as const;
    flashAttnPrefill(pass, { q, k: codes, v: codes, out, causal: true, scaleFactorD512 });
    flashAttnPrefill(pass, { q, k: dense, v: dense, out: expected, causal: true });
    pass.commitAndWait();
    const [got, wanted] = [out.toFloat32Array(), expected.toFloat32Array()];
    const largest = Math.max(...wanted.map(Math.abs));
    expect(Math.max(...got.map((value, i) => Math.abs(value - (wanted[i] as number))))).toBeLessThan(largest / 500);
  }
});

const codes = (bytes: number, capacity = 10) => ({
  packed: watched.tensor("u8", [2, 2, capacity, bytes]),
  norms: watched.tensor("f32", [2, 2, capacity, 1]),
});
const valid = {
  ...{ q: watched.tensor("bf16", [2, 4, 6, 64]), k: { ...codes(64), bits: 8 }, v: { ...codes(32), bits: 4 } },
  ...{ out: watched.tensor("bf16", [2, 4, 6, 64]), causal: true, qOffsetInK: 4 },
};
const refusals: readonly Refusal[] = [
  refused("a width without codes", { k: { ...codes(64), bits: 7 } }, "unsupported", "k.bits", 7),
  refused("rows of another size", { k: { ...codes(63), bits: 8 } }, "invalid-argument", "k.packed", 63, 64),
  refused("codes of other slots than V", { k: { ...codes(64, 11), bits: 8 } }, "invalid-argument", "v", 10, 11),
  refused("more keys than slots", { seqLenK: 11 }, "invalid-argument", "seqLenK", 11, 10),
  refused("codes by tokens", { kvLayout: "sequence-major" }, "unsupported", "kvLayout"),
  refused(
    "codes and strides",
    {
      layout: {
        ...{ batch: 2, heads: 4, kvHeads: 2, seqLenQ: 6, headDim: 64 },
        ...Object.fromEntries(["q", "k", "v", "out"].map((name) => [name, { batch: 0, head: 64, token: 256 }])),
      },
      seqLenK: 10,
    },
    "unsupported",
    "layout",
  ),
  refused("a scale factor of 0", { scaleFactorD512: 0 }, "invalid-argument", "scaleFactorD512", 0),
];
testTable("refusals", refusals, ({ spoil, code, argument, says, name }) => {
  using pass = watched.device.pass();
  let error: unknown;
  try {
    untyped(flashAttnPrefill)(pass, { ...valid, ...spoil });
  } catch (thrown) {
    error = thrown;
  }
  expect([name, (error as { code?: string }).code, (error as { argument?: string }).argument]).toEqual([
    name,
    code,
    argument,
  ]);
  for (const word of says) expect(String(error)).toContain(String(word));
  expect(pass.describe()).toEqual([]);
  untyped(flashAttnPrefill)(pass, valid);
  expect(pass.describe().length).toBe(3);
});
