import { afterAll, expect, test } from "bun:test";
import { Block } from "../../src/ffi/block.ts";
import {
  packMAClassifyMaskTilesArgs,
  packMAFlashAttnPrefillArgs,
  structSizes,
} from "../../src/ffi/generated/structs.ts";
import { dtypeCodes, NativeScene, noAttentionOptions, statusCodes, tensorRecord } from "../helpers/abi.ts";
import { testTable } from "../helpers/table.ts";

// Over the same bytes a C caller may state masks of many shapes. Tile classes
// of one of them are of no use to another.

const scene = new NativeScene();
afterAll(() => scene.close());
const { native } = scene;

/** A mask as a caller states it, over the first bytes of one buffer. */
interface Mask {
  readonly dtype: "bool" | "bf16" | "f16";
  readonly batch: number;
  readonly heads: number;
  readonly rows: number;
  readonly keys: number;
  /** Batch, head and row, in elements. */
  readonly strides: readonly [number, number, number];
  readonly headDim: number;
}

const base: Mask = { dtype: "bool", batch: 1, heads: 1, rows: 64, keys: 64, strides: [0, 0, 64], headDim: 64 };

const mostBatches = 4;
const maskBuffer = scene.buffer(4096);
const classBuffer = scene.buffer(1024);
const vectors = [0, 1, 2, 3].map(() => scene.buffer(mostBatches * 128 * 512 * 2));

const maskTensor = ({ dtype }: Mask) => tensorRecord(maskBuffer.handle, dtypeCodes[dtype], 0, 4096);
const classTensor = tensorRecord(classBuffer.handle, dtypeCodes.u8, 0, 1024);

function classify(pass: number, mask: Mask): number {
  const { batch: B, heads: H, rows: qL, keys: kL, strides, headDim } = mask;
  const block = new Block(structSizes.MAClassifyMaskTilesArgs);
  const params = { B, H, qL, kL, M_strides: strides };
  packMAClassifyMaskTilesArgs(block, 0, { mask: maskTensor(mask), tileClasses: classTensor, params, headDim });
  return native.ma_classify_mask_tiles(pass, block.bytes);
}

function attend(pass: number, mask: Mask): number {
  const { batch: B, heads: H, rows: qL, keys: kL, strides, headDim: D } = mask;
  const dtype = dtypeCodes[mask.dtype === "bool" ? "bf16" : mask.dtype];
  const [q, k, v, out] = vectors.map(({ handle, bytes }) => tensorRecord(handle, dtype, 0, bytes.length));
  const rowsOf = (tokens: number): readonly number[] => [H * tokens * D, tokens * D, D];
  const block = new Block(structSizes.MAFlashAttnPrefillArgs);
  packMAFlashAttnPrefillArgs(block, 0, {
    q,
    k,
    v,
    out,
    mask: maskTensor(mask),
    tileClasses: classTensor,
    params: {
      B,
      H,
      D,
      qL,
      kL,
      scale: 1,
      softcapping: 1,
      qL_off: 0,
      Q_strides: rowsOf(qL),
      K_strides: rowsOf(kL),
      V_strides: rowsOf(kL),
      O_strides: rowsOf(qL),
    },
    maskParams: { M_strides: strides },
    nKvHeads: H,
    causal: 0,
    ...noAttentionOptions,
  });
  return native.ma_flash_attn_prefill(pass, block.bytes);
}

/** The status of attention with `used` after the classes were made of `made`. */
function classifyThenAttend(made: Mask, used: Mask): number {
  const pass = scene.pass();
  try {
    expect(classify(pass, made)).toBe(statusCodes.ok);
    return attend(pass, used);
  } finally {
    native.ma_pass_release(pass);
  }
}

// Each has the base's 4,096 bytes, from the first to the last.
testTable(
  "tile classes of another mask over the same bytes are refused",
  [
    { name: "rows and keys", mask: { rows: 32, keys: 128, strides: [0, 0, 128] }, says: "bool [1, 1, 32, 128]" },
    { name: "dtype", mask: { dtype: "bf16", rows: 32 }, says: "bf16 [1, 1, 32, 64]" },
    { name: "row stride", mask: { rows: 33, strides: [0, 0, 126] }, says: "strides 0, 0, 126" },
    { name: "batches", mask: { batch: 2, rows: 32, strides: [2048, 0, 64] }, says: "bool [2, 1, 32, 64]" },
    { name: "heads", mask: { heads: 2, rows: 32, strides: [0, 2048, 64] }, says: "bool [1, 2, 32, 64]" },
    { name: "head size and so tiles", mask: { headDim: 512 }, says: "tiles of 16 x 16" },
  ] satisfies { name: string; mask: Partial<Mask>; says: string }[],
  ({ mask, says }) => {
    expect(classifyThenAttend(base, { ...base, ...mask })).toBe(statusCodes.invalidArgument);
    const { argument, message } = scene.lastFailure();
    expect(argument).toBe("tileClasses");
    expect(message).toContain("bool [1, 1, 64, 64], strides 0, 0, 64, in tiles of 64 x 32");
    expect(message).toContain(says);
  },
);

test("f16 and bf16 masks of one shape differ", () => {
  const made: Mask = { ...base, dtype: "f16", rows: 32 };
  expect(classifyThenAttend(made, { ...made, dtype: "bf16" })).toBe(statusCodes.invalidArgument);
});

testTable(
  "what reads the same tiles is taken",
  [
    { name: "the same", mask: {} },
    { name: "one plane for all batches", mask: { batch: 4 } },
    { name: "one plane for all heads", mask: { heads: 4 } },
    { name: "the stride of a single batch and head", mask: { strides: [77, 78, 64] } },
    { name: "another head size with the same tiles", mask: { headDim: 112 } },
  ] satisfies { name: string; mask: Partial<Mask> }[],
  ({ mask }) => {
    expect(classifyThenAttend(base, { ...base, ...mask })).toBe(statusCodes.ok);
    expect(classifyThenAttend({ ...base, ...mask }, base)).toBe(statusCodes.ok);
  },
);

test("the stride of a single row", () => {
  const made: Mask = { ...base, rows: 1, strides: [0, 0, 64] };
  expect(classifyThenAttend(made, { ...made, strides: [0, 0, 99] })).toBe(statusCodes.ok);
});
