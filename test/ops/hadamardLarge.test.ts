import { afterAll, expect, test } from "bun:test";
import { normalArray } from "../../scripts/lib/random.ts";
import { packingCodes } from "../../src/ffi/generated/codes.ts";
import { at } from "../../src/reference/at.ts";
import { quantizeVector, referenceDequantizeKv } from "../../src/reference/index.ts";
import { dtypeCodes, NativeScene, statusCodes, tensorRecord } from "../helpers/abi.ts";
import { type CallArgs, type CallName, hadamardCalls } from "../helpers/hadamardCalls.ts";

// Buffers beyond 4 GiB: what no test touches is not backed by memory.

const scene = new NativeScene();
afterAll(() => scene.close());

const none = { v: {}, rmsScratch: undefined, rmsCoordinates: 0, batch: 1, nTokens: 1, srcTokOffset: 0, nSrcTokens: 1 };

function tensor(dtype: keyof typeof dtypeCodes, byteLength: number) {
  const { handle, part } = scene.largeBuffer(byteLength);
  return { record: tensorRecord(handle, dtypeCodes[dtype], 0, byteLength), part };
}

test("more threads than 32 bits count are refused", () => {
  const vectors = 2 ** 30;
  const k = {
    vectors: tensor("bf16", 8 * vectors).record,
    packed: tensor("u8", vectors).record,
    norms: tensor("f32", 4 * vectors).record,
  };
  const heads = 2 ** 15;
  const cache = { headDim: 4, nKvHeads: heads, position: 0, capacity: heads, isSliding: 0, scaleFactorD512: 1 };
  const format = { bits: 2, packing: packingCodes.dense };
  const pass = scene.pass();
  const args = { ...none, k, cache, ...format, nTokens: heads };
  expect(hadamardCalls.decode(pass, args)).toBe(statusCodes.overflow);
  for (const word of [heads, 2 ** 32 - 1]) expect(scene.lastError()).toContain(String(word));
  expect(scene.describe(pass)).toEqual([]);
}, 60_000);

test.each(["token", "tokens"] as const)(
  "%s: the last slot of the last head, 8 GiB into the codes",
  (call: CallName) => {
    const [headDim, nKvHeads, capacity] = [64, 2, 2 ** 26];
    const last = nKvHeads * capacity - 1;
    const [source, out] = [tensor("f32", 4 * nKvHeads * headDim), tensor("f32", 4 * nKvHeads * headDim)];
    const packed = tensor("u8", headDim * (last + 1));
    const norms = tensor("f32", 4 * (last + 1));
    const values = normalArray(nKvHeads * headDim, 1, 3);
    source.part(0, values.byteLength).set(new Uint8Array(values.buffer));
    const cache = { headDim, nKvHeads, position: capacity - 1, capacity, isSliding: 0, scaleFactorD512: 1 };
    const common = { ...none, cache, bits: 8, packing: packingCodes.byte };
    const stored = { packed: packed.record, norms: norms.record };
    const pass = scene.pass();
    const encode: CallArgs = { ...common, k: { vectors: source.record, ...stored } };
    const decode: CallArgs = { ...common, k: { vectors: out.record, ...stored } };
    expect([hadamardCalls[call](pass, encode), hadamardCalls.decode(pass, decode)]).toEqual([0, 0]);
    scene.commitAndWait(pass);

    const format = { bits: 8, packing: "byte" } as const;
    const expected = quantizeVector(values.subarray(headDim), format);
    const codes = packed.part(headDim * last, headDim).slice();
    // Rounding may move a code on a boundary to its neighbour.
    const off = codes.filter((code, i) => code !== at(expected.codes, i));
    expect(off.length).toBeLessThanOrEqual(1);
    const norm = new Float32Array(norms.part(4 * last, 4).slice().buffer);
    expect(Math.abs(at(norm, 0) / (expected.norms[0] as number) - 1)).toBeLessThan(1e-6);
    const read = new Float32Array(out.part(4 * headDim, 4 * headDim).slice().buffer);
    const positions = { nKvHeads: 1, headDim, capacity: 1, posStart: 0, nTokens: 1, isSliding: false };
    const wanted = referenceDequantizeKv({ packed: codes, norms: norm }, positions, format);
    expect(wanted.reduce((worst, value, i) => Math.max(worst, Math.abs(value - at(read, i))), 0)).toBeLessThan(1e-5);
  },
);
