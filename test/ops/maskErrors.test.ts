import { expect, test } from "bun:test";
import { display } from "../../src/checks.ts";
import {
  buildCausalMask,
  buildSlidingWindowMask,
  classifyMaskTiles,
  type DType,
  type Tensor,
} from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { testTable } from "../helpers/table.ts";
import { type OpRefusal, refusedBy, untyped, WatchedTensors } from "../helpers/watched.ts";

// Refusals of the mask builders and of the classifier.

const scene = new WatchedTensors();
const tensor = <T extends DType>(dtype: T, ...shape: number[]): Tensor<T> => scene.tensor(dtype, shape);

const ops = {
  buildCausalMask: untyped(buildCausalMask),
  buildSlidingWindowMask: untyped(buildSlidingWindowMask),
  classifyMaskTiles: untyped(classifyMaskTiles),
} as const;
type MaskOp = keyof typeof ops;
const refused = refusedBy<MaskOp>;

const [qL, kL] = [6, 10];
const mask = tensor("bool", qL, kL);
const empty = mask.slice(0, 0);
const valid = {
  buildCausalMask: { mask },
  buildSlidingWindowMask: { mask, window: 4 },
  classifyMaskTiles: { mask, headDim: 64 },
};

using preparing = scene.device.pass();
const narrowClasses = classifyMaskTiles(preparing, { mask, headDim: 512 });
const longerClasses = classifyMaskTiles(preparing, { mask: tensor("bool", qL, kL + 1), headDim: 64 });
const goneClasses = classifyMaskTiles(preparing, { mask, headDim: 64 });
goneClasses.dispose();

const cases: readonly OpRefusal<MaskOp>[] = [
  ...[0, -1, 1.5, 2 ** 32, Number.NaN, "4", null, undefined, 4n].map((window) =>
    refused("buildSlidingWindowMask", `window ${display(window)}`, { window }, "invalid-argument", "window"),
  ),
  refused(
    "buildSlidingWindowMask",
    "a window of 2^31",
    { window: 2 ** 31 },
    "overflow",
    "window",
    2 ** 31,
    2 ** 31 - 1,
  ),
  ...[-1, 1.5, 2 ** 32, Number.NaN, "4", null].map((qOffsetInK) =>
    refused(
      "buildSlidingWindowMask",
      `offset ${display(qOffsetInK)}`,
      { qOffsetInK },
      "invalid-argument",
      "qOffsetInK",
    ),
  ),
  refused("buildSlidingWindowMask", "an offset of 2^31", { qOffsetInK: 2 ** 31 }, "overflow", "qOffsetInK", 2 ** 31),
  refused(
    "buildSlidingWindowMask",
    "positions beyond 2^31",
    { qOffsetInK: 2 ** 31 - qL },
    "overflow",
    "qOffsetInK",
    2 ** 31 - qL,
    qL,
  ),
  refused("buildCausalMask", "positions beyond 2^31", { qOffsetInK: 2 ** 31 - qL }, "overflow", "qOffsetInK", qL),
  ...(["f32", "u8", "i32"] as const).flatMap((dtype) =>
    (["buildSlidingWindowMask", "classifyMaskTiles"] as const).map((op) => {
      const spoil = { mask: tensor(dtype, qL, kL) };
      return refused(op, `a mask of ${dtype}`, spoil, "unsupported", "mask", dtype, "bf16, f16 or bool");
    }),
  ),
  refused(
    "buildSlidingWindowMask",
    "a mask of four axes",
    { mask: tensor("bool", 1, 1, qL, kL) },
    "invalid-argument",
    "mask",
    "[qL, kL]",
    `1,1,${qL},${kL}`,
  ),
  refused(
    "classifyMaskTiles",
    "a mask of three axes",
    { mask: tensor("bool", 1, qL, kL) },
    "invalid-argument",
    "mask",
    `1,${qL},${kL}`,
  ),
  refused("buildSlidingWindowMask", "no row", { mask: empty }, "invalid-argument", "mask", `0,${kL}`),
  refused("classifyMaskTiles", "no row", { mask: empty }, "invalid-argument", "mask", `0,${kL}`),
  ...[0, 65, 1024, 2 ** 32 - 1].map((headDim) =>
    refused("classifyMaskTiles", `a head size of ${headDim}`, { headDim }, "unsupported", "headDim", headDim, "64, 80"),
  ),
  ...[-1, 2 ** 32, Number.NaN, "64", undefined, null].map((headDim) =>
    refused("classifyMaskTiles", `head size ${display(headDim)}`, { headDim }, "invalid-argument", "headDim"),
  ),
  refused(
    "classifyMaskTiles",
    "classes of other tiles to reuse",
    { reuse: narrowClasses },
    "invalid-argument",
    "reuse",
    "16 x 16",
    "64 x 32",
  ),
  refused(
    "classifyMaskTiles",
    "classes of another mask to reuse",
    { reuse: longerClasses },
    "invalid-argument",
    "reuse",
    kL + 1,
    kL,
  ),
  refused("classifyMaskTiles", "disposed classes to reuse", { reuse: goneClasses }, "disposed", "reuse"),
  refused("classifyMaskTiles", "no classes to reuse", { reuse: mask }, "invalid-argument", "reuse"),
];

test.each(Object.entries(ops))("%s takes no arguments but of an object", (_, op) => {
  using pass = scene.device.pass();
  for (const args of [undefined, null, 5, "mask", [mask], new Map()]) {
    expectRefusal(() => op(pass, args as never), "invalid-argument", "args", "expected an object");
  }
  expect(pass.describe()).toEqual([]);
});

testTable("mask builders and the classifier", cases, (refusal) => {
  const { op } = refusal;
  scene.checkRefusal(ops[op], valid[op], op === "classifyMaskTiles" ? [] : [mask], refusal);
});
