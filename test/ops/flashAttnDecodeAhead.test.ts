import { afterAll, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { Device, flashAttnDecode } from "../../src/index.ts";
import { type CacheFormat, type DecodeCase, DecodeScene, runDecode } from "../helpers/decode.ts";
import { headSizes } from "../helpers/quantized.ts";

// On a GPU decode attention asks for rows of a dense cache before it uses them. These kernels are others, and their
// bits are the same.

const device = Device.open();
const ahead = openWith({ SOFTMETAL_AHEAD: "1" });
afterAll(() => {
  device.dispose();
  ahead.dispose();
});

const base = (k: CacheFormat, changes: Partial<DecodeCase> = {}): DecodeCase => ({
  headDim: 64,
  heads: 6,
  kvHeads: 2,
  rows: 1,
  lengths: [290],
  capacity: 300,
  k,
  v: k,
  sink: 1,
  ...changes,
});

/** The kernel that attends, and the bits of the result. */
function resultOf(entry: DecodeCase, on: Device): { kernel: string; bits: string } {
  const scene = new DecodeScene(on, entry);
  using pass = on.pass();
  flashAttnDecode(pass, scene.args);
  const kernel = pass.describe()[0]?.kernel ?? "";
  runDecode(on, scene);
  const bits = [scene.out, scene.lse].map(({ bytes }) => Buffer.from(bytes).toString("hex")).join(" ");
  scene.dispose();
  return { kernel, bits };
}

function expectSame(entry: DecodeCase, isAhead = true): void {
  const plain = resultOf(entry, device);
  const other = resultOf(entry, ahead);
  if (device.info.backend === "SoftMetal") expect(plain.kernel).not.toContain("ahead");
  expect(other.kernel.includes("_ahead_")).toBe(isAhead);
  expect(other.bits).toBe(plain.bits);
}

test.each(headSizes)("a query, and tiles of queries, D = %d", (headDim) => {
  for (const heads of [2, 6]) expectSame(base("f16", { headDim, heads }));
});

test.each([64, 112, 512])("K and V in formats of their own, D = %d", (headDim) => {
  expectSame(base("bf16", { v: "f32", headDim }));
  expectSame(base("f32", { v: "bf16", headDim }));
});

test.each(["f16", "bf16"] as const)("V as a part of K, in %s", (k) => {
  for (const heads of [1, 3]) expectSame(base(k, { headDim: 576, heads, kvHeads: 1 }));
});

test.each(["f32", "f16"] as const)("rings, pages, windows, rows and trees, over %s", (k) => {
  expectSame(base(k, { isSliding: true, capacity: 100, lengths: [290, 71] }));
  expectSame(base(k, { pageTokens: 16, capacity: 320, pageOrder: 3, lengths: [290, 33, 0] }));
  expectSame(base(k, { window: 40, rows: 5 }));
  expectSame(base(k, { rows: 7, treeColumns: 9, hasLengths: true, lengths: [31, 290] }));
  expectSame(base(k, { softcap: 0.5, hasSlopes: true, lengths: [1, 32, 256, 257] }));
});

test.each([{ bits: 4, packing: "nibble" }] as const)("codes are not asked for ahead, %o", (codes) => {
  expectSame(base(codes), false);
  expectSame(base(codes, { v: "f16" }), false);
  expectSame(base("f16", { v: codes }), false);
});

test("nor rows that begin at other addresses than multiples of 16 bytes", () => {
  const kernels = [0, 8, 4].map((skipped) => {
    const cache = () =>
      ahead
        .tensor("f16", [skipped + 32 * 64])
        .slice(skipped, skipped + 32 * 64)
        .reshape([1, 1, 32, 64]);
    const row = () => ahead.tensor("f32", [1, 1, 1, 64]);
    using pass = ahead.pass();
    flashAttnDecode(pass, { q: row(), k: cache(), v: cache(), out: row(), seqLen: 32 });
    return pass.describe()[0]?.kernel;
  });
  expect(kernels).toEqual(["flash_attn_vec_ahead_d64_q1", "flash_attn_vec_ahead_d64_q1", "flash_attn_vec_d64_q1"]);
});
