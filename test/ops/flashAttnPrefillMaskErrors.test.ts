import { describe, expect, test } from "bun:test";
import { classifyMaskTiles, type DType, flashAttnPrefill, type Tensor } from "../../src/index.ts";
import { testTable } from "../helpers/table.ts";
import { type Refusal, refused, untyped, WatchedTensors } from "../helpers/watched.ts";

// Refusals of masks and of tile classes.

const scene = new WatchedTensors();
const { device } = scene;
const tensor = <T extends DType>(dtype: T, ...shape: number[]): Tensor<T> => scene.tensor(dtype, shape);

/** Two batches, four query heads on two key heads, six queries, ten keys. */
const [batch, heads, kvHeads, qL, kL] = [2, 4, 2, 6, 10];

const problemOf = (headDim: number) => ({
  q: tensor("bf16", batch, heads, qL, headDim),
  k: tensor("bf16", batch, kvHeads, kL, headDim),
  v: tensor("bf16", batch, kvHeads, kL, headDim),
  out: tensor("bf16", batch, heads, qL, headDim),
});
const valid = { ...problemOf(64), mask: tensor("bool", qL, kL) };
const wide = problemOf(512);

using preparing = device.pass();
const classes = classifyMaskTiles(preparing, { mask: valid.mask, headDim: 64 });
const narrowClasses = classifyMaskTiles(preparing, { mask: valid.mask, headDim: 512 });
const otherClasses = classifyMaskTiles(preparing, { mask: tensor("bool", 1, heads, qL, kL), headDim: 64 });
const longerClasses = classifyMaskTiles(preparing, { mask: tensor("bool", qL, kL + 1), headDim: 64 });
const goneClasses = classifyMaskTiles(preparing, { mask: valid.mask, headDim: 64 });
goneClasses.dispose();

const both = tensor("bf16", 20_000);

const maskCases: readonly Refusal[] = [
  ...[
    [qL + 1, kL],
    [qL, kL + 1],
    [kL, qL],
    [qL * kL],
    [heads, qL, kL],
    [batch, heads + 1, qL, kL],
    [batch + 1, heads, qL, kL],
    [3, 1, qL, kL],
    [1, kvHeads, qL, kL],
    [batch, heads, qL, kL, 1],
  ].map((shape) =>
    refused(
      `a mask of shape [${shape}]`,
      { mask: tensor("bool", ...shape) },
      "invalid-argument",
      "mask",
      `[${shape}]`,
      `[${qL}, ${kL}]`,
    ),
  ),
  refused("a mask for all slots, not for the keys in use", { seqLenK: 9 }, "invalid-argument", "mask", `[${qL}, 9]`),
  ...(["f16", "f32", "u8", "i32"] as const).map((dtype) =>
    refused(`a mask of ${dtype}`, { mask: tensor(dtype, qL, kL) }, "unsupported", "mask", dtype, "bf16", "bool"),
  ),
  ...["x", 1, null, {}, [[1]]].map((mask, index) =>
    refused(`no mask at all, ${index}`, { mask }, "invalid-argument", "mask", "Tensor"),
  ),
  refused(
    "an output in its mask",
    {
      out: both.slice(0, batch * heads * qL * 64).reshape([batch, heads, qL, 64]),
      mask: both.slice(3000, 3000 + qL * kL).reshape([qL, kL]),
    },
    "invalid-argument",
    "out",
    "mask",
    "overlap",
    6000,
  ),
];

const classCases: readonly Refusal[] = [
  refused(
    "tile classes without a mask",
    { mask: undefined, tileClasses: classes },
    "invalid-argument",
    "tileClasses",
    "mask",
  ),
  refused(
    "tile classes of other tiles",
    { tileClasses: narrowClasses },
    "invalid-argument",
    "tileClasses",
    "16 x 16",
    "64 x 32",
    64,
  ),
  refused(
    "tile classes of wide tiles",
    { ...wide, tileClasses: classes },
    "invalid-argument",
    "tileClasses",
    "64 x 32",
    "16 x 16",
    512,
  ),
  refused(
    "tile classes of a mask by head",
    { tileClasses: otherClasses },
    "invalid-argument",
    "tileClasses",
    `1,${heads},${qL},${kL}`,
    `${qL},${kL}`,
  ),
  refused(
    "tile classes of a longer mask",
    { tileClasses: longerClasses },
    "invalid-argument",
    "tileClasses",
    `${qL},${kL + 1}`,
    `${qL},${kL}`,
  ),
  refused("disposed tile classes", { tileClasses: goneClasses }, "disposed", "tileClasses"),
  ...[classes.tensor, "x", 1, null, {}].map((tileClasses, index) =>
    refused(
      `no tile classes at all, ${index}`,
      { tileClasses },
      "invalid-argument",
      "tileClasses",
      "classifyMaskTiles",
    ),
  ),
];

const check = (refusal: Refusal) => scene.checkRefusal(untyped(flashAttnPrefill), valid, [valid.out], refusal);

testTable("masks", maskCases, check);
testTable("tile classes", classCases, check);

describe("what is next to a refusal and allowed", () => {
  test("masks that are shared by batches, by heads, by both", () => {
    using pass = device.pass();
    for (const shape of [
      [qL, kL],
      [1, 1, qL, kL],
      [batch, 1, qL, kL],
      [1, heads, qL, kL],
      [batch, heads, qL, kL],
    ]) {
      for (const dtype of ["bool", "bf16"] as const) {
        const mask = tensor(dtype, ...shape);
        flashAttnPrefill(pass, { ...valid, mask });
        flashAttnPrefill(pass, { ...valid, mask, tileClasses: classifyMaskTiles(pass, { mask, headDim: 64 }) });
      }
    }
    expect(pass.describe().length).toBe(30);
  });
});
