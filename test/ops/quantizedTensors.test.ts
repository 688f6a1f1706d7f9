import { describe, expect, test } from "bun:test";
import {
  allOps,
  maxU32,
  position,
  type QuantizedOp,
  QuantizedScene,
  quantizedOps,
  type RefusalCase,
  refused,
  vectorName,
  vectorShapes,
} from "../helpers/quantizedRefusals.ts";
import { testTable } from "../helpers/table.ts";
import type { Fields } from "../helpers/watched.ts";

const scene = new QuantizedScene();

const dtypeCases = allOps.flatMap((op): RefusalCase[] => {
  const name = vectorName(op);
  const shape = vectorShapes[op](2, 64);
  const served = ["f32", "f16", "bf16"];
  return [
    ...(["u8", "i32", "u32", "bool"] as const).map((dtype) =>
      refused(op, `${name} of ${dtype}`, { [name]: scene.tensor(dtype, shape) }, "unsupported", name, dtype, ...served),
    ),
    ...(["i8", "bool", "f32"] as const).map((dtype) =>
      refused(
        op,
        `packed of ${dtype}`,
        { packed: scene.tensor(dtype, [2, 5, 32]) },
        "unsupported",
        "packed",
        dtype,
        "u8",
      ),
    ),
    ...(["f16", "bf16", "u32"] as const).map((dtype) =>
      refused(op, `norms of ${dtype}`, { norms: scene.tensor(dtype, [2, 5, 1]) }, "unsupported", "norms", dtype, "f32"),
    ),
  ];
});

const scratch = (shape: readonly number[] = [2, 64]) => scene.tensor("f32", shape);
const single: QuantizedOp = "hadamardQuantizeKv";
const byteStream = { packed: scene.tensor("u8", [2, 5, 64]), bits: 8 };
const probeCases: readonly RefusalCase[] = [
  refused(single, "scratch of fewer heads", { rmsScratch: scratch([1, 64]) }, "invalid-argument", "rmsScratch", 1, 2),
  refused(single, "scratch too small", { rmsScratch: scratch([2, 63]) }, "invalid-argument", "rmsScratch", 63, 64),
  refused(single, "scratch of one axis", { rmsScratch: scratch([128]) }, "invalid-argument", "rmsScratch", 128),
  refused(
    single,
    "scratch of 15 coordinates a norm",
    { rmsScratch: scratch([2, 1, 15]) },
    "invalid-argument",
    "rmsScratch",
    "[2, 1, 15]",
    "[2, 1, 16]",
  ),
  refused(
    single,
    "scratch of f16",
    { rmsScratch: scene.tensor("f16", [2, 64]) },
    "unsupported",
    "rmsScratch",
    "f16",
    "f32",
  ),
  refused(single, "scratch of no tensor", { rmsScratch: null }, "invalid-argument", "rmsScratch"),
  refused(single, "a probe of 8 bits", { ...byteStream, rmsScratch: scratch() }, "unsupported", "rmsScratch", 8, 4),
  refused(
    "hadamardQuantizeKvSeq",
    "a probe with the bulk form",
    { rmsScratch: scratch() },
    "invalid-argument",
    "rmsScratch",
    "hadamardQuantizeKv",
  ),
];

const bytes = (length: number) => scene.tensor("u8", [length]);
const floats = (length: number) => scene.tensor("f32", [length]);

/** Tensors of one buffer are of one dtype, so overlaps are among those. */
const overlapCases: readonly RefusalCase[] = [
  ...(() => {
    const both = floats(1000);
    return [
      refused(
        single,
        "norms in the source",
        { src: both.slice(0, 128).reshape([2, 64]), norms: both.slice(127, 137).reshape([2, 5, 1]) },
        "invalid-argument",
        "src",
        "norms",
        "overlap",
      ),
      refused(
        "hadamardQuantizeKvSeq",
        "norms in the source",
        { src: both.slice(5, 901).reshape([7, 2, 64]), norms: both.slice(0, 10).reshape([2, 5, 1]) },
        "invalid-argument",
        "src",
        "norms",
        "overlap",
      ),
      refused(
        "dequantizeKv",
        "out in the norms",
        { out: both.slice(9, 393).reshape([2, 3, 64]), norms: both.slice(0, 10).reshape([2, 5, 1]) },
        "invalid-argument",
        "norms",
        "out",
        "overlap",
      ),
      refused(
        single,
        "the scratch in the source",
        { src: both.slice(0, 128).reshape([2, 64]), rmsScratch: both.slice(64, 192).reshape([2, 64]) },
        "invalid-argument",
        "src",
        "rmsScratch",
        "overlap",
      ),
      refused(
        single,
        "the scratch in the norms",
        { norms: both.slice(0, 10).reshape([2, 5, 1]), rmsScratch: both.slice(9, 137).reshape([2, 64]) },
        "invalid-argument",
        "norms",
        "rmsScratch",
        "overlap",
      ),
    ];
  })(),
];

const streamCases = allOps.flatMap((op): RefusalCase[] => {
  const name = vectorName(op);
  const none = { [name]: undefined, packed: undefined, norms: undefined };
  const [k, v] = [scene.stream(op), scene.stream(op)];
  const withV = (spoil: Fields) => ({ ...none, k, v: { ...v, ...spoil } });
  const shared = bytes(640);
  const [lower, upper] = [shared.slice(0, 320), shared.slice(319, 639)].map((part) => part.reshape([2, 5, 32]));
  const slots = (count: number) => ({
    packed: scene.tensor("u8", [2, count, 32]),
    norms: scene.tensor("f32", [2, count, 1]),
  });
  return [
    refused(op, "K without V", { ...none, k }, "invalid-argument", "v"),
    refused(op, "V without K", { ...none, v }, "invalid-argument", "k"),
    refused(op, "K and V beside a single stream", { k, v }, "invalid-argument", name, "k and v"),
    refused(
      op,
      "K and V beside norms",
      { ...none, norms: scene.tensor("f32", [2, 5, 1]), k, v },
      "invalid-argument",
      name,
    ),
    refused(op, "K that is no object", { ...none, k: 1, v }, "invalid-argument", "k"),
    refused(op, "K without norms", { ...none, k: { ...k, norms: undefined }, v }, "invalid-argument", "k.norms"),
    refused(op, "V without vectors", withV({ [name]: undefined }), "invalid-argument", `v.${name}`),
    refused(
      op,
      "V of other heads",
      withV(scene.vectors(op, vectorShapes[op](3, 64))),
      "invalid-argument",
      "v.packed",
      3,
      2,
    ),
    refused(op, "V of another head size", withV(scene.stream(op, 128, 1)), "invalid-argument", `v.${name}`, 128, 64),
    refused(op, "V of another capacity", withV(slots(6)), "invalid-argument", "v.packed", 6, 5),
    refused(op, "V's norms too few", withV(scene.norms([2, 4, 1])), "invalid-argument", "v.norms", 4, 5),
    refused(
      op,
      "V's codes of f32",
      withV({ packed: scene.tensor("f32", [2, 5, 32]) }),
      "unsupported",
      "v.packed",
      "f32",
      "u8",
    ),
    refused(op, "V's norms disposed", withV({ norms: scene.disposed("f32", [2, 5, 1]) }), "disposed", "v.norms"),
    refused(
      op,
      "V in another dtype",
      withV({ [name]: scene.tensor("f16", vectorShapes[op](2, 64)) }),
      "unsupported",
      `v.${name}`,
      "f16",
      `k.${name}`,
      "f32",
    ),
    op === "dequantizeKv"
      ? refused(op, "one result for both", withV({ out: k["out"] }), "invalid-argument", "k.out", "v.out", "overlap")
      : refused(
          op,
          "codes of K and V overlap by a byte",
          { ...none, k: { ...k, packed: lower }, v: { ...v, packed: upper } },
          "invalid-argument",
          "k.packed",
          "v.packed",
          "overlap",
        ),
    ...(op === "hadamardQuantizeKv"
      ? [
          refused(
            op,
            "a probe of K and V",
            { ...withV({}), rmsScratch: scratch() },
            "unsupported",
            "rmsScratch",
            "one stream",
          ),
        ]
      : []),
    refused(op, "behind the cache, K and V", { ...withV({}), [position[op]]: 5 }, "overflow", position[op], 5),
    refused(
      op,
      "capacity zero, K and V",
      {
        ...none,
        k: { ...k, packed: scene.empty("u8", [2, 0, 32]), norms: scene.empty("f32", [2, 0, 1]) },
        v: { ...v, packed: scene.empty("u8", [2, 0, 32]), norms: scene.empty("f32", [2, 0, 1]) },
      },
      "invalid-argument",
      "k.packed",
      0,
    ),
  ];
});

testTable("dtypes", dtypeCases, scene.check);
testTable("the probe", probeCases, scene.check);
testTable("overlaps", overlapCases, scene.check);
testTable("K and V", streamCases, scene.check);

describe("what is next to a refusal and allowed", () => {
  test("a ring takes any position below 2^32, one token at a time", () => {
    using pass = scene.device.pass();
    quantizedOps.hadamardQuantizeKv(pass, { ...scene.valid.hadamardQuantizeKv, writePos: maxU32, isSliding: true });
    expect(pass.describe().length).toBe(1);
  }, 60_000);

  test("K and V from one source", () => {
    using pass = scene.device.pass();
    const [k, v] = [scene.stream("hadamardQuantizeKvSeq"), scene.stream("hadamardQuantizeKvSeq")];
    quantizedOps.hadamardQuantizeKvSeq(pass, { k, v: { ...v, src: k["src"] }, bits: 4, writePosStart: 0, nTokens: 5 });
    expect(pass.describe().length).toBe(1);
  }, 60_000);

  test("options that are undefined", () => {
    using pass = scene.device.pass();
    const left = { packing: undefined, isSliding: undefined, scaleFactorD512: undefined };
    quantizedOps.hadamardQuantizeKv(pass, { ...scene.valid.hadamardQuantizeKv, ...left, rmsScratch: undefined });
    quantizedOps.hadamardQuantizeKvSeq(pass, {
      ...scene.valid.hadamardQuantizeKvSeq,
      ...left,
      srcTokOffset: undefined,
    });
    quantizedOps.dequantizeKv(pass, {
      ...scene.valid.dequantizeKv,
      ...left,
      readPosStart: undefined,
      nTokens: undefined,
    });
    expect(pass.describe().length).toBe(3);
  }, 60_000);
});
