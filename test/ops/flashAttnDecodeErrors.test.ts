import { display } from "../../src/checks.ts";
import { type DType, flashAttnDecode, mergeAttention, type Tensor } from "../../src/index.ts";
import { testTable } from "../helpers/table.ts";
import { type OpRefusal, refusedBy, untyped, WatchedTensors } from "../helpers/watched.ts";

// Refusals of decode attention and of the merge of parts.

const scene = new WatchedTensors();
const tensor = <T extends DType>(dtype: T, ...shape: number[]): Tensor<T> => scene.tensor(dtype, shape);

const ops = { flashAttnDecode: untyped(flashAttnDecode), mergeAttention: untyped(mergeAttention) } as const;
type DecodeOp = keyof typeof ops;
const decode = (...args: Parameters<typeof refusedBy<DecodeOp>> extends [unknown, ...infer Rest] ? Rest : never) =>
  refusedBy<DecodeOp>("flashAttnDecode", ...args);
const merge = (...args: Parameters<typeof decode>) => refusedBy<DecodeOp>("mergeAttention", ...args);

const out = tensor("f32", 2, 4, 2, 64);
const lse = tensor("f32", 2, 4, 2);
const k = tensor("f16", 2, 2, 20, 64);
const codes = (bytes: number, norms = 1, capacity = 20) => ({
  packed: tensor("u8", 2, 2, capacity, bytes),
  norms: tensor("f32", 2, 2, capacity, norms),
});
const values = tensor("f16", 2, 2, 20, 64);
const partOfV = values.reshape([80, 64]).slice(0, 16).reshape([2, 4, 2, 64]);
/** The first elements of `out`. */
const floatsOfOut = (count: number) => out.reshape([out.length]).slice(0, count);
const odd = tensor("u8", 2 * 2 * 20 * 32 + 1);
const [merged, mergedLse] = [tensor("f32", 6, 8), tensor("f32", 6)];
const part = () => ({ out: tensor("f16", 6, 8), lse: tensor("f32", 6) });

/** Arguments for D = 512 with codes of as many norms. */
const wideWith = (norms: number) => ({
  q: tensor("f32", 2, 4, 2, 512),
  k: { ...codes(256, norms), bits: 4 },
  v: tensor("f16", 2, 2, 20, 512),
  out: tensor("f32", 2, 4, 2, 512),
});

const valid = {
  flashAttnDecode: { q: tensor("f32", 2, 4, 2, 64), k, v: tensor("bf16", 2, 2, 20, 64), out, lse, seqLen: 18 },
  mergeAttention: { parts: [part(), part()], out: merged, lse: mergedLse },
};
const written = { flashAttnDecode: [out, lse], mergeAttention: [merged, mergedLse] };

const cases: readonly OpRefusal<DecodeOp>[] = [
  decode(
    "17 rows",
    { q: tensor("f32", 2, 4, 17, 64), out: tensor("f32", 2, 4, 17, 64), lse: undefined },
    "unsupported",
    "q",
    17,
    16,
  ),
  decode("no row", { q: tensor("f32", 2, 4, 2, 64).slice(0, 0), out, lse: undefined }, "invalid-argument", "out", 0, 2),
  decode(
    "a head size without a kernel",
    {
      q: tensor("f32", 2, 4, 2, 48),
      k: tensor("f16", 2, 2, 20, 48),
      v: tensor("f16", 2, 2, 20, 48),
      out: tensor("f32", 2, 4, 2, 48),
    },
    "unsupported",
    "q",
    48,
    576,
  ),
  decode(
    "heads that K does not divide",
    { k: tensor("f16", 2, 3, 20, 64), v: tensor("f16", 2, 3, 20, 64) },
    "invalid-argument",
    "q",
    4,
    3,
  ),
  decode("K of another head size", { k: tensor("f16", 2, 2, 20, 80) }, "invalid-argument", "k", 80, 64),
  decode(
    "K of another batch",
    { k: tensor("f16", 3, 2, 20, 64), v: tensor("f16", 3, 2, 20, 64) },
    "invalid-argument",
    "k",
    3,
    2,
  ),
  decode("V shorter than K", { v: tensor("f16", 2, 2, 19, 64) }, "invalid-argument", "v", 19, 20),
  decode("K of another type", { k: tensor("u8", 2, 2, 20, 64) }, "unsupported", "k", "u8", "f32, f16 or bf16"),
  decode("q of another type", { q: tensor("i32", 2, 4, 2, 64) }, "unsupported", "q", "i32"),
  decode("out of another type", { out: tensor("u8", 2, 4, 2, 64) }, "unsupported", "out", "u8"),
  decode("out of another shape", { out: tensor("f32", 2, 4, 1, 64) }, "invalid-argument", "out", 1, 2),
  decode("lse of another shape", { lse: tensor("f32", 2, 4, 3) }, "invalid-argument", "lse", 3, 2),
  decode("lse of another type", { lse: tensor("f16", 2, 4, 2) }, "unsupported", "lse", "f16", "f32"),
  decode("no V", { v: undefined }, "invalid-argument", "v", "Tensor"),
  decode("a length beyond the capacity", { seqLen: 21 }, "overflow", "seqLen", 21, 20),
  decode("both forms of lengths", { seqLens: tensor("i32", 2) }, "invalid-argument", "seqLen", "seqLens"),
  decode("no length", { seqLen: undefined }, "invalid-argument", "seqLen", "seqLens"),
  decode(
    "lengths of another type",
    { seqLen: undefined, seqLens: tensor("u32", 2) },
    "unsupported",
    "seqLens",
    "u32",
    "i32",
  ),
  decode(
    "lengths of another batch",
    { seqLen: undefined, seqLens: tensor("i32", 3) },
    "invalid-argument",
    "seqLens",
    3,
    2,
  ),
  ...[0, -1, 1.5, Number.NaN, "4"].map((window) =>
    decode(`window ${display(window)}`, { window }, "invalid-argument", "window", display(window)),
  ),
  ...[0, -1, Number.NaN, Number.POSITIVE_INFINITY, "1", null].flatMap((value) => [
    decode(`scale ${display(value)}`, { scale: value }, "invalid-argument", "scale", display(value)),
    decode(`softcap ${display(value)}`, { softcap: value }, "invalid-argument", "softcap", display(value)),
  ]),
  decode("sinks of another length", { sinks: tensor("f32", 3) }, "invalid-argument", "sinks", 3, 4),
  decode("sinks of another rank", { sinks: tensor("f32", 1, 4) }, "invalid-argument", "sinks", "[H]", "[1,4]"),
  decode("sinks of another type", { sinks: tensor("f16", 4) }, "unsupported", "sinks", "f16", "f32"),
  decode("slopes of another type", { alibiSlopes: tensor("f16", 4) }, "unsupported", "alibiSlopes", "f16", "f32"),
  decode("a tree of another type", { treeMask: tensor("i32", 2, 2) }, "unsupported", "treeMask", "i32", "u32"),
  decode("a tree of no columns", { treeMask: tensor("u32", 2, 2), treeColumns: 0 }, "invalid-argument", "treeMask", 0),
  ...[-1, 1.5, Number.NaN, 2 ** 32, "4", null].map((seqLen) =>
    decode(`seqLen ${display(seqLen)}`, { seqLen }, "invalid-argument", "seqLen", display(seqLen)),
  ),
  decode("a scale factor of 0", { ...wideWith(2), scaleFactorD512: 0 }, "invalid-argument", "scaleFactorD512", 0),
  decode("a misspelt name", { sink: tensor("f32", 4) }, "invalid-argument", "sink", "sinks"),
  decode("slopes of another length", { alibiSlopes: tensor("f32", 5) }, "invalid-argument", "alibiSlopes", 5, 4),
  decode("a distance without slopes", { alibiDistance: 3 }, "invalid-argument", "alibiDistance", "alibiSlopes"),
  decode("a distance of -1", { alibiSlopes: tensor("f32", 4), alibiDistance: -1 }, "invalid-argument", "alibiDistance"),
  decode(
    "a tree of 33 columns",
    { treeMask: tensor("u32", 2, 2), treeColumns: 33 },
    "invalid-argument",
    "treeColumns",
    33,
    32,
  ),
  decode("columns without a tree", { treeColumns: 3 }, "invalid-argument", "treeMask", 3),
  decode("a tree of another shape", { treeMask: tensor("u32", 2, 3) }, "invalid-argument", "treeMask", 3, 2),
  decode(
    "out over K",
    { out: k.slice(0, 1).reshape([2, 2, 10, 64]), q: tensor("f32", 2, 2, 10, 64), lse: undefined },
    "invalid-argument",
    "out",
    "overlap",
    "k",
  ),
  decode("out over q", { q: out }, "invalid-argument", "out", "overlap", "q"),
  decode("out over V", { v: values, out: partOfV }, "invalid-argument", "out", "overlap", "v"),
  decode("out over sinks", { sinks: floatsOfOut(4) }, "invalid-argument", "out", "overlap", "sinks"),
  decode("out over slopes", { alibiSlopes: floatsOfOut(4) }, "invalid-argument", "out", "overlap", "alibiSlopes"),
  decode(
    "out over norms",
    { v: { ...codes(32), norms: floatsOfOut(80).reshape([2, 2, 20, 1]), bits: 4 } },
    "invalid-argument",
    "out",
    "overlap",
    "v.norms",
  ),
  decode("lse over out", { lse: floatsOfOut(16).reshape([2, 4, 2]) }, "invalid-argument", "lse", "overlap", "out"),
  decode("lse over sinks", { sinks: lse.reshape([16]).slice(0, 4) }, "invalid-argument", "lse", "overlap", "sinks"),
  decode("codes of a width without a codebook", { k: { ...codes(56), bits: 7 } }, "unsupported", "k.bits", 7),
  decode("codes of another packing", { k: { ...codes(32), bits: 4, packing: "dense" } }, "unsupported", "k.packing", 4),
  decode("codes of another width", { k: { ...codes(32), bits: 8 } }, "invalid-argument", "k.packed", 32, 64),
  decode("dense codes taken for bytes", { k: { ...codes(40), bits: 5 } }, "invalid-argument", "k.packed", 40, 64),
  decode(
    "bytes taken for dense codes",
    { v: { ...codes(64), bits: 6, packing: "dense" } },
    "invalid-argument",
    "v.packed",
    64,
    48,
  ),
  decode("codes of K shorter than V", { k: { ...codes(32, 1, 19), bits: 4 } }, "invalid-argument", "v", 20, 19),
  decode("one norm at D = 512", wideWith(1), "invalid-argument", "k.norms", 1, 2),
  decode(
    "norms of another capacity",
    { v: { packed: tensor("u8", 2, 2, 20, 32), norms: tensor("f32", 2, 2, 19, 1), bits: 4 } },
    "invalid-argument",
    "v.norms",
    19,
    20,
  ),
  decode(
    "codes at an odd offset",
    { v: { packed: odd.slice(1, odd.length).reshape([2, 2, 20, 32]), norms: tensor("f32", 2, 2, 20, 1), bits: 4 } },
    "invalid-argument",
    "v",
    1,
    2,
  ),
  decode("a misspelt name of a cache", { k: { ...codes(32), bit: 4 } }, "invalid-argument", "k.bit", "bits"),
  decode(
    "codes with D = 576",
    {
      q: tensor("f32", 2, 4, 2, 576),
      k: { ...codes(288, 2.25 * 4), bits: 4 },
      v: undefined,
      out: tensor("f32", 2, 4, 2, 512),
    },
    "unsupported",
    "headDim",
    576,
  ),
  decode(
    "f32 with D = 576",
    { q: tensor("f32", 2, 4, 2, 576), k: tensor("f32", 2, 2, 20, 576), v: undefined, out: tensor("f32", 2, 4, 2, 512) },
    "unsupported",
    "k",
    "f32",
    576,
  ),
  decode(
    "V with D = 576",
    { q: tensor("f32", 2, 4, 2, 576), k: tensor("f16", 2, 2, 20, 576), out: tensor("f32", 2, 4, 2, 512) },
    "invalid-argument",
    "v",
    576,
    512,
  ),
  decode("a table of another batch", { blockTable: tensor("i32", 3, 1) }, "invalid-argument", "blockTable", 3, 2),
  decode("a table of another type", { blockTable: tensor("u32", 2, 1) }, "unsupported", "blockTable", "u32", "i32"),
  decode(
    "a table of another rank",
    { blockTable: tensor("i32", 2, 1, 1) },
    "invalid-argument",
    "blockTable",
    "[maxPages]",
    "[2,1,1]",
  ),
  decode("a table without pages", { blockTable: scene.empty("i32", [2, 0]) }, "invalid-argument", "k", 0),
  decode("a ring of pages", { blockTable: tensor("i32", 2, 1), isSliding: true }, "unsupported", "isSliding"),
  decode("a length beyond the pages", { blockTable: tensor("i32", 2, 2), seqLen: 41 }, "overflow", "seqLen", 41, 40),
  decode("another device", { k: scene.tensor("f16", [2, 2, 20, 64], scene.otherDevice) }, "invalid-handle", "k"),
  decode("a disposed tensor", { sinks: scene.disposed("f32", [4]) }, "disposed", "sinks"),
  merge("no part", { parts: [] }, "invalid-argument", "parts", 0, 8),
  merge("9 parts", { parts: Array.from({ length: 9 }, part) }, "invalid-argument", "parts", 9, 8),
  merge("no list", { parts: part() }, "invalid-argument", "parts"),
  merge(
    "a part of another shape",
    { parts: [part(), { ...part(), out: tensor("f16", 6, 9) }] },
    "invalid-argument",
    "parts.1.out",
    9,
    8,
  ),
  merge(
    "logarithms of another shape",
    { parts: [{ ...part(), lse: tensor("f32", 5) }] },
    "invalid-argument",
    "parts.0.lse",
    5,
    6,
  ),
  merge(
    "parts in two types",
    { parts: [part(), { ...part(), out: tensor("bf16", 6, 8) }] },
    "unsupported",
    "parts.1.out",
    "bf16",
    "f16",
  ),
  merge("logarithms in f16", { parts: [{ ...part(), lse: tensor("f16", 6) }] }, "unsupported", "parts.0.lse", "f16"),
  merge("out of another shape", { out: tensor("f32", 6, 9), lse: undefined }, "invalid-argument", "parts.0.out", 9, 8),
  merge(
    "out without rows",
    { out: tensor("f32", 8), lse: undefined },
    "invalid-argument",
    "out",
    "[..., rows, D]",
    "[8]",
  ),
  merge("out of another type", { out: tensor("u8", 6, 8) }, "unsupported", "out", "u8"),
  merge("lse of another type", { lse: tensor("f16", 6) }, "unsupported", "lse", "f16", "f32"),
  merge("lse of another shape", { lse: tensor("f32", 5) }, "invalid-argument", "lse", 5, 6),
  merge("lse over out", { lse: merged.reshape([48]).slice(0, 6) }, "invalid-argument", "lse", "overlap", "out"),
  merge("out over a part", { parts: [{ out: merged, lse: tensor("f32", 6) }] }, "invalid-argument", "out", "overlap"),
  merge("lse over a part's", { parts: [{ ...part(), lse: mergedLse }] }, "invalid-argument", "lse", "overlap"),
  merge("a misspelt name of a part", { parts: [{ ...part(), lsf: 1 }] }, "invalid-argument", "parts.0.lsf", "lse"),
];

testTable("refused", cases, (refusal) => {
  scene.checkRefusal(ops[refusal.op], valid[refusal.op], written[refusal.op], refusal);
});
