import { afterAll, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import {
  type AttnParams,
  type MAFlashAttnPrefillArgs,
  packMAFlashAttnPrefillArgs,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { dtypeCodes, NativeScene, noAttentionOptions, tensorRecord } from "../helpers/abi.ts";
import { type AbiRefusal, expectOk, expectRefused } from "../helpers/abiRefusals.ts";
import { testTable } from "../helpers/table.ts";

// The kernel trusts AttnParams, so the library must not: every field that
// follows from another, and every extent that a stride leads to.

const scene = new NativeScene();
afterAll(() => scene.close());

const { native } = scene;
const { bf16 } = dtypeCodes;

type Strides = [batch: number, head: number, token: number];
const axes = { batch: 0, head: 1, token: 2 } as const;

// B = 2, H = 4 on 2 key heads, 35 queries, 40 keys of 48 slots, D = 256.
const [batch, heads, kvHeads, qL, kL, capacity, D] = [2, 4, 2, 35, 40, 48, 256];
const qBytes = batch * heads * qL * D * 2;
const kBytes = batch * kvHeads * capacity * D * 2;
const buffers = {
  q: scene.buffer(qBytes),
  k: scene.buffer(kBytes),
  v: scene.buffer(kBytes),
  out: scene.buffer(qBytes),
};
const whole = (name: keyof typeof buffers) => tensorRecord(buffers[name].handle, bf16, 0, buffers[name].bytes.length);
buffers.out.bytes.fill(0x5a);

const headMajor = (count: number, tokens: number): Strides => [count * tokens * D, tokens * D, D];

const params: AttnParams = {
  B: batch,
  H: heads,
  D,
  qL,
  kL,
  scale: 1 / 16,
  softcapping: 1,
  qL_off: 0,
  Q_strides: headMajor(heads, qL),
  K_strides: headMajor(kvHeads, capacity),
  V_strides: headMajor(kvHeads, capacity),
  O_strides: headMajor(heads, qL),
};

const record = {
  q: whole("q"),
  k: whole("k"),
  v: whole("v"),
  out: whole("out"),
  mask: undefined,
  tileClasses: undefined,
  params,
  maskParams: undefined,
  nKvHeads: kvHeads,
  causal: 0,
  ...noAttentionOptions,
} satisfies MAFlashAttnPrefillArgs;

/** A field of AttnParams to overwrite: a derived one, which no record has, or a stride that is no number of TypeScript. */
interface Overwrite {
  /** Bytes from the start of AttnParams, which six tensors precede. */
  readonly offset: number;
  readonly value: number | bigint;
}

function send(pass: number, spoiled: MAFlashAttnPrefillArgs, overwrite?: Overwrite): number {
  const block = new Block(structSizes.MAFlashAttnPrefillArgs);
  packMAFlashAttnPrefillArgs(block, 0, spoiled);
  if (overwrite !== undefined) {
    const offset = 6 * structSizes.MATensor + overwrite.offset;
    const view = new DataView(block.buffer);
    if (typeof overwrite.value === "bigint") view.setBigInt64(offset, overwrite.value, true);
    else view.setInt32(offset, overwrite.value, true);
  }
  return native.ma_flash_attn_prefill(pass, block.bytes);
}

interface AbiCase extends AbiRefusal {
  readonly overwrite?: Overwrite;
  readonly spoil: Partial<MAFlashAttnPrefillArgs>;
}

function refused(
  name: string,
  spoil: AbiCase["spoil"],
  status: AbiCase["status"],
  argument: string,
  ...says: AbiCase["says"]
): AbiCase {
  return { name, spoil, status, argument, says };
}

const withParams = (spoil: Partial<AttnParams>): Partial<MAFlashAttnPrefillArgs> => ({
  params: { ...params, ...spoil },
});

/** A field that follows from others, its bytes from the start of AttnParams, wrong values for it, and the right one. */
const derived: readonly (readonly [field: string, offset: number, wrong: readonly number[], right: number])[] = [
  ["gqa_factor", 20, [1, 4, -1], 2],
  ["NQ", 32, [1, 3, 2 ** 31 - 1], 2],
  ["NK", 36, [2, 4, -(2 ** 31)], 3],
  ["NQ_aligned", 40, [2, -1], 1],
  ["NK_aligned", 44, [3, 1], 2],
  ["qL_rem", 48, [35, 1], 3],
  ["kL_rem", 52, [9, 1], 8],
];

const extents = [
  ["B", "B"],
  ["H", "H"],
  ["qL", "qL"],
  ["kL", "seqLenK"],
] as const;

const tensors = [
  ["q", "Q_strides", "layout.q"],
  ["k", "K_strides", "layout.k"],
  ["v", "V_strides", "layout.v"],
  ["out", "O_strides", "layout.out"],
] as const;

const cases: readonly AbiCase[] = [
  ...derived.flatMap(([field, offset, wrong, right]) =>
    wrong.map((value) => ({
      ...refused(`${field} ${value}`, {}, "invalidArgument", field, value, right),
      overwrite: { offset, value },
    })),
  ),
  ...extents.flatMap(([field, name]) =>
    [0, -1, -(2 ** 31)].map((value) =>
      refused(`${name} ${value}`, withParams({ [field]: value }), "invalidArgument", name, value),
    ),
  ),
  refused("no key head", { nKvHeads: 0 }, "invalidArgument", "nKvHeads", 0),
  refused("3 key heads for 4 query heads", { nKvHeads: 3 }, "invalidArgument", "H", 4, "nKvHeads", 3),
  refused("D 72", withParams({ D: 72 }), "unsupported", "q", "D=72", 64, 256),
  refused("D -256", withParams({ D: -256 }), "invalidArgument", "D", -256),
  refused("qL_off -1", withParams({ qL_off: -1 }), "invalidArgument", "qOffsetInK", -1),
  refused("qL_off past the keys", withParams({ qL_off: 6 }), "invalidArgument", "qOffsetInK", 6, 35, 40),
  refused("qL_off near 2^31", withParams({ qL_off: 2 ** 31 - 1 }), "invalidArgument", "qOffsetInK", 2 ** 31 - 1),
  ...[Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map((scale) =>
    refused(`scale ${scale}`, withParams({ scale }), "invalidArgument", "scale"),
  ),
  ...tensors.flatMap(([name, strides]) => {
    const { [name]: full } = record;
    const spoilStride = (axis: keyof typeof axes, value: number) =>
      withParams({ [strides]: params[strides].with(axes[axis], value) });
    const length = buffers[name].bytes.length;
    // The last two keys of k and v are slots that are not in use.
    const inUse = name === "k" || name === "v" ? length - (capacity - kL) * D * 2 : length;
    return [
      refused(
        `${name} too short by one element`,
        { [name]: { ...full, lengthLow: inUse - 2 } },
        "bufferTooSmall",
        name,
        inUse - 2,
        inUse,
      ),
      refused(`${name} beyond its buffer`, { [name]: { ...full, offsetLow: 512 } }, "bufferTooSmall", name, length),
      refused(
        `${name} at an odd byte`,
        { [name]: { ...full, offsetLow: 1, lengthLow: length - 512 } },
        "invalidArgument",
        name,
        1,
        2,
      ),
      refused(
        `${name} of f16`,
        { [name]: { ...full, dtype: dtypeCodes.f16 } },
        "unsupported",
        name === "q" ? "k" : name,
        "f16",
        "bf16",
      ),
      refused(`${name} of no dtype`, { [name]: { ...full, dtype: 77 } }, "invalidArgument", name, 77),
      refused(`no ${name}`, { [name]: tensorRecord(0, 0, 0, 0) }, "invalidHandle", name),
      refused(`${name} with a token stride too long`, spoilStride("token", 4 * D), "bufferTooSmall", name, length),
      refused(`${name} with a head stride too long`, spoilStride("head", 2 ** 20), "bufferTooSmall", name, length),
      refused(`${name} with a batch stride too long`, spoilStride("batch", 2 ** 40), "bufferTooSmall", name, length),
    ];
  }),
  refused("out in q's buffer", { out: record.q }, "invalidArgument", "out", "q", "overlap"),
  refused(
    "rows of the output on each other",
    withParams({ O_strides: params.O_strides.with(axes.token, 1) }),
    "invalidArgument",
    "layout.out",
    "rows of out",
  ),
  refused(
    "heads of the output on each other",
    withParams({ O_strides: params.O_strides.with(axes.head, 0) }),
    "invalidArgument",
    "layout.out",
    "rows of out",
  ),
  refused(
    "batches of the output on each other",
    withParams({ O_strides: params.O_strides.with(axes.batch, 0) }),
    "invalidArgument",
    "layout.out",
    "rows of out",
  ),
  refused("tile classes without a mask", { tileClasses: record.q }, "invalidArgument", "tileClasses", "mask"),
  refused("causal 2", { causal: 2 }, "invalidArgument", "causal", 2),
];

const wildStrides = [
  [-1n, "invalidArgument"],
  [-256n, "invalidArgument"],
  [-(2n ** 63n), "invalidArgument"],
  [2n ** 63n - 1n, "overflow"],
  [2n ** 50n, "bufferTooSmall"],
] as const;

const strideCases = tensors.flatMap(([tensor, strides, argument], position) =>
  Object.entries(axes).flatMap(([axis, index]) =>
    wildStrides.map(([value, status]): AbiCase => {
      const overwrite = { offset: 64 + 24 * position + 8 * index, value };
      const at = status === "invalidArgument" ? argument : tensor;
      return { ...refused(`${strides}, ${axis} ${value}`, {}, status, at, `${value}`), overwrite };
    }),
  ),
);

const pass = scene.pass();

testTable("ma_flash_attn_prefill refuses", [...cases, ...strideCases], (refusal) => {
  const { spoil, overwrite } = refusal;
  expectRefused(scene, pass, Object.values(buffers), refusal, () => send(pass, { ...record, ...spoil }, overwrite));
});

test("a derived field may be 0 or right", () => {
  const other = scene.pass();
  expectOk(scene, send(other, record));
  const expected = scene.argumentBytes(other, 0, 4);
  for (const [, offset, , right] of derived) expectOk(scene, send(other, record, { offset, value: right }));
  expect(scene.describe(other).map((_, dispatch) => scene.argumentBytes(other, dispatch, 4))).toEqual(
    Array.from({ length: 1 + derived.length }, () => expected),
  );
});

test("the pass that refused all this takes and runs the valid call, and strides of 0 where they only read", () => {
  expectOk(scene, send(pass, record));
  const { K_strides, V_strides } = params;
  const shared = {
    ...params,
    K_strides: K_strides.with(axes.batch, 0),
    V_strides: V_strides.with(axes.head, 0),
  };
  expectOk(scene, send(pass, { ...record, params: shared }));
  expect(buffers.out.bytes.every((byte) => byte === 0x5a)).toBe(true);
  expect(scene.describe(pass).length).toBe(2);
  scene.commitAndWait(pass);
  // All inputs are zeros.
  expect(buffers.out.bytes.every((byte) => byte === 0)).toBe(true);
});
