import { type CopyOp, type RefusalCase, RefusalScene, refused } from "../helpers/copyRefusals.ts";
import { testTable } from "../helpers/table.ts";

const scene = new RefusalScene();

// MEASURED.md: what bun:ffi turns into some other integer without a word.
const coerced: readonly unknown[] = [
  Number.NaN,
  -1,
  -0.5,
  1.5,
  2 ** 32,
  2 ** 32 + 5,
  2 ** 53,
  -(2 ** 31),
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  "1",
  "",
  1n,
  BigInt(2 ** 32 + 5),
  null,
  true,
  false,
  {},
  [1],
  Symbol("1"),
  { valueOf: () => 1 },
];

const scalars: readonly { readonly op: CopyOp; readonly name: string; readonly optional: boolean }[] = [
  { op: "kvCacheCopy", name: "writePos", optional: false },
  { op: "kvCacheCopy", name: "nNew", optional: true },
  { op: "kvCacheCopyBatch", name: "seqPos", optional: false },
  { op: "kvCacheCopySeq", name: "seqPosStart", optional: false },
  { op: "kvCacheCopySeq", name: "nTokens", optional: true },
  { op: "kvCacheCopySeq", name: "srcTokOffset", optional: true },
  { op: "kvCacheCopyHeadMajor", name: "seqPosStart", optional: false },
  { op: "kvCacheCopyHeadMajor", name: "nTokens", optional: true },
  { op: "kvCacheCopyHeadMajor", name: "srcTokOffset", optional: true },
];

const show = (value: unknown): string => {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "string" || Array.isArray(value)) return JSON.stringify(value);
  return typeof value === "object" && value !== null ? "an object" : String(value);
};

const scalarCases: readonly RefusalCase[] = [
  ...scalars.flatMap(({ op, name, optional }) => [
    ...coerced.map((value, index) => {
      const says = typeof value === "number" ? [String(value)] : [];
      return refused(op, `${name} = ${show(value)} #${index}`, { [name]: value }, "invalid-argument", name, ...says);
    }),
    ...(optional ? [] : [refused(op, `${name} left out`, { [name]: undefined }, "invalid-argument", name)]),
  ]),
  ...[0, 1, Number.NaN, "true", "", null, 1n, {}].map((value, index) =>
    refused(
      "kvCacheCopy",
      `isSliding = ${show(value)} #${index}`,
      { isSliding: value },
      "invalid-argument",
      "isSliding",
    ),
  ),
];

testTable("scalars that are no u32 or no boolean", scalarCases, scene.check);
