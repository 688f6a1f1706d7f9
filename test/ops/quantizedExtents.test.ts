import { promisedHeadSizes } from "../helpers/promised.ts";
import { codeFormats } from "../helpers/quantized.ts";
import {
  allOps,
  maxU32,
  position,
  QuantizedScene,
  type RefusalCase,
  refused,
  vectorName,
  vectorShapes,
} from "../helpers/quantizedRefusals.ts";
import { testTable } from "../helpers/table.ts";

const scene = new QuantizedScene();

const supportedFormats = codeFormats.map(({ bits, packing }) => `${bits} ${packing}`);

const formatCases = allOps.flatMap((op): RefusalCase[] => [
  ...[0, 1, 7, 9, 16, 32].map((bits) =>
    refused(op, `${bits} bits`, { bits }, "unsupported", "bits", bits, ...supportedFormats),
  ),
  ...(
    [
      [4, "byte"],
      [4, "dense"],
      [5, "nibble"],
      [8, "dense"],
      [2, "byte"],
      [3, "nibble"],
      [4, "bytes"],
      [4, ""],
    ] as const
  ).map(([bits, packing]) =>
    refused(
      op,
      `${bits} bits as "${packing}"`,
      { bits, packing },
      "unsupported",
      "packing",
      bits,
      packing,
      ...supportedFormats,
    ),
  ),
  ...[undefined, null, "4", 4n, Number.NaN, -4, 4.5, 2 ** 32 + 4].map((bits) =>
    refused(op, `bits = ${typeof bits} ${bits}`, { bits }, "invalid-argument", "bits"),
  ),
  ...[null, 1, {}, ["nibble"]].map((packing) =>
    refused(op, `packing = ${JSON.stringify(packing)}`, { packing }, "invalid-argument", "packing"),
  ),
  ...[1, 2, 63, 65, 72, 160, 320, 384, 768, 3072, 8192].map((size) => {
    const tensors = scene.stream(op, size, Math.max(1, size >> 8));
    return refused(
      op,
      `head size ${size}`,
      tensors,
      "unsupported",
      "headDim",
      size,
      promisedHeadSizes.join(", "),
      4096,
    );
  }),
  ...([3, 5] as const).map((bits) => {
    const spoil = { ...scene.stream(op, 4), bits, packing: "dense" };
    return refused(op, `4 codes of ${bits} bits`, spoil, "unsupported", "headDim", 4, bits, "whole bytes");
  }),
]);

const shapeCases = allOps.flatMap((op): RefusalCase[] => {
  const name = vectorName(op);
  const noSlots = { packed: scene.empty("u8", [2, 0, 32]), norms: scene.empty("f32", [2, 0, 1]) };
  return [
    refused(op, "rows of packed too short", scene.packed([2, 5, 31]), "invalid-argument", "packed", 31, 32, 64, 4),
    refused(op, "rows of packed too long", scene.packed([2, 5, 64]), "invalid-argument", "packed", 64, 32),
    refused(op, "rows of another packing", { bits: 8 }, "invalid-argument", "packed", 32, 64, "byte"),
    refused(op, "packed of other heads", scene.packed([4, 5, 32]), "invalid-argument", "packed", 4, 2),
    refused(op, "packed of two axes", scene.packed([10, 32]), "invalid-argument", "packed", "10,32"),
    refused(op, "norms of other heads", scene.norms([1, 5, 1]), "invalid-argument", "norms", 1, 2),
    refused(op, "norms too few", scene.norms([2, 4, 1]), "invalid-argument", "norms", 4, 5),
    refused(op, "two norms a token", scene.norms([2, 5, 2]), "invalid-argument", "norms", 2, 1, 64),
    refused(op, "norms of two axes", scene.norms([2, 5]), "invalid-argument", "norms", "2,5"),
    refused(
      op,
      "vectors of two axes more",
      scene.vectors(op, [1, 1, ...vectorShapes[op](2, 64)]),
      "invalid-argument",
      name,
      "batch",
    ),
    refused(
      op,
      "vectors of two batches",
      scene.vectors(op, [2, ...vectorShapes[op](2, 64)]),
      "invalid-argument",
      "packed",
      "B is 1, but 2",
    ),
    refused(op, "packed of two batches", scene.packed([2, 2, 5, 32]), "invalid-argument", "packed", "B is 2, but 1"),
    refused(op, "norms of two batches", scene.norms([2, 2, 5, 1]), "invalid-argument", "norms", "B is 2, but 1"),
    refused(op, "vectors of one axis", scene.vectors(op, [128]), "invalid-argument", name, 128),
    refused(op, "capacity zero", noSlots, "invalid-argument", "packed", "capacity", 0),
    refused(op, "capacity zero, a ring", { ...noSlots, isSliding: true }, "invalid-argument", "packed", "capacity", 0),
    refused(op, "one norm where a head size has two", scene.stream(op, 512, 1), "invalid-argument", "norms", 1, 2, 512),
    refused(op, "no packed", { packed: undefined }, "invalid-argument", "packed"),
    refused(op, "no norms", { norms: null }, "invalid-argument", "norms"),
    refused(op, "no vectors", { [name]: undefined }, "invalid-argument", name),
    refused(op, "a typed array as packed", { packed: new Uint8Array(320) }, "invalid-argument", "packed"),
    refused(op, "packed disposed", { packed: scene.disposed("u8", [2, 5, 32]) }, "disposed", "packed"),
    refused(op, "norms disposed", { norms: scene.disposed("f32", [2, 5, 1]) }, "disposed", "norms"),
    refused(
      op,
      "norms of another device",
      { norms: scene.tensor("f32", [2, 5, 1], scene.otherDevice) },
      "invalid-handle",
      "norms",
      "another device",
    ),
  ];
});

const rangeCases: readonly RefusalCase[] = [
  refused("hadamardQuantizeKv", "behind a linear cache", { writePos: 5 }, "overflow", "writePos", 5),
  refused("hadamardQuantizeKv", "far behind", { writePos: maxU32 }, "overflow", "writePos", maxU32, 5),
  ...(["hadamardQuantizeKvSeq", "dequantizeKv"] as const).flatMap((op): RefusalCase[] => {
    const start = position[op];
    const longer = op === "dequantizeKv" ? scene.vectors(op, [2, 6, 64]) : { nTokens: 6, srcTokOffset: 0 };
    return [
      refused(op, "beyond a linear cache", { [start]: 3 }, "overflow", start, 3, 3, 5),
      refused(op, "position beyond 2^32", { [start]: maxU32, isSliding: true }, "overflow", start, maxU32, 3),
      refused(op, "more than a linear cache holds", { ...longer, [start]: 0 }, "overflow", "nTokens", 6, 5),
      refused(op, "more than a ring holds", { ...longer, isSliding: true }, "overflow", "nTokens", 6, 5),
    ];
  }),
  refused(
    "hadamardQuantizeKvSeq",
    "source too small",
    { srcTokOffset: 5 },
    "buffer-too-small",
    "srcTokOffset",
    5,
    3,
    7,
  ),
  refused(
    "hadamardQuantizeKvSeq",
    "offset beyond the source",
    { srcTokOffset: 8, nTokens: undefined },
    "buffer-too-small",
    "srcTokOffset",
    8,
    7,
  ),
  refused(
    "hadamardQuantizeKvSeq",
    "source beyond 2^32",
    { srcTokOffset: maxU32 },
    "buffer-too-small",
    "srcTokOffset",
    maxU32,
    3,
  ),
  refused("dequantizeKv", "fewer tokens than out has", { nTokens: 2 }, "invalid-argument", "out", 3, 2),
  refused("dequantizeKv", "more tokens than out has", { nTokens: 4 }, "invalid-argument", "out", 3, 4),
];

const scalarCases = allOps.flatMap((op): RefusalCase[] => {
  const counts = {
    hadamardQuantizeKv: [],
    hadamardQuantizeKvSeq: ["nTokens", "srcTokOffset"],
    dequantizeKv: ["nTokens"],
  };
  return [
    ...[position[op], ...counts[op]].flatMap((name) =>
      [Number.NaN, -1, 1.5, 2 ** 32, 2 ** 32 + 1, "1", 1n, null, true, {}].map((value) =>
        refused(op, `${name} = ${typeof value} ${value}`, { [name]: value }, "invalid-argument", name),
      ),
    ),
    ...[0, 1, "true", null].map((value) =>
      refused(op, `isSliding = ${value}`, { isSliding: value }, "invalid-argument", "isSliding"),
    ),
    ...[0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e-300, "1", null, 1n].map((value) =>
      refused(
        op,
        `scaleFactorD512 = ${typeof value} ${value}`,
        { scaleFactorD512: value },
        "invalid-argument",
        "scaleFactorD512",
      ),
    ),
  ];
});
const requiredCases = (["hadamardQuantizeKv", "hadamardQuantizeKvSeq"] as const).map((op) =>
  refused(op, "no position", { [position[op]]: undefined }, "invalid-argument", position[op]),
);

testTable("formats and head sizes", formatCases, scene.check);
testTable("shapes", shapeCases, scene.check);
testTable("positions and counts", rangeCases, scene.check);
testTable("scalars", [...scalarCases, ...requiredCases], scene.check);
