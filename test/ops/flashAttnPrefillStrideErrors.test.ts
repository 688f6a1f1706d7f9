import { describe, expect, test } from "bun:test";
import { classifyMaskTiles, type DType, flashAttnPrefill, type StridedLayout, type Tensor } from "../../src/index.ts";
import { testTable } from "../helpers/table.ts";
import { type Refusal, refused, untyped, WatchedTensors } from "../helpers/watched.ts";

// Refusals of strides.

const scene = new WatchedTensors();
const { device } = scene;
const tensor = <T extends DType>(dtype: T, ...shape: number[]): Tensor<T> => scene.tensor(dtype, shape);

const strides = { batch: 4096, head: 1024, token: 64 };
const layout: StridedLayout = {
  batch: 1,
  heads: 2,
  kvHeads: 1,
  seqLenQ: 5,
  headDim: 64,
  q: strides,
  k: strides,
  v: strides,
  out: strides,
};
/** The elements from the first to the last: a head, 5 rows. */
const qLength = 1024 + 4 * 64 + 64;
const kLength = 6 * 64 + 64;
const byStrides = {
  q: tensor("bf16", qLength),
  k: tensor("bf16", kLength),
  v: tensor("bf16", kLength),
  out: tensor("bf16", qLength),
};
const valid = { ...byStrides, seqLenK: 7, layout };

/** As `refused`, with a change of the layout. */
function refusedLayout(...[name, spoil, ...rest]: Parameters<typeof refused>): Refusal {
  return refused(name, { layout: { ...layout, ...spoil } }, ...rest);
}

using preparing = device.pass();
const mask = tensor("bool", 5, 7);
const classes = classifyMaskTiles(preparing, { mask, headDim: 64 });

const tensors = ["q", "k", "v", "out"] as const;
const axes = ["batch", "head", "token"] as const;
const badStrides = [-1, 0.5, Number.NaN, 2 ** 53, Number.POSITIVE_INFINITY, "1", 1n, null, undefined, true];

const strideCases: readonly Refusal[] = [
  ...tensors.flatMap((name) =>
    axes.flatMap((axis) =>
      badStrides.map((value, index) =>
        refusedLayout(
          `${name}.${axis}, bad value ${index}`,
          { [name]: { ...strides, [axis]: value } },
          "invalid-argument",
          `layout.${name}.${axis}`,
          "0 to 2^53 - 1",
        ),
      ),
    ),
  ),
  ...tensors.map((name) =>
    refusedLayout(`no strides of ${name}`, { [name]: undefined }, "invalid-argument", `layout.${name}`),
  ),
  ...(["batch", "heads", "kvHeads", "seqLenQ", "headDim"] as const).flatMap((name) =>
    [0, -1, 1.5, Number.NaN, "2", undefined].map((value, index) =>
      refusedLayout(`${name}, bad value ${index}`, { [name]: value }, "invalid-argument", `layout.${name}`),
    ),
  ),
  ...(["batch", "heads", "kvHeads", "seqLenQ", "headDim"] as const).map((name) =>
    refusedLayout(`${name} of 2^31`, { [name]: 2 ** 31 }, "overflow", `layout.${name}`, 2 ** 31, 2 ** 31 - 1),
  ),
  refusedLayout("key heads that do not divide", { heads: 4, kvHeads: 3 }, "invalid-argument", "layout.kvHeads", 3, 4),
  refusedLayout("a head size of 65", { headDim: 65 }, "unsupported", "q", 65, "64, 80"),
  ...(["q", "out"] as const).flatMap((name) => [
    refused(
      `${name} one element short`,
      { [name]: tensor("bf16", qLength - 1) },
      "buffer-too-small",
      name,
      2 * qLength,
      2 * qLength - 2,
    ),
    refusedLayout(
      `${name} with longer rows`,
      { [name]: { ...strides, token: 65 } },
      "buffer-too-small",
      name,
      2 * qLength + 8,
      2 * qLength,
    ),
    refusedLayout(
      `${name} with a head stride of 2^40`,
      { [name]: { ...strides, head: 2 ** 40 } },
      "buffer-too-small",
      name,
      2 * (2 ** 40 + 320),
    ),
    refusedLayout(
      `a batch more beside ${name}`,
      { batch: 2, k: { ...strides, batch: 0 }, v: { ...strides, batch: 0 } },
      "buffer-too-small",
      "q",
      2 * (qLength + 4096),
    ),
  ]),
  ...(["k", "v"] as const).flatMap((name) => [
    refused(
      `${name} one element short`,
      { [name]: tensor("bf16", kLength - 1) },
      "buffer-too-small",
      name,
      2 * kLength,
      2 * kLength - 2,
    ),
    refusedLayout(
      `${name} with a token stride of 2^52`,
      { [name]: { ...strides, token: 2 ** 52 } },
      "buffer-too-small",
      name,
      2 * kLength,
    ),
  ]),
  refusedLayout(
    "a token stride beyond 64 bits in bytes",
    { k: { ...strides, token: 2 ** 53 - 1 }, seqLenQ: 5 },
    "buffer-too-small",
    "k",
  ),
  refusedLayout(
    "heads of the output on each other",
    { out: { ...strides, head: 0 } },
    "invalid-argument",
    "layout.out",
    "share memory",
  ),
  refusedLayout(
    "rows of the output on each other",
    { out: { ...strides, token: 63 } },
    "invalid-argument",
    "layout.out",
    "share memory",
  ),
  refused("no number of keys", { seqLenK: undefined }, "invalid-argument", "seqLenK"),
  refused("more keys than slots", { kvCapacity: 6 }, "invalid-argument", "seqLenK", 7, 6),
  refused("no key", { seqLenK: 0 }, "invalid-argument", "seqLenK", 0),
  refused("queries past the keys", { qOffsetInK: 3 }, "invalid-argument", "qOffsetInK", 3, 5, 7),
  refused(
    "a mask one element short",
    { mask: tensor("bool", 46), layout: { ...layout, mask: { batch: 0, head: 0, token: 10 } } },
    "buffer-too-small",
    "mask",
    47,
    46,
  ),
  refused(
    "a dense mask of another shape",
    { mask: tensor("bool", 5, 8) },
    "invalid-argument",
    "mask",
    "[5,8]",
    "[5, 7]",
  ),
  refused(
    "tile classes beside strides of the mask",
    {
      mask,
      tileClasses: classes,
      layout: { ...layout, mask: { batch: 0, head: 0, token: 7 } },
    },
    "invalid-argument",
    "tileClasses",
    "layout.mask",
  ),
];

const check = (refusal: Refusal) => scene.checkRefusal(untyped(flashAttnPrefill), valid, [valid.out], refusal);

testTable("strides", strideCases, check);

describe("what is next to a refusal and allowed", () => {
  test("strides up to the last element, and a batch that shares its keys", () => {
    using pass = device.pass();
    flashAttnPrefill(pass, { ...byStrides, seqLenK: 7, layout });
    flashAttnPrefill(pass, { ...byStrides, seqLenK: 7, kvCapacity: 7, qOffsetInK: 2, layout });
    flashAttnPrefill(pass, { ...byStrides, kvCapacity: 7, layout });
    const shared = { ...strides, batch: 0 };
    using q = tensor("bf16", qLength + 4096);
    using out = tensor("bf16", qLength + 4096);
    flashAttnPrefill(pass, { ...byStrides, q, out, seqLenK: 7, layout: { ...layout, batch: 2, k: shared, v: shared } });
    expect(pass.describe().length).toBe(4);
  });
});
