import { describe, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import { packMAFlashAttnPrefillArgs, structSizes } from "../../src/ffi/generated/structs.ts";
import { flashAttnPrefill } from "../../src/index.ts";
import { dtypeCodes, NativeScene, noAttentionOptions, statusCodes, tensorRecord } from "../helpers/abi.ts";
import { struct } from "../helpers/packed.ts";
import { testTable } from "../helpers/table.ts";
import { type Refusal, refused, untyped, WatchedTensors } from "../helpers/watched.ts";

// Refusals of the options of attention, by the package and by the C ABI.

const scene = new WatchedTensors();
const { device } = scene;
const bf16 = (...shape: number[]) => scene.tensor("bf16", shape);
const f32 = (...shape: number[]) => scene.tensor("f32", shape);
const i32 = (...shape: number[]) => scene.tensor("i32", shape);

const valid = {
  ...{ q: bf16(2, 4, 6, 64), k: bf16(2, 2, 10, 64), v: bf16(2, 2, 10, 64), out: bf16(2, 4, 6, 64) },
  ...{ lse: f32(2, 4, 6), causal: true, qOffsetInK: 4, window: 3, softcap: 5 },
};
const positions = { qOffsetInK: undefined };
const packed = {
  ...{ q: bf16(12, 4, 64), k: bf16(12, 2, 64), v: bf16(12, 2, 64), out: bf16(12, 4, 64), lse: f32(12, 4) },
  ...{ seqOffsets: i32(4), qOffsetInK: undefined },
};
const mask = scene.tensor("bool", [6, 10]);

const numbers: readonly Refusal[] = [
  refused("a window of 0", { window: 0 }, "invalid-argument", "window", 0, 1),
  ...[-1, 1.5, Number.NaN, 2 ** 32, "3", null].map((window) =>
    refused(`a window of ${window}`, { window }, "invalid-argument", "window"),
  ),
  refused("a window of 2^31", { window: 2 ** 31 }, "overflow", "window", 2 ** 31),
  refused("a window of 2^30 + 1", { window: 2 ** 30 + 1 }, "invalid-argument", "window", 2 ** 30 + 1, 2 ** 30),
  refused("a window without causal", { causal: false }, "invalid-argument", "window", 3, "causal"),
  ...[0, -1, Number.NaN, Number.POSITIVE_INFINITY, 1e39, 1e-50, "5", null].map((softcap) =>
    refused(`a softcap of ${softcap}`, { softcap }, "invalid-argument", "softcap"),
  ),
  ...[0, 1, "true", null].map((isSliding) =>
    refused(`isSliding ${isSliding}`, { isSliding }, "invalid-argument", "isSliding"),
  ),
];

const shapes: readonly Refusal[] = [
  refused("sinks of another length", { sinks: f32(3) }, "invalid-argument", "sinks", 3, 4),
  refused("sinks of two axes", { sinks: f32(1, 4) }, "invalid-argument", "sinks", "1,4"),
  refused("sinks of f16", { sinks: scene.tensor("f16", [4]) }, "unsupported", "sinks", "f16", "f32"),
  refused("slopes of another length", { alibiSlopes: f32(5) }, "invalid-argument", "alibiSlopes", 5, 4),
  refused("slopes of bf16", { alibiSlopes: bf16(4) }, "unsupported", "alibiSlopes", "bf16", "f32"),
  refused("logarithms of other rows", { lse: f32(2, 4, 5) }, "invalid-argument", "lse", "2,4,5", "2,4,6"),
  refused("logarithms of bf16", { lse: bf16(2, 4, 6) }, "unsupported", "lse", "bf16", "f32"),
  refused("lengths of another batch", { ...positions, seqLens: i32(3) }, "invalid-argument", "seqLens", 3, 2),
  refused(
    "lengths of u32",
    { ...positions, seqLens: scene.tensor("u32", [2]) },
    "unsupported",
    "seqLens",
    "u32",
    "i32",
  ),
  refused("lengths and an offset", { seqLens: i32(2) }, "invalid-argument", "qOffsetInK", 4),
  refused("lengths and seqLenK", { ...positions, seqLens: i32(2), seqLenK: 9 }, "invalid-argument", "seqLenK", 9),
  refused("a table of another batch", { blockTable: i32(3, 2) }, "invalid-argument", "blockTable", 3, 2),
  refused("a table of i8", { blockTable: scene.tensor("i8", [2, 2]) }, "unsupported", "blockTable", "i8", "i32"),
  refused("more keys than pages", { blockTable: i32(2, 2), seqLenK: 21 }, "invalid-argument", "seqLenK", 21, 20),
  refused("a ring of pages", { blockTable: i32(2, 2), isSliding: true }, "unsupported", "isSliding", 1),
  refused("more keys than slots", { seqLenK: 11 }, "invalid-argument", "seqLenK", 11, 10),
  refused(
    "a ring beyond what is counted",
    { isSliding: true, seqLenK: 2 ** 30 + 1 },
    "overflow",
    "seqLenK",
    2 ** 30 + 1,
    2 ** 30,
  ),
  ...(
    [
      ["seqLens", { ...positions, seqLens: i32(2) }],
      ["a ring", { isSliding: true }],
      ["pages", { blockTable: i32(2, 1) }],
    ] as const
  ).map(([name, spoil]) => refused(`a mask with ${name}`, { ...spoil, mask }, "unsupported", "mask", "plane")),
  refused("strides and a ring", { layout: stridesOf(), isSliding: true, seqLenK: 10 }, "unsupported", "layout"),
  refused(
    "strides, other logarithms",
    { layout: stridesOf(), seqLenK: 10, lse: f32(8, 6) },
    "invalid-argument",
    "lse",
    "8,6",
    "2,4,6",
  ),
];

function stridesOf() {
  const strides = (heads: number, tokens: number) => ({ batch: heads * tokens * 64, head: tokens * 64, token: 64 });
  const [q, k] = [strides(4, 6), strides(2, 10)];
  return { batch: 2, heads: 4, kvHeads: 2, seqLenQ: 6, headDim: 64, q, k, v: k, out: q };
}

const packs: readonly Refusal[] = [
  refused("rows of four axes", { ...packed, q: valid.q }, "invalid-argument", "q", "2,4,6,64", "[total, H, D]"),
  refused("an output of four axes", { ...packed, out: valid.out }, "invalid-argument", "out", "2,4,6,64"),
  refused("offsets of no sequence", { ...packed, seqOffsets: i32(1) }, "invalid-argument", "seqOffsets", 0),
  refused("offsets of f32", { ...packed, seqOffsets: f32(4) }, "unsupported", "seqOffsets", "f32", "i32"),
  refused("keys of other rows", { ...packed, k: bf16(13, 2, 64), v: bf16(13, 2, 64) }, "invalid-argument", "k", 13, 12),
  refused("a cache of other sequences", { ...packed, k: valid.k, v: valid.v }, "invalid-argument", "k", 2, 3),
  refused("logarithms by heads", { ...packed, lse: f32(4, 12) }, "invalid-argument", "lse", "4,12", "12,4"),
  refused("packed keys and seqLenK", { ...packed, seqLenK: 12 }, "invalid-argument", "seqLenK", 12),
  refused("packed keys and lengths", { ...packed, seqLens: i32(3) }, "invalid-argument", "k", "seqLens"),
  refused("packed keys in a ring", { ...packed, isSliding: true }, "invalid-argument", "k", "isSliding"),
  refused("packed rows and an offset", { ...packed, qOffsetInK: 1 }, "invalid-argument", "qOffsetInK", 1),
  refused("packed rows and their order", { ...packed, qLayout: "head-major" }, "invalid-argument", "qLayout"),
  refused("packed rows and a mask", { ...packed, mask: scene.tensor("bool", [12, 12]) }, "unsupported", "mask"),
  refused("packed rows and strides", { ...packed, layout: stridesOf() }, "unsupported", "layout"),
];

const overlaps: readonly Refusal[] = [
  ...(["sinks", "alibiSlopes"] as const).map((name) =>
    refused(`logarithms over ${name}`, { [name]: partOfLse(4) }, "invalid-argument", "lse", name, "overlap"),
  ),
  ...(["sinks", "alibiSlopes", "lse"] as const).map((name) =>
    refused(`${name} disposed`, { [name]: scene.disposed("f32", [4]) }, "disposed", name),
  ),
  refused("sinks of another device", { sinks: scene.tensor("f32", [4], scene.otherDevice) }, "invalid-handle", "sinks"),
];

function partOfLse(count: number) {
  return valid.lse.reshape([48]).slice(0, count);
}

const check = (refusal: Refusal) =>
  scene.checkRefusal(untyped(flashAttnPrefill), valid, [valid.out, valid.lse], refusal);

testTable("numbers", numbers, check);
testTable("shapes", shapes, check);
testTable("packed rows", packs, check);
testTable("tensors", overlaps, check);

describe("by the C ABI, what the package never sends", () => {
  const native = new NativeScene();
  const tensor = (dtype: keyof typeof dtypeCodes, bytes: number) =>
    tensorRecord(native.buffer(bytes).handle, dtypeCodes[dtype], 0, bytes);
  const rows = 12;
  const record = {
    ...{ q: tensor("bf16", rows * 64 * 2), k: tensor("bf16", rows * 64 * 2), v: tensor("bf16", rows * 64 * 2) },
    ...{ out: tensor("bf16", rows * 64 * 2), mask: undefined, tileClasses: undefined, maskParams: undefined },
    ...{ nKvHeads: 1, causal: 1 },
    ...noAttentionOptions,
    lse: tensor("f32", rows * 4),
    params: {
      ...{ B: 1, H: 1, D: 64, qL: rows, kL: rows, scale: 1, softcapping: 1, qL_off: 0 },
      ...{ Q_strides: [0, 0, 64], K_strides: [0, 0, 64], V_strides: [0, 0, 64], O_strides: [0, 0, 64] },
    },
  } as const;
  const options = {
    ...{ window: 0, softcap: 0, capacity: 0, is_sliding: 0, page_tokens: 0, n_pages: 0 },
    L_strides: [0, 0, 1],
  } as const;
  const send = (spoil: object, change: object = {}, present = 0) => {
    const block = new Block(structSizes.MAFlashAttnPrefillArgs);
    packMAFlashAttnPrefillArgs(block, 0, { ...record, ...spoil, options: { ...options, ...change } });
    // `present` is the third field of the options.
    const { offset } = struct("MAFlashAttnPrefillArgs").fields.find(({ name }) => name === "options") ?? { offset: 0 };
    if (present !== 0) new DataView(block.buffer).setUint32(offset + 8, present, true);
    const pass = native.pass();
    return native.native.ma_flash_attn_prefill(pass, block.bytes);
  };
  const apart = { params: { ...record.params, K_strides: [6 * 64, 0, 64] } };
  const table = { blockTable: tensor("i32", 8) };

  test.each([
    ["valid", {}, {}, "ok"],
    ["a window below 0", {}, { window: -1 }, "invalidArgument"],
    ["a softcap that is no number", {}, { softcap: Number.NaN }, "invalidArgument"],
    ["a softcap below 0", {}, { softcap: -1 }, "invalidArgument"],
    ["is_sliding 2", {}, { is_sliding: 2, capacity: 12 }, "invalidArgument"],
    ["a ring without slots", {}, { is_sliding: 1 }, "invalidArgument"],
    ["a ring of slots below 0", {}, { is_sliding: 1, capacity: -5 }, "invalidArgument"],
    ["a capacity that is not kL", {}, { capacity: 11 }, "invalidArgument"],
    ["pages without a table", {}, { page_tokens: 4, capacity: 12, n_pages: 3 }, "invalidArgument"],
    ["a table without pages", table, {}, "invalidArgument"],
    ["pages of slots below 0", table, { page_tokens: -4, capacity: 12, n_pages: 3 }, "invalidArgument"],
    ["pages that do not divide", table, { page_tokens: 5, capacity: 12, n_pages: 3 }, "invalidArgument"],
    ["a pool of none", table, { page_tokens: 6, capacity: 12, n_pages: 0 }, "invalidArgument"],
    ["a pool below 0", table, { page_tokens: 6, capacity: 12, n_pages: -1 }, "invalidArgument"],
    ["a pool of 2^30 + 1", table, { page_tokens: 6, capacity: 12, n_pages: 2 ** 30 + 1 }, "overflow"],
    ["a pool without a table", {}, { n_pages: 3, softcap: 5 }, "invalidArgument"],
    ["a pool alone", {}, { n_pages: 3 }, "invalidArgument"],
    ["a ring of 2^30 + 1 slots", {}, { is_sliding: 1, capacity: 2 ** 30 + 1 }, "overflow"],
    ["keys beyond the pages", table, { page_tokens: 3, capacity: 6, n_pages: 4 }, "overflow"],
    ["a pool larger than k", { ...table, ...apart }, { page_tokens: 6, capacity: 12, n_pages: 3 }, "bufferTooSmall"],
    ["a pool as large as k", { ...table, ...apart }, { page_tokens: 6, capacity: 12, n_pages: 2 }, "ok"],
    [
      "a table too short",
      { blockTable: tensor("i32", 4) },
      { page_tokens: 6, capacity: 12, n_pages: 2 },
      "bufferTooSmall",
    ],
    ["a pool that fits", table, { page_tokens: 6, capacity: 12, n_pages: 2 }, "ok"],
    ["logarithms on each other", {}, { L_strides: [0, 0, 0] }, "invalidArgument"],
    ["logarithms beyond the end", {}, { L_strides: [0, 0, 2] }, "bufferTooSmall"],
    ["offsets too short", { seqOffsets: tensor("i32", 4) }, {}, "bufferTooSmall"],
    ["lengths too short", { seqLens: tensor("i32", 2) }, {}, "bufferTooSmall"],
    ["sinks too short", { sinks: tensor("f32", 2) }, {}, "bufferTooSmall"],
    ["packedKeys 2", { packedKeys: 2, seqOffsets: tensor("i32", 8) }, {}, "invalidArgument"],
    ["packed keys without offsets", { packedKeys: 1 }, {}, "invalidArgument"],
    [
      "packed keys of another length",
      { packedKeys: 1, seqOffsets: tensor("i32", 8), params: { ...record.params, kL: 11 } },
      {},
      "invalidArgument",
    ],
  ] as const)("%s", (_, spoil, change, status) => {
    expect(send(spoil, change)).toBe(status === "ok" ? 0 : statusCodes[status]);
  });

  test("a derived field that is wrong", () => {
    // MA_ATTN_CAUSAL and MA_ATTN_LSE are 9.
    expect([send({}, {}, 9), send({}, {}, 8), send({}, {}, 11)]).toEqual([
      0,
      statusCodes.invalidArgument,
      statusCodes.invalidArgument,
    ]);
    native.close();
  });

  test("the device's other tests go on", () => {
    using pass = device.pass();
    flashAttnPrefill(pass, valid);
    expect(pass.describe().length).toBe(1);
  });
});
