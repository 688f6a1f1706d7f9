import { display } from "../../src/checks.ts";
import { type DType, flashAttnDecode, type Tensor } from "../../src/index.ts";
import { testTable } from "../helpers/table.ts";
import { refused, untyped, WatchedTensors } from "../helpers/watched.ts";

// Refusals of decode attention.

const scene = new WatchedTensors();
const tensor = <T extends DType>(dtype: T, ...shape: number[]): Tensor<T> => scene.tensor(dtype, shape);

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

/** Arguments for D = 512 with codes of as many norms. */
const wideWith = (norms: number) => ({
  q: tensor("f32", 2, 4, 2, 512),
  k: { ...codes(256, norms), bits: 4 },
  v: tensor("f16", 2, 2, 20, 512),
  out: tensor("f32", 2, 4, 2, 512),
});

const valid = { q: tensor("f32", 2, 4, 2, 64), k, v: tensor("bf16", 2, 2, 20, 64), out, lse, seqLen: 18 };

const cases = [
  refused(
    "17 rows",
    { q: tensor("f32", 2, 4, 17, 64), out: tensor("f32", 2, 4, 17, 64), lse: undefined },
    "unsupported",
    "q",
    17,
    16,
  ),
  refused(
    "no row",
    { q: tensor("f32", 2, 4, 2, 64).slice(0, 0), out, lse: undefined },
    "invalid-argument",
    "out",
    0,
    2,
  ),
  refused(
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
  refused(
    "heads that K does not divide",
    { k: tensor("f16", 2, 3, 20, 64), v: tensor("f16", 2, 3, 20, 64) },
    "invalid-argument",
    "q",
    4,
    3,
  ),
  refused("K of another head size", { k: tensor("f16", 2, 2, 20, 80) }, "invalid-argument", "k", 80, 64),
  refused(
    "K of another batch",
    { k: tensor("f16", 3, 2, 20, 64), v: tensor("f16", 3, 2, 20, 64) },
    "invalid-argument",
    "k",
    3,
    2,
  ),
  refused("V shorter than K", { v: tensor("f16", 2, 2, 19, 64) }, "invalid-argument", "v", 19, 20),
  refused("K of another type", { k: tensor("u8", 2, 2, 20, 64) }, "unsupported", "k", "u8", "f32, f16 or bf16"),
  refused("q of another type", { q: tensor("i32", 2, 4, 2, 64) }, "unsupported", "q", "i32"),
  refused("out of another type", { out: tensor("u8", 2, 4, 2, 64) }, "unsupported", "out", "u8"),
  refused("out of another shape", { out: tensor("f32", 2, 4, 1, 64) }, "invalid-argument", "out", 1, 2),
  refused("lse of another shape", { lse: tensor("f32", 2, 4, 3) }, "invalid-argument", "lse", 3, 2),
  refused("lse of another type", { lse: tensor("f16", 2, 4, 2) }, "unsupported", "lse", "f16", "f32"),
  refused("no V", { v: undefined }, "invalid-argument", "v", "Tensor"),
  refused("a length beyond the capacity", { seqLen: 21 }, "overflow", "seqLen", 21, 20),
  refused("both forms of lengths", { seqLens: tensor("i32", 2) }, "invalid-argument", "seqLen", "seqLens"),
  refused("no length", { seqLen: undefined }, "invalid-argument", "seqLen", "seqLens"),
  refused(
    "lengths of another type",
    { seqLen: undefined, seqLens: tensor("u32", 2) },
    "unsupported",
    "seqLens",
    "u32",
    "i32",
  ),
  refused(
    "lengths of another batch",
    { seqLen: undefined, seqLens: tensor("i32", 3) },
    "invalid-argument",
    "seqLens",
    3,
    2,
  ),
  ...[0, -1, 1.5, Number.NaN, "4"].map((window) =>
    refused(`window ${display(window)}`, { window }, "invalid-argument", "window", display(window)),
  ),
  ...[0, -1, Number.NaN, Number.POSITIVE_INFINITY, "1", null].flatMap((value) => [
    refused(`scale ${display(value)}`, { scale: value }, "invalid-argument", "scale", display(value)),
    refused(`softcap ${display(value)}`, { softcap: value }, "invalid-argument", "softcap", display(value)),
  ]),
  refused("sinks of another length", { sinks: tensor("f32", 3) }, "invalid-argument", "sinks", 3, 4),
  refused("sinks of another rank", { sinks: tensor("f32", 1, 4) }, "invalid-argument", "sinks", "[H]", "[1,4]"),
  refused("sinks of another type", { sinks: tensor("f16", 4) }, "unsupported", "sinks", "f16", "f32"),
  refused("slopes of another type", { alibiSlopes: tensor("f16", 4) }, "unsupported", "alibiSlopes", "f16", "f32"),
  refused("a tree of another type", { treeMask: tensor("i32", 2, 2) }, "unsupported", "treeMask", "i32", "u32"),
  refused("a tree of no columns", { treeMask: tensor("u32", 2, 2), treeColumns: 0 }, "invalid-argument", "treeMask", 0),
  ...[-1, 1.5, Number.NaN, 2 ** 32, "4", null].map((seqLen) =>
    refused(`seqLen ${display(seqLen)}`, { seqLen }, "invalid-argument", "seqLen", display(seqLen)),
  ),
  refused("a scale factor of 0", { ...wideWith(2), scaleFactorD512: 0 }, "invalid-argument", "scaleFactorD512", 0),
  refused("a misspelt name", { sink: tensor("f32", 4) }, "invalid-argument", "sink", "sinks"),
  refused("slopes of another length", { alibiSlopes: tensor("f32", 5) }, "invalid-argument", "alibiSlopes", 5, 4),
  refused("a distance without slopes", { alibiDistance: 3 }, "invalid-argument", "alibiDistance", "alibiSlopes"),
  refused(
    "a distance of -1",
    { alibiSlopes: tensor("f32", 4), alibiDistance: -1 },
    "invalid-argument",
    "alibiDistance",
  ),
  refused(
    "a tree of 33 columns",
    { treeMask: tensor("u32", 2, 2), treeColumns: 33 },
    "invalid-argument",
    "treeColumns",
    33,
    32,
  ),
  refused("columns without a tree", { treeColumns: 3 }, "invalid-argument", "treeMask", 3),
  refused("a tree of another shape", { treeMask: tensor("u32", 2, 3) }, "invalid-argument", "treeMask", 3, 2),
  refused(
    "out over K",
    { out: k.slice(0, 1).reshape([2, 2, 10, 64]), q: tensor("f32", 2, 2, 10, 64), lse: undefined },
    "invalid-argument",
    "out",
    "overlap",
    "k",
  ),
  refused("out over q", { q: out }, "invalid-argument", "out", "overlap", "q"),
  refused("out over V", { v: values, out: partOfV }, "invalid-argument", "out", "overlap", "v"),
  refused("out over sinks", { sinks: floatsOfOut(4) }, "invalid-argument", "out", "overlap", "sinks"),
  refused("out over slopes", { alibiSlopes: floatsOfOut(4) }, "invalid-argument", "out", "overlap", "alibiSlopes"),
  refused(
    "out over norms",
    { v: { ...codes(32), norms: floatsOfOut(80).reshape([2, 2, 20, 1]), bits: 4 } },
    "invalid-argument",
    "out",
    "overlap",
    "v.norms",
  ),
  refused("lse over out", { lse: floatsOfOut(16).reshape([2, 4, 2]) }, "invalid-argument", "lse", "overlap", "out"),
  refused("lse over sinks", { sinks: lse.reshape([16]).slice(0, 4) }, "invalid-argument", "lse", "overlap", "sinks"),
  refused("codes of a width without a codebook", { k: { ...codes(56), bits: 7 } }, "unsupported", "k.bits", 7),
  refused(
    "codes of another packing",
    { k: { ...codes(32), bits: 4, packing: "dense" } },
    "unsupported",
    "k.packing",
    4,
  ),
  refused("codes of another width", { k: { ...codes(32), bits: 8 } }, "invalid-argument", "k.packed", 32, 64),
  refused("dense codes taken for bytes", { k: { ...codes(40), bits: 5 } }, "invalid-argument", "k.packed", 40, 64),
  refused(
    "bytes taken for dense codes",
    { v: { ...codes(64), bits: 6, packing: "dense" } },
    "invalid-argument",
    "v.packed",
    64,
    48,
  ),
  refused("codes of K shorter than V", { k: { ...codes(32, 1, 19), bits: 4 } }, "invalid-argument", "v", 20, 19),
  refused("one norm at D = 512", wideWith(1), "invalid-argument", "k.norms", 1, 2),
  refused(
    "norms of another capacity",
    { v: { packed: tensor("u8", 2, 2, 20, 32), norms: tensor("f32", 2, 2, 19, 1), bits: 4 } },
    "invalid-argument",
    "v.norms",
    19,
    20,
  ),
  refused(
    "codes at an odd offset",
    { v: { packed: odd.slice(1, odd.length).reshape([2, 2, 20, 32]), norms: tensor("f32", 2, 2, 20, 1), bits: 4 } },
    "invalid-argument",
    "v",
    1,
    2,
  ),
  refused("a misspelt name of a cache", { k: { ...codes(32), bit: 4 } }, "invalid-argument", "k.bit", "bits"),
  refused(
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
  refused(
    "f32 with D = 576",
    { q: tensor("f32", 2, 4, 2, 576), k: tensor("f32", 2, 2, 20, 576), v: undefined, out: tensor("f32", 2, 4, 2, 512) },
    "unsupported",
    "k",
    "f32",
    576,
  ),
  refused(
    "V with D = 576",
    { q: tensor("f32", 2, 4, 2, 576), k: tensor("f16", 2, 2, 20, 576), out: tensor("f32", 2, 4, 2, 512) },
    "invalid-argument",
    "v",
    576,
    512,
  ),
  refused("a table of another batch", { blockTable: tensor("i32", 3, 1) }, "invalid-argument", "blockTable", 3, 2),
  refused("a table of another type", { blockTable: tensor("u32", 2, 1) }, "unsupported", "blockTable", "u32", "i32"),
  refused(
    "a table of another rank",
    { blockTable: tensor("i32", 2, 1, 1) },
    "invalid-argument",
    "blockTable",
    "[maxPages]",
    "[2,1,1]",
  ),
  refused("a table without pages", { blockTable: scene.empty("i32", [2, 0]) }, "invalid-argument", "k", 0),
  refused("a ring of pages", { blockTable: tensor("i32", 2, 1), isSliding: true }, "unsupported", "isSliding"),
  refused("a length beyond the pages", { blockTable: tensor("i32", 2, 2), seqLen: 41 }, "overflow", "seqLen", 41, 40),
  refused("another device", { k: scene.tensor("f16", [2, 2, 20, 64], scene.otherDevice) }, "invalid-handle", "k"),
  refused("a disposed tensor", { sinks: scene.disposed("f32", [4]) }, "disposed", "sinks"),
];

testTable("refused", cases, (refusal) => {
  scene.checkRefusal(untyped(flashAttnDecode), valid, [out, lse], refusal);
});
