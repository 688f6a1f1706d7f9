import { afterAll, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { Device, type FlashAttnDecodeArgs, flashAttnDecode, type Tensor } from "../../src/index.ts";
import { type CacheFormat, checkDecode, type DecodeCase, DecodeScene, runDecode } from "../helpers/decode.ts";
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { codeFormats, formatName } from "../helpers/quantized.ts";

// Decode attention by products of matrices, which a device takes for halves and codes of small heads where matrices have
// units of their own: the same judgement as of the other kernels, and bits that depend on a row's own keys alone.

const device = openWith({ SOFTMETAL_MATRIX_UNITS: "1" });
afterAll(() => device.dispose());

const [k4, k3, k8] = [
  { bits: 4, packing: "nibble" },
  { bits: 3, packing: "dense" },
  { bits: 8, packing: "byte" },
] as const satisfies readonly CacheFormat[];
const base: DecodeCase = {
  headDim: 128,
  heads: 8,
  kvHeads: 2,
  rows: 1,
  lengths: [600],
  capacity: 640,
  k: k4,
  v: k3,
};

/** What K and V are: few codes, many, values of 16 bits, and values beside codes. */
const kinds: readonly Partial<DecodeCase>[] = [
  {},
  { k: k8, v: k4 },
  { k: "f16", v: "f16" },
  { k: "bf16", v: "bf16" },
  { k: "f16", v: k4 },
  { k: k8, v: "bf16" },
];
const formats: readonly CacheFormat[] = [...codeFormats, "f16", "bf16"];
const nameOf = (format: CacheFormat): string => (typeof format === "string" ? format : formatName(format));

let cases = 0;

/** Checks a case of one kind, and of each where it names none. */
function check(changes: Partial<DecodeCase>): void {
  for (const kind of changes.k ? [{}] : kinds) {
    checkDecode(device, { ...base, ...kind, ...changes });
    cases += 1;
  }
}

/** The bits of the result of a case, of the first of so many sequences. */
function bitsOf(changes: Partial<DecodeCase>, on: Device = device): string {
  const entry = { ...base, ...changes };
  const scene = new DecodeScene(on, entry);
  runDecode(on, scene);
  const [out, lse] = [scene.out, scene.lse].map(({ bytes }) =>
    Buffer.from(bytes.subarray(0, bytes.length / entry.lengths.length)).toString("hex"),
  );
  scene.dispose();
  return `${out} ${lse}`;
}

test.each(formats.flatMap((k, i) => [64, 128].map((headDim) => [nameOf(k), headDim, k, i] as const)))(
  "%s of K with each of V, D = %d",
  (_name, headDim, k, i) => {
    for (const [j, v] of formats.entries()) {
      const [seed, length] = [i * 8 + j, 1 + ((i * 53 + j * 29) % 70)];
      check({ headDim, k, v, seed, lengths: [length], capacity: 72, outDtype: j % 2 === 0 ? "f32" : "f16" });
    }
  },
);

test.each([64, 128])("lengths around the edges of leaves and blocks, D = %d", (headDim) => {
  for (const length of [0, 1, 7, 31, 32, 33, 63, 64, 65, 255, 256, 257, 511, 512, 513, 1025]) {
    check({ headDim, lengths: [length], capacity: Math.max(1, length), seed: length });
    check({ headDim, lengths: [length], capacity: 1100, hasLengths: true, seed: length });
  }
});

test("groups of heads, and rows", () => {
  for (const heads of [1, 3, 4, 5, 8, 20]) {
    for (const rows of [1, 2, 5, 16])
      check({ headDim: 64, heads, kvHeads: 1, rows, lengths: [37], capacity: 40, seed: rows });
  }
});

test("ragged batches, in a line, in rings and in pages", () => {
  const lengths = [0, 33, 300, 1, 257];
  for (const rows of [1, 3]) {
    for (const window of [0, 40]) {
      const entry = { rows, lengths, hasLengths: true, ...(window && { window }) };
      check({ ...entry, capacity: 304 });
      check({ ...entry, capacity: 320, pageTokens: 16 });
      check({ ...entry, capacity: 70, isSliding: true });
    }
  }
});

test("a small ring, wrapped at every offset", () => {
  for (let length = 1; length < 83; length++)
    check({ headDim: 64, isSliding: true, capacity: 40, lengths: [length], seed: length });
});

test("windows, trees, soft caps, sinks and slopes", () => {
  for (const window of [1, 2, 33, 257]) for (const rows of [1, 4]) check({ window, rows });
  for (const treeColumns of [1, 7, 32]) check({ treeColumns, rows: 4, lengths: [300, 45], capacity: 300 });
  for (const softcap of [0.1, 50]) {
    for (const sink of [-1000, 3, 1000]) check({ softcap, sink, hasSlopes: true, rows: 2, alibiDistance: 7 });
  }
});

test("queries from 2^-100 to 2^100, and scores of 300 and more", () => {
  for (const exponent of [-100, -20, 20, 100]) check({ spread: 2 ** exponent, scale: 2 ** -exponent / 11 });
  check({ spread: 30, scale: 1, lengths: [70], capacity: 72 });
});

test.each(kinds)("the bits of a row follow from its own keys alone", (kind) => {
  const common = { ...kind, sink: 1 };
  const expected = bitsOf(common);
  const same = (changes: Partial<DecodeCase>) => expect(bitsOf({ ...common, ...changes })).toBe(expected);
  same({ capacity: 2000 });
  same({ capacity: 2000, hasLengths: true });
  for (const pageTokens of [1, 40, 64]) same({ pageTokens, pageOrder: pageTokens });
  for (const others of [[600], [1, 0, 300]]) same({ lengths: [600, ...others] });
  const window = 290;
  const windowed = bitsOf({ ...kind, window, rows: 3 });
  for (const capacity of [window + 2, 511]) {
    expect(bitsOf({ ...kind, window, rows: 3, isSliding: true, capacity, hasLengths: true })).toBe(windowed);
  }
  using alone = openWith({ SOFTMETAL_MATRIX_UNITS: "1", SOFTMETAL_THREADS: "1" });
  expect(bitsOf(common, alone)).toBe(expected);
});

test.each(kinds)("a row of a call of several, and a head of a group, have the bits that they have alone", (kind) => {
  const scene = new DecodeScene(device, { ...base, ...kind, rows: 5, heads: 4, kvHeads: 1 });
  runDecode(device, scene);
  const [outs, lses] = [scene.out.toFloat32Array(), scene.lse.view()];
  const { headDim } = base;
  const queries = (scene.args.q as Tensor<"f32">).view();
  for (const [heads, row] of [
    [1, 0],
    [1, 3],
    [4, 2],
    [2, 4],
  ] as const) {
    const q = device.tensor("f32", [1, heads, 1, headDim]);
    for (let head = 0; head < heads; head++) {
      const start = (head * 5 + row) * headDim;
      q.view().set(queries.subarray(start, start + headDim), head * headDim);
    }
    const out = device.tensor("f32", [1, heads, 1, headDim]);
    const lse = device.tensor("f32", [1, heads, 1]);
    const { k, v } = scene.args as FlashAttnDecodeArgs;
    using pass = device.pass();
    flashAttnDecode(pass, { q, k, v: v as typeof k, out, lse, seqLen: 600 - 4 + row });
    pass.commitAndWait();
    for (let head = 0; head < heads; head++) {
      const start = (head * 5 + row) * headDim;
      expect(out.view().subarray(head * headDim, (head + 1) * headDim)).toEqual(outs.subarray(start, start + headDim));
      expect(lse.view()[head]).toBe(lses[head * 5 + row] as number);
    }
  }
  scene.dispose();
});

const placed: readonly (readonly [string, number, Partial<DecodeCase>])[] = [
  ...codeFormats.flatMap((format) =>
    [64, 128].map((headDim) => [formatName(format), headDim, { k: format, v: format }] as const),
  ),
  ["4 and 3 bits", 128, { k: k4, v: k3 }],
  ["8 and 4 bits", 128, { k: k8, v: k4 }],
  ["f16", 128, { k: "f16", v: "f16" }],
  ["bf16", 64, { k: "bf16", v: "bf16" }],
  ["f16 and 6 bits", 128, { k: "f16", v: { bits: 6, packing: "dense" } }],
  ["3 bits and f16", 64, { k: k3, v: "f16" }],
];
test.each(placed)("rows of %s that begin at any word of two bytes, D = %d", (_name, headDim, formats) => {
  const scene = new DecodeScene(device, { ...base, headDim, ...formats, lengths: [45], capacity: 50 });
  runDecode(device, scene);
  const expected = Buffer.from(scene.out.bytes).toString("hex");
  const movedRows = <T extends "u8" | "f16">(rows: Tensor<T>, words: number): Tensor<T> => {
    const part = device.tensor(rows.dtype, [rows.length + words]).slice(words, rows.length + words);
    part.bytes.set(rows.bytes);
    return part.reshape(rows.shape) as Tensor<T>;
  };
  const moved = (cache: FlashAttnDecodeArgs["k"]): FlashAttnDecodeArgs["k"] =>
    "packed" in cache ? { ...cache, packed: movedRows(cache.packed, 2) } : movedRows(cache as Tensor<"f16">, 1);
  scene.out.bytes.fill(0);
  using pass = device.pass();
  flashAttnDecode(pass, { ...scene.args, k: moved(scene.args.k), v: moved(scene.args.v as FlashAttnDecodeArgs["k"]) });
  pass.commitAndWait();
  expect(Buffer.from(scene.out.bytes).toString("hex")).toBe(expected);
  scene.dispose();
});

test("which caches take it", () => {
  const kernel = (changes: Partial<DecodeCase>, on: Device = device) => {
    const scene = new DecodeScene(on, { ...base, ...changes });
    using pass = on.pass();
    flashAttnDecode(pass, scene.args);
    const [attending] = pass.describe();
    pass.commitAndWait();
    scene.dispose();
    return attending?.kernel;
  };
  expect(kernel({})).toBe("flash_attn_vec_tq_matrices_d128");
  expect(kernel({ headDim: 64, heads: 2, rows: 3 })).toBe("flash_attn_vec_tq_matrices_d64");
  expect(kernel({ k: "f16", v: "f16" })).toBe("flash_attn_vec_matrices_d128");
  expect(kernel({ k: "f16", v: "f16", headDim: 64 })).toBe("flash_attn_vec_matrices_d64");
  expect(kernel({ k: "f16", v: "bf16" })).toBe("flash_attn_vec_d128_q4");
  expect(kernel({ k: k8 })).toBe("flash_attn_vec_hb_matrices_d128");
  expect(kernel({ v: k8, headDim: 64 })).toBe("flash_attn_vec_hb_matrices_d64");
  expect(kernel({ v: { bits: 5, packing: "byte" } })).toBe("flash_attn_vec_hb_matrices_d128");
  expect(kernel({ k: "f16" })).toBe("flash_attn_vec_hybrid_matrices_d128");
  expect(kernel({ k: "f16", headDim: 64 })).toBe("flash_attn_vec_hybrid_matrices_d64");
  expect(kernel({ v: "f16" })).toBe("flash_attn_vec_hybrid_k_matrices_d128");
  expect(kernel({ k: k8, v: "f16", headDim: 64 })).toBe("flash_attn_vec_hybrid_k_matrices_d64");
  expect(kernel({ k: "bf16" })).toBe("flash_attn_vec_hybrid_bf16_matrices_d128");
  expect(kernel({ v: "bf16" })).toBe("flash_attn_vec_hybrid_k_bf16_matrices_d128");
  expect(kernel({ k: "bf16", v: "bf16" })).toBe("flash_attn_vec_bf16_matrices_d128");
  expect(kernel({ k: "f32" })).toBe("flash_attn_vec_hybrid_d128_q4");
  expect(kernel({ headDim: 112 })).toBe("flash_attn_vec_tq_d112_q4");
  using without = openWith({ SOFTMETAL_MATRIX_UNITS: "0" });
  expect(kernel({}, without)).toBe("flash_attn_vec_tq_d128_q4");
  using usual = Device.open();
  if (!isOtherGpu) expect(kernel({}, usual)).toBe("flash_attn_vec_tq_d128_q4");
});

test("all cases ran", () => expect(cases).toBe(1424));
