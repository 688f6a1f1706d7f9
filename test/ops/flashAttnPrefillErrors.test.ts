import { describe, expect, test } from "bun:test";
import { type DType, flashAttnPrefill } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { promisedHeadSizes } from "../helpers/promised.ts";
import { testTable } from "../helpers/table.ts";
import { type Refusal, refused, untyped, WatchedTensors } from "../helpers/watched.ts";

const scene = new WatchedTensors();
const { device } = scene;

const bf16 = (...shape: number[]) => scene.tensor("bf16", shape);
const empty = (...shape: number[]) => scene.empty("bf16", shape);

/** Two batches, four query heads on two key heads, six queries, ten keys. */
const valid = {
  q: bf16(2, 4, 6, 256),
  k: bf16(2, 2, 10, 256),
  v: bf16(2, 2, 10, 256),
  out: bf16(2, 4, 6, 256),
};

const coerced: readonly unknown[] = [
  Number.NaN,
  -1,
  1.5,
  2 ** 32,
  2 ** 32 + 5,
  Number.POSITIVE_INFINITY,
  "1",
  1n,
  null,
  true,
  {},
  [1],
];

const scalarCases: readonly Refusal[] = [
  ...["qOffsetInK", "seqLenK", "kvCapacity"].flatMap((name) =>
    coerced.map((value, index) => {
      const says = typeof value === "number" ? [String(value)] : [];
      return refused(`${name}, bad value ${index}`, { [name]: value }, "invalid-argument", name, ...says);
    }),
  ),
  ...[Number.NaN, 0, -1, Number.POSITIVE_INFINITY, -Number.MIN_VALUE, 1e-60, 1e60, "1", 1n, null, true, {}].map(
    (scale, index) => refused(`scale, bad value ${index}`, { scale }, "invalid-argument", "scale"),
  ),
  ...[0, 1, Number.NaN, "true", null, 1n, {}].map((causal, index) =>
    refused(`causal, bad value ${index}`, { causal }, "invalid-argument", "causal"),
  ),
  ...["rows", "", 1, null, []].map((layout, index) =>
    refused(`layout, bad value ${index}`, { layout }, "invalid-argument", "layout", "head-major", "sequence-major"),
  ),
];

const shapeCases: readonly Refusal[] = [
  refused(
    "a head size of 72",
    { q: bf16(2, 4, 6, 72), k: bf16(2, 2, 10, 72), v: bf16(2, 2, 10, 72), out: bf16(2, 4, 6, 72) },
    "unsupported",
    "q",
    72,
    promisedHeadSizes.join(", "),
    "bf16",
  ),
  refused(
    "head sizes that differ",
    { k: bf16(2, 2, 10, 128), v: bf16(2, 2, 10, 128) },
    "invalid-argument",
    "k",
    128,
    256,
  ),
  refused("batches that differ", { k: bf16(1, 2, 10, 256), v: bf16(1, 2, 10, 256) }, "invalid-argument", "k", 1, 2),
  refused(
    "3 key heads for 4 query heads",
    { k: bf16(2, 3, 10, 256), v: bf16(2, 3, 10, 256) },
    "invalid-argument",
    "k",
    3,
    4,
  ),
  refused(
    "8 key heads for 4 query heads",
    { k: bf16(2, 8, 10, 256), v: bf16(2, 8, 10, 256) },
    "invalid-argument",
    "k",
    8,
    4,
  ),
  refused("v of other heads", { v: bf16(2, 4, 10, 256) }, "invalid-argument", "v", "2,4,10,256", "2,2,10,256"),
  refused("v of another length", { v: bf16(2, 2, 11, 256) }, "invalid-argument", "v", 11, 10),
  refused("an output too short", { out: bf16(2, 4, 5, 256) }, "invalid-argument", "out", 5, 6),
  refused("an output of other heads", { out: bf16(2, 2, 6, 256) }, "invalid-argument", "out", "2,2,6,256", "2,4,6,256"),
  refused("a query of two axes", { q: bf16(6, 256) }, "invalid-argument", "q", "6,256"),
  refused("a query of three axes to keys of two batches", { q: bf16(4, 6, 256) }, "invalid-argument", "k", 2, 1),
  refused("keys of five axes", { k: bf16(1, 2, 2, 10, 256) }, "invalid-argument", "k", "1,2,2,10,256"),
  refused("head-major tensors as sequence-major", { layout: "sequence-major" }, "invalid-argument", "k", 6, 10),
  refused("no query", { q: empty(2, 4, 0, 256), out: empty(2, 4, 0, 256) }, "invalid-argument", "q", 0),
  refused("no key", { k: empty(2, 2, 0, 256), v: empty(2, 2, 0, 256) }, "invalid-argument", "k", 0),
  refused("no query head", { q: empty(2, 0, 6, 256), out: empty(2, 0, 6, 256) }, "invalid-argument", "q", 0),
  refused("no key head", { k: empty(2, 0, 10, 256), v: empty(2, 0, 10, 256) }, "invalid-argument", "k", 0),
  refused(
    "no batch",
    { q: empty(0, 4, 6, 256), k: empty(0, 2, 10, 256), v: empty(0, 2, 10, 256), out: empty(0, 4, 6, 256) },
    "invalid-argument",
    "q",
    0,
  ),
  refused("no key in use", { seqLenK: 0 }, "invalid-argument", "seqLenK", 0),
  refused("more keys in use than there are", { seqLenK: 11 }, "invalid-argument", "seqLenK", 11, 10),
  refused("another capacity than the shape's", { kvCapacity: 11 }, "invalid-argument", "kvCapacity", 11, 10),
  refused("queries that reach past the keys", { qOffsetInK: 5 }, "invalid-argument", "qOffsetInK", 5, 6, 10),
  refused("queries past the keys in use", { qOffsetInK: 3, seqLenK: 8 }, "invalid-argument", "qOffsetInK", 3, 6, 8),
  refused("an offset near 2^32", { qOffsetInK: 2 ** 32 - 1, causal: true }, "overflow", "qOffsetInK", 2 ** 32 - 1),
];

const dtypes = ["f32", "f16", "u8", "i32"] as const;
const all = (dtype: DType) => ({
  q: scene.tensor(dtype, valid.q.shape),
  k: scene.tensor(dtype, valid.k.shape),
  v: scene.tensor(dtype, valid.v.shape),
  out: scene.tensor(dtype, valid.out.shape),
});

const dtypeCases: readonly Refusal[] = [
  ...(["u8", "i32"] as const).map((dtype) =>
    refused(`all of ${dtype}`, all(dtype), "unsupported", "q", dtype, "bf16 or f16"),
  ),
  // K and V of 32-bit elements: 32 rows of 128 and 16 bytes of padding, for each half of D.
  refused("all of f32", all("f32"), "unsupported", "q", "f32", 2 * 32 * (128 * 4 + 16), 32768, "bf16 or f16"),
  ...(["q", "k", "v", "out"] as const).flatMap((name) =>
    dtypes.map((dtype) => {
      // A query of f16, which is served, shows where the keys are compared with it.
      const argument = name === "q" && dtype === "f16" ? "k" : name;
      const spoil = { [name]: scene.tensor(dtype, valid[name].shape) };
      return refused(`${name} of ${dtype}`, spoil, "unsupported", argument, dtype, "bf16", name);
    }),
  ),
];

const shared = bf16(40, 256);
const sharedPart = (start: number, shape: readonly number[]) => {
  const rows = shape.reduce((product, extent) => product * extent, 1) / 256;
  return shared.slice(start, start + rows).reshape(shape);
};
const small = {
  q: sharedPart(0, [1, 1, 6, 256]),
  k: sharedPart(10, [1, 1, 10, 256]),
  v: sharedPart(20, [1, 1, 10, 256]),
};

const overlapCases: readonly Refusal[] = [
  refused("out is q", { out: valid.q }, "invalid-argument", "out", "q", "overlap"),
  ...(
    [
      ["q", 5],
      ["k", 8],
      ["k", 19],
      ["v", 29],
    ] as const
  ).map(([name, start]) => {
    const spoil = { ...small, out: sharedPart(start, [1, 1, 6, 256]) };
    return refused(`out overlaps ${name} from row ${start}`, spoil, "invalid-argument", "out", name, "overlap");
  }),
];

const ownerCases: readonly Refusal[] = (["q", "k", "v", "out"] as const).flatMap((name) => {
  const { shape } = valid[name];
  return [
    refused(`${name} disposed`, { [name]: scene.disposed("bf16", shape) }, "disposed", name),
    refused(
      `${name} of another device`,
      { [name]: scene.tensor("bf16", shape, scene.otherDevice) },
      "invalid-handle",
      name,
    ),
    refused(`no ${name}`, { [name]: undefined }, "invalid-argument", name),
    refused(`an array as ${name}`, { [name]: new Uint16Array(12288) }, "invalid-argument", name),
  ];
});

const check = (refusal: Refusal) => scene.checkRefusal(untyped(flashAttnPrefill), valid, [valid.out], refusal);

testTable("scalars", scalarCases, check);
testTable("shapes", shapeCases, check);
testTable("dtypes and masks", dtypeCases, check);
testTable("overlaps", overlapCases, check);
testTable("tensors that are none, disposed or foreign", ownerCases, check);

describe("what is next to a refusal and allowed", () => {
  test("an output between its inputs in one buffer", () => {
    using pass = device.pass();
    flashAttnPrefill(pass, { ...small, out: sharedPart(30, [1, 1, 6, 256]) });
    flashAttnPrefill(pass, { ...small, q: sharedPart(0, [1, 1, 4, 256]), out: sharedPart(6, [1, 1, 4, 256]) });
    expect(pass.describe().length).toBe(2);
  });

  test("keys that are also the values, and the queries", () => {
    using pass = device.pass();
    flashAttnPrefill(pass, { ...valid, v: valid.k });
    flashAttnPrefill(pass, { q: valid.q, k: valid.q, v: valid.q, out: valid.out, causal: true });
    expect(pass.describe().length).toBe(2);
  });

  test("queries up to the last key, and every optional argument undefined", () => {
    using pass = device.pass();
    flashAttnPrefill(pass, { ...valid, qOffsetInK: 4, seqLenK: 10, kvCapacity: 10, causal: true });
    const undefinedArgs = { causal: undefined, scale: undefined, qOffsetInK: undefined, layout: undefined };
    flashAttnPrefill(pass, { ...valid, ...undefinedArgs } as unknown as typeof valid);
    expect(pass.describe().length).toBe(2);
  });
});

test("a pass that is committed or disposed", () => {
  const pass = device.pass();
  pass.commitAndWait();
  expectRefusal(() => flashAttnPrefill(pass, valid), "invalid-state", undefined, "commit");
  expect(pass.describe()).toEqual([]);
  pass.dispose();
  expectRefusal(() => flashAttnPrefill(pass, valid), "disposed", "pass");
});
