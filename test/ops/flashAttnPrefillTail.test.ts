import { afterAll, describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { packMAFlashAttnPrefillArgs, structSizes } from "../../src/ffi/generated/structs.ts";
import {
  type AttentionDType,
  Device,
  type FlashAttnPrefillArgs,
  flashAttnPrefill,
  hadamardQuantizeKvSeq,
  kvCacheBytes,
} from "../../src/index.ts";
import type { CodeFormat } from "../../src/reference/index.ts";
import { dtypeCodes, NativeScene, noAttentionOptions, statusCodes, tensorRecord } from "../helpers/abi.ts";
import { judgeOptions } from "../helpers/prefillJudgement.ts";
import { type OptionCase, OptionScene, rowOf, runOptions, type TailCase } from "../helpers/prefillOptions.ts";
import { normalDraws } from "../helpers/random.ts";
import { testTable } from "../helpers/table.ts";
import { type Fields, type Refusal, refused, untyped, WatchedTensors } from "../helpers/watched.ts";

// Prefill over a cache whose newest keys lie in a tail: which keys a row finds where, exactly, and what is refused.

const device = Device.open();
afterAll(() => device.dispose());

const k8: CodeFormat = { bits: 8, packing: "byte" };
const v4: CodeFormat = { bits: 4, packing: "nibble" };
const dense3: CodeFormat = { bits: 3, packing: "dense" };
const formats: readonly (readonly [CodeFormat | undefined, CodeFormat | undefined])[] = [
  [k8, v4],
  [undefined, v4],
  [dense3, undefined],
  [undefined, undefined],
];

/** Tails of a sequence of `keys` with `rows` new ones: from the smallest block to one that no key has left yet. */
const tails: readonly TailCase[] = [
  { slots: 96, tokens: 8, block: 8 },
  { slots: 64, tokens: 5, block: 5 },
  { slots: 67, tokens: 1, block: 1 },
  { slots: 90, tokens: 40, block: 32 },
  { slots: 70, tokens: 33, block: 32, quantized: 32 },
  { slots: 61, tokens: 16, block: 16, quantized: 19 },
  { slots: 128, tokens: 128, block: 32 },
];
const sequences = [
  { rows: 35, keys: 80 },
  { rows: 50, keys: 50 },
  { rows: 1, keys: 61 },
  { rows: 17, keys: 77 },
];
const kinds: readonly Partial<OptionCase>[] = [
  { storage: "linear" },
  { storage: "ring", capacity: 85, window: 31 },
  { storage: "pages", pageTokens: 7 },
  { storage: "linear", window: 9 },
  { storage: "linear", window: 1 },
  { storage: "pages", pageTokens: 16, window: 30 },
];

function casesOf(headDim: number, dtype: AttentionDType, pairs: typeof formats): OptionCase[] {
  const row = rowOf(headDim, dtype);
  const cases: OptionCase[] = [];
  for (const [p, [formatK, formatV]] of pairs.entries()) {
    for (const [t, tail] of tails.entries()) {
      for (const [i, kind] of kinds.entries()) {
        if (kind.storage === "pages" && (formatK === undefined) !== (formatV === undefined)) continue;
        // A row that sees one code alone is that code, which may round to the other neighbour.
        if (kind.window === 1 && tail.quantized !== undefined) continue;
        const n = p + t + i;
        const scores = { ...(n % 2 && { softcap: 4 }), ...(n % 3 === 1 && { sink: 1 }), hasSlopes: n % 4 === 1 };
        const codes = { ...(formatK && { formatK }), ...(formatV && { formatV }) };
        const rest = { heads: 4, kvHeads: 2, causal: true, isPacked: false, isTokenMajor: n % 2 === 0 };
        const sequence = sequences[(t + i) % 4] as (typeof sequences)[number];
        const hasLse = n % 3 !== 2;
        cases.push({
          row,
          ...rest,
          ...scores,
          ...codes,
          hasLse,
          tail,
          seed: n + 1,
          ...kind,
          sequences: [sequence],
        } as OptionCase);
      }
    }
  }
  return cases;
}

function failuresOf(cases: readonly OptionCase[]): string[] {
  return cases.flatMap((entry, i) => {
    const scene = new OptionScene(device, entry);
    runOptions(device, scene);
    const failure = judgeOptions(scene);
    scene.dispose();
    return failure === undefined ? [] : [`${i}: ${failure}`];
  });
}

const timeout = 120_000;

describe("each row's own keys before and in the tail, against the float64 oracle", () => {
  test.each([
    [64, "bf16", 132],
    [64, "f16", 132],
  ] as const)(
    "D = %d, %s, dense and codes",
    (headDim, dtype, count) => {
      const cases = casesOf(headDim, dtype, formats);
      expect(failuresOf(cases)).toEqual([]);
      expect(cases.length).toBe(count);
    },
    timeout,
  );
  test.each([
    [80, 10],
    [96, 10],
    [112, 10],
    [128, 10],
    [192, 10],
    [256, 10],
    [512, 10],
  ])(
    "D = %d, f16, 8 and 4 bits",
    (headDim, count) => {
      const cases = casesOf(headDim, "f16", formats.slice(0, 1)).filter((_, i) => i % 4 === headDim % 3);
      expect(failuresOf(cases)).toEqual([]);
      expect(cases.length).toBe(count);
    },
    timeout,
  );
});

test("rows beyond the last key find all keys in the codes, whatever the device's scratch had", () => {
  const [headDim, keys, rows] = [64, 32, 48];
  const draw = normalDraws(5);
  const values = (count: number) => Float32Array.from({ length: count * headDim }, draw);
  const { bytesPerRow } = kvCacheBytes({ headDim, nKvHeads: 1, capacity: keys, bits: 8 });
  const codes = () => ({
    packed: device.tensor("u8", [1, keys, bytesPerRow]),
    norms: device.tensor("f32", [1, keys, 1]),
    bits: 8 as const,
  });
  const q = device.tensor("bf16", [1, rows, headDim]).set(values(rows));
  /** With a tail of 8 tokens and more, in blocks of 8, or without. */
  const attend = (source: Float32Array, tail?: FlashAttnPrefillArgs["tail"]) => {
    const src = device.tensor("f32", [keys, 1, headDim]).set(source);
    const [k, v, out] = [codes(), codes(), device.tensor("bf16", [1, rows, headDim])];
    using pass = device.pass();
    hadamardQuantizeKvSeq(pass, { k: { src, ...k }, v: { src, ...v }, writePosStart: 0 });
    flashAttnPrefill(pass, { q, k, v, out, causal: true, ...(tail && { tail }) });
    pass.commitAndWait();
    return out.toFloat32Array();
  };
  const slots = () => device.tensor("bf16", [32, 1, headDim]);
  const tail = { k: slots(), v: slots(), tokens: 8, block: 8 };
  const source = values(keys);
  const expected = attend(source);
  for (const before of [0, 100]) {
    attend(new Float32Array(source.length).fill(before));
    // The last of these rows have 8 tokens and more behind the last key.
    const first = 39 * headDim;
    expect(attend(source, tail).subarray(first)).toEqual(expected.subarray(first));
  }
});

/** A cache of 100 tokens, dense, and a tail that has the same keys. */
function twice(headDim: number, tail: Omit<TailCase, "slots">) {
  const entry: OptionCase = {
    ...{ row: rowOf(headDim, "f16"), heads: 4, kvHeads: 2, sequences: [{ rows: 100, keys: 100 }], storage: "linear" },
    ...{ isPacked: false, causal: true, hasLse: true, seed: 5 },
  };
  const scene = new OptionScene(device, entry);
  const { k, v } = scene.args as { k: FlashAttnPrefillArgs["q"]; v: FlashAttnPrefillArgs["q"] };
  const [slots, capacity] = [100, k.shape[2] as number];
  const tokens = (from: typeof k) => {
    const values = from.toFloat32Array();
    const at = (i: number) => {
      const [slot, head, d] = [Math.floor(i / (2 * headDim)), Math.floor(i / headDim) % 2, i % headDim];
      return values[(head * capacity + slot) * headDim + d] as number;
    };
    return device
      .tensor("f16", [slots, 2, headDim])
      .set(Float32Array.from({ length: slots * 2 * headDim }, (_, i) => at(i)));
  };
  return { scene, tail: { k: tokens(k), v: tokens(v), ...tail } };
}

describe("exact", () => {
  test.each([64, 256, 512])("the keys of a tail cut at whole tiles give the bits of one line, D = %d", (headDim) => {
    const { scene, tail } = twice(headDim, { tokens: 40, block: 32 });
    runOptions(device, scene);
    const [bits, logarithms] = [scene.bitsOfSequence(0), scene.logarithmsOfSequence(0)];
    runOptions(device, scene, { tail });
    expect(scene.bitsOfSequence(0)).toEqual(bits);
    expect(scene.logarithmsOfSequence(0)).toEqual(logarithms);
  });

  test.each([64, 512])("a prompt in chunks has the bits of the whole, D = %d", (headDim) => {
    const { scene, tail } = twice(headDim, { tokens: 11, block: 5 });
    runOptions(device, scene, { tail });
    const whole = scene.bitsOfSequence(0).slice();
    const { q, out } = scene.args;
    const chunk = (x: typeof q, from: number, to: number) => {
      const values = x.toFloat32Array();
      const rows = to - from;
      const part = device.tensor("f16", [1, 4, rows, headDim]);
      return part.set(
        Float32Array.from({ length: part.length }, (_, i) => {
          const [head, rest] = [Math.floor(i / (rows * headDim)), i % (rows * headDim)];
          return values[(head * 100 + from) * headDim + rest] as number;
        }),
      );
    };
    const bits = new Uint16Array(whole.length);
    const cuts = [0, 1, 18, 50, 83, 100];
    for (const [i, from] of cuts.slice(0, -1).entries()) {
      const to = cuts[i + 1] as number;
      const part = chunk(out, from, to);
      using pass = device.pass();
      flashAttnPrefill(pass, {
        ...{ ...scene.args, tail, q: chunk(q, from, to), out: part, qOffsetInK: from, seqLenK: to },
        lse: device.tensor("f32", [1, 4, to - from]),
      });
      pass.commitAndWait();
      const found = new Uint16Array(part.view().buffer, part.view().byteOffset, part.length);
      for (let head = 0; head < 4; head++) {
        const rows = (to - from) * headDim;
        bits.set(found.subarray(head * rows, (head + 1) * rows), (head * 100 + from) * headDim);
      }
    }
    expect(bits).toEqual(whole);
  });
});

describe("refusals", () => {
  const scene = new WatchedTensors();
  const f16 = (...shape: number[]) => scene.tensor("f16", shape);
  const tail = { k: f16(40, 2, 64), v: f16(40, 2, 64), tokens: 8, block: 8 };
  const valid = {
    ...{ q: f16(1, 4, 20, 64), k: f16(1, 2, 60, 64), v: f16(1, 2, 60, 64), out: f16(1, 4, 20, 64) },
    ...{ causal: true, qOffsetInK: 40, tail },
  };
  const change = (part: Fields) => ({ tail: { ...tail, ...part } });
  const cases: readonly Refusal[] = [
    refused("no object", { tail: 3 }, "invalid-argument", "tail"),
    refused("an unknown name", change({ size: 3 }), "invalid-argument", "tail.size"),
    refused("keys alone", change({ v: undefined }), "invalid-argument", "tail.v"),
    refused("keys of two axes", change({ k: f16(40, 128) }), "invalid-argument", "tail.k", "40,128"),
    refused("keys of bf16", change({ k: scene.tensor("bf16", [40, 2, 64]) }), "unsupported", "tail.k", "bf16", "f16"),
    refused("values of f32", change({ v: scene.tensor("f32", [40, 2, 64]) }), "unsupported", "tail.v", "f32", "f16"),
    refused("keys of other heads", change({ k: f16(40, 3, 64) }), "invalid-argument", "tail.k", 3, 2),
    refused("values of another size", change({ v: f16(40, 2, 32) }), "invalid-argument", "tail.v", 32, 64),
    refused("fewer values than keys", change({ v: f16(39, 2, 64) }), "invalid-argument", "tail.v", 39, 40),
    refused(
      "no slots",
      change({ k: scene.empty("f16", [0, 2, 64]), v: scene.empty("f16", [0, 2, 64]) }),
      "invalid-argument",
      "tail.k",
      0,
      1,
    ),
    ...[-1, 1.5, "8", undefined].flatMap((value) =>
      (["tokens", "block"] as const).map((name) =>
        refused(`${name} ${value}`, change({ [name]: value }), "invalid-argument", `tail.${name}`),
      ),
    ),
    ...(["tokens", "block"] as const).flatMap((name) => [
      refused(`${name} 0`, change({ [name]: 0 }), "invalid-argument", `tail.${name}`, 0, 1),
      refused(`${name} 2^30 + 1`, change({ [name]: 2 ** 30 + 1 }), "invalid-argument", `tail.${name}`, 2 ** 30),
      refused(`${name} 2^31`, change({ [name]: 2 ** 31 }), "overflow", `tail.${name}`, 2 ** 31),
    ]),
    refused("quantized -1", change({ quantized: -1 }), "invalid-argument", "tail.quantized", -1),
    refused(
      "a slot too few",
      change({ k: f16(27, 2, 64), v: f16(27, 2, 64) }),
      "invalid-argument",
      "tail.k",
      27,
      32,
      59,
    ),
    refused("no causal", { causal: false }, "invalid-argument", "tail.k", "causal"),
    refused("a mask", { mask: scene.tensor("bool", [20, 60]) }, "unsupported", "mask", "tail.k"),
    refused(
      "two sequences",
      { q: f16(2, 4, 20, 64), k: f16(2, 2, 60, 64), v: f16(2, 2, 60, 64), out: f16(2, 4, 20, 64) },
      "unsupported",
      "tail.k",
      2,
    ),
    refused(
      "lengths",
      { qOffsetInK: undefined, seqLens: scene.tensor("i32", [1]) },
      "unsupported",
      "tail.k",
      "seqLens",
    ),
    refused("an output in it", { out: tail.k.reshape([1, 4, 20, 64]) }, "invalid-argument", "out", "tail.k"),
  ];
  testTable("refuses", cases, (refusal) => scene.checkRefusal(untyped(flashAttnPrefill), valid, [valid.out], refusal));
  test("and takes what is just enough", () => {
    using pass = device.pass();
    const f = (...shape: number[]) => device.tensor("f16", shape);
    flashAttnPrefill(pass, {
      ...{ q: f(1, 4, 20, 64), k: f(1, 2, 60, 64), v: f(1, 2, 60, 64), out: f(1, 4, 20, 64), causal: true },
      ...{ qOffsetInK: 40, tail: { k: f(28, 2, 64), v: f(28, 2, 64), tokens: 8, block: 8 } },
    });
    pass.commitAndWait();
    expect(pass.describe().length).toBe(1);
  });
});

describe("by the C ABI", () => {
  const native = new NativeScene();
  afterAll(() => native.close());
  const tensor = (dtype: keyof typeof dtypeCodes, elements: number) =>
    tensorRecord(native.buffer(2 * elements).handle, dtypeCodes[dtype], 0, 2 * elements);
  const rows = (count: number) => tensor("f16", 64 * count);
  const strides = [0, 0, 64] as const;
  const record = {
    ...{ q: rows(12), k: rows(20), v: rows(20), out: rows(12), mask: undefined, tileClasses: undefined },
    ...{ maskParams: undefined, nKvHeads: 1, causal: 1, ...noAttentionOptions },
    params: {
      ...{ B: 1, H: 1, D: 64, qL: 12, kL: 20, scale: 1, softcapping: 1, qL_off: 8 },
      ...{ Q_strides: strides, K_strides: strides, V_strides: strides, O_strides: strides },
    },
    ...{ tailK: rows(16), tailV: rows(16), tail: { slots: 16, tokens: 4, block: 2, quantized: 0 } },
  };
  const send = (spoil: object, tail: object) => {
    const block = new Block(structSizes.MAFlashAttnPrefillArgs);
    packMAFlashAttnPrefillArgs(block, 0, { ...record, ...spoil, tail: { ...record.tail, ...tail } } as typeof record);
    return native.native.ma_flash_attn_prefill(native.pass(), block.bytes);
  };
  test.each([
    ["valid", {}, {}, "ok"],
    ["keys alone", { tailV: undefined }, {}, "invalidArgument"],
    ["values alone", { tailK: undefined }, {}, "invalidArgument"],
    ["keys too short", { tailK: rows(15) }, {}, "bufferTooSmall"],
    ["values too short", { tailV: rows(15) }, {}, "bufferTooSmall"],
    ["no slots", {}, { slots: 0 }, "invalidArgument"],
    ["slots below 0", {}, { slots: -16 }, "invalidArgument"],
    ["the most slots there are", {}, { slots: 2 ** 31 - 1 }, "invalidArgument"],
    ["2^30 slots", {}, { slots: 2 ** 30 }, "bufferTooSmall"],
    ["no block", {}, { block: 0 }, "invalidArgument"],
    ["the smallest numbers", {}, { tokens: -(2 ** 31), block: -(2 ** 31), quantized: -(2 ** 31) }, "invalidArgument"],
    ["as many tokens as are counted", {}, { tokens: 2 ** 30 }, "invalidArgument"],
    ["all quantized", {}, { quantized: 2 ** 30 }, "ok"],
    ["packed keys", { packedKeys: 1 }, {}, "invalidArgument"],
    ["no tail, and its numbers are not read", { tailK: undefined, tailV: undefined }, { slots: -1, block: 0 }, "ok"],
  ] as const)("%s", (_, spoil, tail, code) => {
    expect(send(spoil, tail)).toBe(statusCodes[code]);
  });
});
