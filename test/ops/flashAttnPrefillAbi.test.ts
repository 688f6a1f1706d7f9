import { afterAll, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import {
  type AttentionParams,
  type FlashAttnPrefillRecord,
  packFlashAttnPrefill,
  structSizes,
} from "../../src/ffi/layout.ts";
import { dtypeCodes, NativeScene, tensorRecord } from "../helpers/abi.ts";
import { type AbiRefusal, expectOk, expectRefused } from "../helpers/abiRefusals.ts";
import { testTable } from "../helpers/table.ts";

// The kernel trusts AttnParams, so the library must not: every field that
// follows from another, and every extent that a stride leads to.

const scene = new NativeScene();
afterAll(() => scene.close());

const { native } = scene;
const { bf16 } = dtypeCodes;

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

const headMajor = (count: number, tokens: number) => ({ batch: count * tokens * D, head: tokens * D, token: D });

const params: AttentionParams = {
  B: batch,
  H: heads,
  D,
  qL,
  kL,
  gqaFactor: 2,
  scale: 1 / 16,
  softcapping: 1,
  NQ: 2,
  NK: 3,
  NQAligned: 1,
  NKAligned: 2,
  qLRem: 3,
  kLRem: 8,
  qLOff: 0,
  qStrides: headMajor(heads, qL),
  kStrides: headMajor(kvHeads, capacity),
  vStrides: headMajor(kvHeads, capacity),
  oStrides: headMajor(heads, qL),
};

const record: FlashAttnPrefillRecord = {
  q: whole("q"),
  k: whole("k"),
  v: whole("v"),
  out: whole("out"),
  mask: undefined,
  tileClasses: undefined,
  params,
  maskStrides: { batch: 0, head: 0, token: 0 },
  nKvHeads: kvHeads,
  causal: 0,
};

/** A 64-bit field to overwrite: strides of AttnParams that the packer, made for shapes, cannot write. */
interface Overwrite {
  /** Bytes from the start of AttnParams, which six tensors precede. */
  readonly offset: number;
  readonly value: bigint;
}

function send(pass: number, spoiled: FlashAttnPrefillRecord, overwrite?: Overwrite): number {
  const block = new Block(structSizes.MAFlashAttnPrefillArgs);
  packFlashAttnPrefill(block, spoiled);
  if (overwrite !== undefined) {
    const offset = 6 * structSizes.MATensor + overwrite.offset;
    new DataView(block.buffer).setBigInt64(offset, overwrite.value, true);
  }
  return native.ma_flash_attn_prefill(pass, block.bytes);
}

interface AbiCase extends AbiRefusal {
  readonly overwrite?: Overwrite;
  readonly spoil: Partial<FlashAttnPrefillRecord>;
}

function refused(name: string, spoil: AbiCase["spoil"], status: AbiCase["status"], ...says: AbiCase["says"]): AbiCase {
  return { name, spoil, status, says };
}

const withParams = (spoil: Partial<AttentionParams>): Partial<FlashAttnPrefillRecord> => ({
  params: { ...params, ...spoil },
});

/** A field that follows from others, a wrong value for it, and the right one. */
const derived: readonly (readonly [keyof AttentionParams, string, number, number])[] = [
  ["gqaFactor", "gqa_factor", 1, 2],
  ["gqaFactor", "gqa_factor", 0, 2],
  ["gqaFactor", "gqa_factor", 4, 2],
  ["NQ", "NQ", 1, 2],
  ["NQ", "NQ", 3, 2],
  ["NQ", "NQ", 2 ** 31 - 1, 2],
  ["NK", "NK", 2, 3],
  ["NK", "NK", 4, 3],
  ["NQAligned", "NQ_aligned", 2, 1],
  ["NQAligned", "NQ_aligned", 0, 1],
  ["NKAligned", "NK_aligned", 3, 2],
  ["NKAligned", "NK_aligned", 1, 2],
  ["qLRem", "qL_rem", 0, 3],
  ["qLRem", "qL_rem", 35, 3],
  ["kLRem", "kL_rem", 0, 8],
  ["kLRem", "kL_rem", 9, 8],
];

const extents: readonly (readonly [keyof AttentionParams, string])[] = [
  ["B", "B"],
  ["H", "H"],
  ["qL", "qL"],
  ["kL", "kL"],
];

const tensors: readonly (readonly ["q" | "k" | "v" | "out", "qStrides" | "kStrides" | "vStrides" | "oStrides"])[] = [
  ["q", "qStrides"],
  ["k", "kStrides"],
  ["v", "vStrides"],
  ["out", "oStrides"],
];

const cases: readonly AbiCase[] = [
  ...derived.map(([field, name, wrong, right]) =>
    refused(`${name} ${wrong}`, withParams({ [field]: wrong }), "invalidArgument", name, wrong, right),
  ),
  ...extents.flatMap(([field, name]) =>
    [0, -1, -(2 ** 31)].map((value) =>
      refused(`${name} ${value}`, withParams({ [field]: value }), "invalidArgument", name, value),
    ),
  ),
  refused("no key head", { nKvHeads: 0 }, "invalidArgument", "nKvHeads", 0),
  refused("3 key heads for 4 query heads", { nKvHeads: 3 }, "invalidArgument", "nKvHeads", 3, 4),
  refused("D 72", withParams({ D: 72 }), "unsupported", 72, 64, 256),
  refused("D -256", withParams({ D: -256 }), "invalidArgument", -256),
  refused("qL_off -1", withParams({ qLOff: -1 }), "invalidArgument", "qL_off", -1),
  refused("qL_off past the keys", withParams({ qLOff: 6 }), "invalidArgument", "qL_off", 6, 35, 40),
  refused("qL_off near 2^31", withParams({ qLOff: 2 ** 31 - 1 }), "invalidArgument", "qL_off", 2 ** 31 - 1),
  ...[Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY].map((scale) =>
    refused(`scale ${scale}`, withParams({ scale }), "invalidArgument", "scale"),
  ),
  ...tensors.flatMap(([name, strides]) => {
    const { [name]: full } = record;
    const spoilStride = (axis: "batch" | "head" | "token", value: number) =>
      withParams({ [strides]: { ...params[strides], [axis]: value } });
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
      refused(`${name} of f16`, { [name]: { ...full, dtype: dtypeCodes.f16 } }, "unsupported", "f16", "bf16"),
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
    withParams({ oStrides: { ...params.oStrides, token: 1 } }),
    "invalidArgument",
    "out",
  ),
  refused(
    "heads of the output on each other",
    withParams({ oStrides: { ...params.oStrides, head: 0 } }),
    "invalidArgument",
    "out",
  ),
  refused(
    "batches of the output on each other",
    withParams({ oStrides: { ...params.oStrides, batch: 0 } }),
    "invalidArgument",
    "out",
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

const strideFields = [
  ["q", "Q_strides", 64],
  ["k", "K_strides", 88],
  ["v", "V_strides", 112],
  ["out", "O_strides", 136],
] as const;

const strideCases = strideFields.flatMap(([tensor, field, first]) =>
  ["batch", "head", "token"].flatMap((axis, index) =>
    wildStrides.map(([value, status]): AbiCase => {
      const overwrite = { offset: first + 8 * index, value };
      const says = [status === "invalidArgument" ? field : tensor, `${value}`];
      return { name: `${tensor}, ${axis} stride ${value}`, spoil: {}, overwrite, status, says };
    }),
  ),
);

const pass = scene.pass();

testTable("ma_flash_attn_prefill refuses", [...cases, ...strideCases], (refusal) => {
  const { spoil, overwrite } = refusal;
  expectRefused(scene, pass, Object.values(buffers), refusal, () => send(pass, { ...record, ...spoil }, overwrite));
});

test("the pass that refused all this takes and runs the valid call, and strides of 0 where they only read", () => {
  expectOk(scene, send(pass, record));
  const shared = { ...params, kStrides: { ...params.kStrides, batch: 0 }, vStrides: { ...params.vStrides, head: 0 } };
  expectOk(scene, send(pass, { ...record, params: shared }));
  expect(buffers.out.bytes.every((byte) => byte === 0x5a)).toBe(true);
  expect(scene.describe(pass).length).toBe(2);
  scene.commitAndWait(pass);
  // All inputs are zeros.
  expect(buffers.out.bytes.every((byte) => byte === 0)).toBe(true);
});
