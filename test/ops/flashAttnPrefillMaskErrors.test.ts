import { afterAll, describe, expect, test } from "bun:test";
import { display } from "../../src/checks.ts";
import {
  buildCausalMask,
  buildSlidingWindowMask,
  classifyMaskTiles,
  Device,
  type DType,
  flashAttnPrefill,
  type MetalAttentionErrorCode,
  type Pass,
  type StridedLayout,
  type Tensor,
} from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { testTable } from "../helpers/table.ts";

// Refusals of masks, tile classes and strides; nothing is encoded by any.

const device = Device.open();
afterAll(() => device.dispose());

type Fields = Record<string, unknown>;

const tensor = (dtype: DType, ...shape: number[]): Tensor => device.tensor(dtype, shape);

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

interface Refusal {
  readonly name: string;
  readonly call: (pass: Pass) => unknown;
  readonly code: MetalAttentionErrorCode;
  readonly argument: string | undefined;
  readonly says: readonly (string | number)[];
}

function refused(
  name: string,
  spoil: Fields,
  code: MetalAttentionErrorCode,
  argument: string | undefined,
  ...says: readonly (string | number)[]
): Refusal {
  const args = { ...valid, ...spoil };
  return { name, call: (pass) => flashAttnPrefill(pass, args as typeof valid), code, argument, says };
}

const flat = (dtype: DType, length: number): Tensor => tensor(dtype, length);
const both = flat("bf16", 20_000);

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
    "8 x 8",
    "32 x 16",
    64,
  ),
  refused(
    "tile classes of wide tiles",
    { ...wide, tileClasses: classes },
    "invalid-argument",
    "tileClasses",
    "32 x 16",
    "8 x 8",
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
  q: flat("bf16", qLength),
  k: flat("bf16", kLength),
  v: flat("bf16", kLength),
  out: flat("bf16", qLength),
};
const stridedArgs = { ...byStrides, mask: undefined, seqLenK: 7, layout };

function refusedLayout(
  name: string,
  spoil: Fields,
  code: MetalAttentionErrorCode,
  argument: string | undefined,
  ...says: readonly (string | number)[]
): Refusal {
  return refused(name, { ...stridedArgs, layout: { ...layout, ...spoil } }, code, argument, ...says);
}

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
    [0, -1, 1.5, 2 ** 31, Number.NaN, "2", undefined].map((value, index) =>
      refusedLayout(`${name}, bad value ${index}`, { [name]: value }, "invalid-argument", `layout.${name}`),
    ),
  ),
  refusedLayout("key heads that do not divide", { heads: 4, kvHeads: 3 }, "invalid-argument", "layout.kvHeads", 3, 4),
  refusedLayout("a head size of 65", { headDim: 65 }, "unsupported", undefined, 65, "64, 80"),
  ...(["q", "out"] as const).flatMap((name) => [
    refused(
      `${name} one element short`,
      { ...stridedArgs, [name]: flat("bf16", qLength - 1) },
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
      { ...stridedArgs, [name]: flat("bf16", kLength - 1) },
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
  refused("no number of keys", { ...stridedArgs, seqLenK: undefined }, "invalid-argument", "seqLenK"),
  refused("more keys than slots", { ...stridedArgs, kvCapacity: 6 }, "invalid-argument", "seqLenK", 7, 6),
  refused("no key", { ...stridedArgs, seqLenK: 0 }, "invalid-argument", "seqLenK", 0),
  refused("queries past the keys", { ...stridedArgs, qOffsetInK: 3 }, "invalid-argument", "qOffsetInK", 3, 5, 7),
  refused(
    "a mask one element short",
    { ...stridedArgs, mask: flat("bool", 46), layout: { ...layout, mask: { batch: 0, head: 0, token: 10 } } },
    "buffer-too-small",
    "mask",
    47,
    46,
  ),
  refused(
    "a dense mask of another shape",
    { ...stridedArgs, mask: tensor("bool", 5, 8) },
    "invalid-argument",
    "mask",
    "[5,8]",
    "[5, 7]",
  ),
  refused(
    "tile classes beside strides of the mask",
    {
      ...stridedArgs,
      mask: valid.mask,
      tileClasses: classes,
      layout: { ...layout, mask: { batch: 0, head: 0, token: 7 } },
    },
    "invalid-argument",
    "tileClasses",
    "layout.mask",
  ),
];

function refusedCall(
  name: string,
  call: Refusal["call"],
  code: MetalAttentionErrorCode,
  argument: string | undefined,
  ...says: readonly (string | number)[]
): Refusal {
  return { name, call, code, argument, says };
}

const untyped = (op: (pass: Pass, args: never) => unknown, args: unknown) => (pass: Pass) => op(pass, args as never);
const build = (args: Fields) => untyped(buildSlidingWindowMask, { mask: valid.mask, window: 4, ...args });
const classify = (args: Fields) => untyped(classifyMaskTiles, { mask: valid.mask, headDim: 64, ...args });
const empty = valid.mask.slice(0, 0);

const maskOpCases: readonly Refusal[] = [
  ...[0, -1, 1.5, 2 ** 32, Number.NaN, "4", null, undefined, 4n].map((window) =>
    refusedCall(`window ${display(window)}`, build({ window }), "invalid-argument", "window"),
  ),
  refusedCall("a window of 2^31", build({ window: 2 ** 31 }), "overflow", "window", 2 ** 31, 2 ** 31 - 1),
  ...[-1, 1.5, 2 ** 32, Number.NaN, "4", null].map((qOffsetInK) =>
    refusedCall(`offset ${display(qOffsetInK)}`, build({ qOffsetInK }), "invalid-argument", "qOffsetInK"),
  ),
  refusedCall("an offset of 2^31", build({ qOffsetInK: 2 ** 31 }), "overflow", "qOffsetInK", 2 ** 31),
  refusedCall("positions beyond 2^31", build({ qOffsetInK: 2 ** 31 - qL }), "overflow", "qOffsetInK", 2 ** 31 - qL, qL),
  refusedCall(
    "causal positions beyond 2^31",
    untyped(buildCausalMask, { mask: valid.mask, qOffsetInK: 2 ** 31 - qL }),
    "overflow",
    "qOffsetInK",
    qL,
  ),
  ...(["f32", "u8", "i32"] as const).flatMap((dtype) => [
    refusedCall(
      `a mask of ${dtype} to build`,
      build({ mask: tensor(dtype, qL, kL) }),
      "unsupported",
      "mask",
      dtype,
      "bf16, f16 or bool",
    ),
    refusedCall(
      `a mask of ${dtype} to classify`,
      classify({ mask: tensor(dtype, qL, kL) }),
      "unsupported",
      "mask",
      dtype,
      "bf16, f16 or bool",
    ),
  ]),
  refusedCall(
    "a mask of four axes to build",
    build({ mask: tensor("bool", 1, 1, qL, kL) }),
    "invalid-argument",
    "mask",
    "[qL, kL]",
    `1,1,${qL},${kL}`,
  ),
  refusedCall(
    "a mask of three axes to classify",
    classify({ mask: tensor("bool", 1, qL, kL) }),
    "invalid-argument",
    "mask",
    `1,${qL},${kL}`,
  ),
  refusedCall("no row to build", build({ mask: empty }), "invalid-argument", "mask", `0,${kL}`),
  refusedCall("no row to classify", classify({ mask: empty }), "invalid-argument", "mask", `0,${kL}`),
  ...[0, 65, 1024, 2 ** 32 - 1].map((headDim) =>
    refusedCall(`a head size of ${headDim}`, classify({ headDim }), "unsupported", "headDim", headDim, "64, 80"),
  ),
  ...[-1, 2 ** 32, Number.NaN, "64", undefined, null].map((headDim) =>
    refusedCall(`head size ${display(headDim)}`, classify({ headDim }), "invalid-argument", "headDim"),
  ),
  refusedCall(
    "classes of other tiles to reuse",
    classify({ reuse: narrowClasses }),
    "invalid-argument",
    "reuse",
    "8 x 8",
    "32 x 16",
  ),
  refusedCall(
    "classes of another mask to reuse",
    classify({ reuse: longerClasses }),
    "invalid-argument",
    "reuse",
    kL + 1,
    kL,
  ),
  refusedCall("disposed classes to reuse", classify({ reuse: goneClasses }), "disposed", "reuse"),
  refusedCall("no classes to reuse", classify({ reuse: valid.mask }), "invalid-argument", "reuse"),
];

function check({ call, code, argument, says }: Refusal): void {
  using pass = device.pass();
  expectRefusal(() => call(pass), code, argument, ...says);
  expect(pass.describe()).toEqual([]);
  flashAttnPrefill(pass, { ...valid, tileClasses: classes });
  expectRefusal(() => call(pass), code, argument, ...says);
  expect(pass.describe().length).toBe(1);
}

testTable("masks", maskCases, check);
testTable("tile classes", classCases, check);
testTable("strides", strideCases, check);
testTable("mask builders and the classifier", maskOpCases, check);

describe("what is next to a refusal and allowed", () => {
  test("strides up to the last element, and a batch that shares its keys", () => {
    using pass = device.pass();
    flashAttnPrefill(pass, { ...byStrides, seqLenK: 7, layout });
    flashAttnPrefill(pass, { ...byStrides, seqLenK: 7, kvCapacity: 7, qOffsetInK: 2, layout });
    flashAttnPrefill(pass, { ...byStrides, kvCapacity: 7, layout });
    const shared = { ...strides, batch: 0 };
    using q = flat("bf16", qLength + 4096);
    using out = flat("bf16", qLength + 4096);
    flashAttnPrefill(pass, { ...byStrides, q, out, seqLenK: 7, layout: { ...layout, batch: 2, k: shared, v: shared } });
    expect(pass.describe().length).toBe(4);
  });

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
        flashAttnPrefill(pass, { ...valid, mask, tileClasses: classifyMaskTiles(pass, { mask, headDim: 128 }) });
      }
    }
    expect(pass.describe().length).toBe(30);
  });
});
