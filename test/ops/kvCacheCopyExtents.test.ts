import { type RefusalCase, RefusalScene, refused } from "../helpers/copyRefusals.ts";
import { testTable } from "../helpers/table.ts";

const scene = new RefusalScene();
const smallRing = { cache: scene.tensor("f32", [3, 8]), isSliding: true };
const noSlot = { cache: scene.empty("f32", [0, 8]) };

const maxU32 = 2 ** 32 - 1;

const rowCases: readonly RefusalCase[] = [
  refused("kvCacheCopy", "source too small", { nNew: 5 }, "buffer-too-small", "src", 5, 160, 128),
  refused("kvCacheCopy", "linear overflow", { writePos: 5 }, "overflow", "writePos", 5, 2, 6),
  refused("kvCacheCopy", "all rows by default", { writePos: 3, nNew: undefined }, "overflow", "writePos", 3, 4, 6),
  refused("kvCacheCopy", "linear by default", { writePos: 6, isSliding: undefined }, "overflow", "writePos", 6, 2),
  refused("kvCacheCopy", "linear, sum beyond 2^32", { writePos: maxU32 }, "overflow", "writePos", maxU32, 2),
  refused(
    "kvCacheCopy",
    "ring, sum beyond 2^32",
    { writePos: maxU32, isSliding: true },
    "overflow",
    "writePos",
    maxU32,
    2,
  ),
  refused("kvCacheCopy", "ring too small", { ...smallRing, nNew: 4 }, "overflow", "nNew", 4, 3),
  refused("kvCacheCopy", "linear cache of no slot", noSlot, "invalid-argument", "cache", 0),
  refused("kvCacheCopy", "ring of no slot", { ...noSlot, isSliding: true }, "invalid-argument", "cache", 0),
  refused("kvCacheCopy", "row sizes differ", { src: scene.tensor("f32", [4, 7]) }, "invalid-argument", "cache", 7, 8),
  refused("kvCacheCopy", "source of one axis", { src: scene.tensor("f32", [32]) }, "invalid-argument", "src", 32),
  refused(
    "kvCacheCopy",
    "cache of three axes",
    { cache: scene.tensor("f32", [6, 2, 4]) },
    "invalid-argument",
    "cache",
    "6,2,4",
  ),
];

const slotCases: readonly RefusalCase[] = [
  refused("kvCacheCopyBatch", "slot beyond the cache", { seqPos: 5 }, "overflow", "seqPos", 5),
  refused("kvCacheCopyBatch", "slot far beyond", { seqPos: maxU32 }, "overflow", "seqPos", maxU32, 5),
  refused(
    "kvCacheCopyBatch",
    "flat source too small",
    { src: scene.tensor("f32", [15]) },
    "buffer-too-small",
    "src",
    60,
    64,
  ),
  refused("kvCacheCopyBatch", "heads differ", { src: scene.tensor("f32", [3, 8]) }, "invalid-argument", "src", 3, 2),
  refused(
    "kvCacheCopyBatch",
    "head sizes differ",
    { src: scene.tensor("f32", [2, 9]) },
    "invalid-argument",
    "src",
    9,
    8,
  ),
  refused(
    "kvCacheCopyBatch",
    "source of four axes",
    { src: scene.tensor("f32", [1, 1, 2, 8]) },
    "invalid-argument",
    "src",
    "1,1,2,8",
  ),
  refused(
    "kvCacheCopyBatch",
    "source of two batches",
    { src: scene.tensor("f32", [2, 2, 8]) },
    "invalid-argument",
    "src",
    "B is 2, but 1",
  ),
  refused(
    "kvCacheCopyBatch",
    "a source for a cache of two batches",
    { cache: scene.tensor("f16", [2, 2, 5, 8]) },
    "invalid-argument",
    "src",
    "B is 1, but 2",
  ),
  refused(
    "kvCacheCopyBatch",
    "cache of two axes",
    { cache: scene.tensor("f16", [5, 16]) },
    "invalid-argument",
    "cache",
    "5,16",
  ),
  refused(
    "kvCacheCopyBatch",
    "cache of no slot",
    { cache: scene.empty("f16", [2, 0, 8]) },
    "invalid-argument",
    "cache",
    0,
  ),
];

const tokenCases = (["kvCacheCopySeq", "kvCacheCopyHeadMajor"] as const).flatMap((op): RefusalCase[] => {
  const seq = op === "kvCacheCopySeq";
  const [from, to] = seq ? (["f32", "f16"] as const) : (["bf16", "bf16"] as const);
  const src = (tokens: number, heads: number, headDim: number) =>
    scene.tensor(from, seq ? [tokens, heads, headDim] : [heads, tokens, headDim]);
  return [
    refused(op, "source too small", { srcTokOffset: 4, nTokens: 4 }, "buffer-too-small", "srcTokOffset", 4, 7),
    refused(
      op,
      "offset beyond the source",
      { srcTokOffset: 8, nTokens: 1 },
      "buffer-too-small",
      "srcTokOffset",
      8,
      1,
      7,
    ),
    refused(
      op,
      "offset beyond the source, count by default",
      { srcTokOffset: 8, nTokens: undefined },
      "buffer-too-small",
      "srcTokOffset",
      8,
      7,
    ),
    refused(
      op,
      "source sum beyond 2^32",
      { srcTokOffset: maxU32, nTokens: 1 },
      "buffer-too-small",
      "srcTokOffset",
      maxU32,
      1,
    ),
    refused(op, "cache sum beyond 2^32", { seqPosStart: maxU32 - 1 }, "overflow", "seqPosStart", maxU32 - 1, 3),
    refused(op, "ring too small", { nTokens: 6, srcTokOffset: 0 }, "overflow", "nTokens", 6, 5),
    refused(op, "ring too small for all", { nTokens: undefined, srcTokOffset: 0 }, "overflow", "nTokens", 7, 5),
    refused(op, "heads differ", { src: src(7, 3, 8) }, "invalid-argument", "cache", 3, 2),
    refused(op, "head sizes differ", { src: src(7, 2, 9) }, "invalid-argument", "cache", 9, 8),
    refused(op, "source of two axes", { src: scene.tensor(from, [7, 16]) }, "invalid-argument", "src", "7,16"),
    refused(
      op,
      "cache of five axes",
      { cache: scene.tensor(to, [1, 1, 2, 5, 8]) },
      "invalid-argument",
      "cache",
      "1,1,2,5,8",
    ),
    refused(op, "cache of two batches", { cache: scene.tensor(to, [2, 2, 5, 8]) }, "invalid-argument", "cache", 2, 1),
    refused(op, "beyond a linear cache", { seqPosStart: 3 }, "overflow", "seqPosStart", 3, 3, 5, "isSliding"),
    refused(op, "cache of no slot", { cache: scene.empty(to, [2, 0, 8]) }, "invalid-argument", "cache", 0),
  ];
});

const dtypeCases: readonly RefusalCase[] = [
  ...(
    [
      ["f32", "f16"],
      ["bf16", "f32"],
      ["f16", "bf16"],
      ["u8", "u8"],
      ["i32", "i32"],
      ["bool", "bool"],
    ] as const
  ).map(([from, to]) => {
    const tensors = { src: scene.tensor(from, [4, 8]), cache: scene.tensor(to, [6, 8]) };
    return refused("kvCacheCopy", `${from} to ${to}`, tensors, "unsupported", "src", from, to, "bf16", "f32", "f16");
  }),
  ...(
    [
      ["f16", "f32"],
      ["f16", "bf16"],
      ["bf16", "f16"],
      ["f32", "u8"],
      ["i8", "i8"],
    ] as const
  ).flatMap(([from, to]) =>
    (["kvCacheCopyBatch", "kvCacheCopySeq"] as const).map((op) => {
      const src = scene.tensor(from, op === "kvCacheCopySeq" ? [7, 2, 8] : [2, 8]);
      const tensors = { src, cache: scene.tensor(to, [2, 5, 8]) };
      return refused(op, `${from} to ${to}`, tensors, "unsupported", "src", from, to, "f32", "bf16", "f16");
    }),
  ),
  ...(
    [
      ["f32", "f32"],
      ["f16", "f16"],
      ["f32", "bf16"],
      ["bf16", "f32"],
      ["u8", "u8"],
    ] as const
  ).map(([from, to]) => {
    const tensors = { src: scene.tensor(from, [2, 7, 8]), cache: scene.tensor(to, [2, 5, 8]) };
    return refused("kvCacheCopyHeadMajor", `${from} to ${to}`, tensors, "unsupported", "src", from, to, "bf16");
  }),
];

testTable("rows", rowCases, scene.check);
testTable("one token of all heads", slotCases, scene.check);
testTable("tokens of all heads", tokenCases, scene.check);
testTable("dtype pairs", dtypeCases, scene.check);
