import { afterAll, expect } from "bun:test";
import { Device, dequantizeKv, type Tensor } from "../../src/index.ts";
import type { CodeFormat } from "../../src/reference/index.ts";
import { codeFormats, expectRight, formatName, sourceValues, TestCache } from "../helpers/quantized.ts";
import { testTable } from "../helpers/table.ts";

// The calls take kernels made for one size where there are some; those for any size are right there too.

const device = Device.open();
afterAll(() => device.dispose());

const suffixes = { nibble: "", byte: "_hb", dense: "_dense" } as const;
const cases = [64, 128, 256, 512].flatMap((headDim) =>
  codeFormats.map((format) => ({ name: `D=${headDim}, ${formatName(format)}`, headDim, format })),
);
const [nKvHeads, capacity, nTokens, start] = [2, 5, 4, 3];

/** A dispatch of one threadgroup a head vector. */
function dispatch(
  kernel: string,
  [first, second, third]: readonly [Tensor, Tensor, Tensor],
  headDim: number,
  { bits }: CodeFormat,
  last: readonly number[],
  more: Readonly<Record<number, Tensor>> = {},
): void {
  const params = new Uint32Array([headDim, nKvHeads, start, capacity, 1, 0, bits, nTokens, ...last]);
  new Float32Array(params.buffer)[5] = 1;
  using pass = device.pass();
  const constants = [
    // Of the headers that these kernels share with those for a head size.
    { index: 2, dtype: "bool", value: true },
    // Vectors of f32.
    { index: 6, dtype: "u32", value: 1 },
  ] as const;
  pass.dispatch(device.pipeline(kernel, { constants }), {
    buffers: { 0: first, 1: second, 2: third, 4: first, 5: second, 6: third, ...more },
    bytes: { 3: params },
    form: "threadgroups",
    grid: [nKvHeads * nTokens],
    threads: [96],
    threadgroupMemory: { 0: 8 * headDim },
  });
  pass.commitAndWait();
}

testTable("kernels for any size", cases, ({ headDim, format }) => {
  const cache = new TestCache(device, { format, headDim, nKvHeads, capacity, isSliding: true });
  const values = sourceValues(headDim, nTokens * nKvHeads, headDim);
  using src = device.tensor("f32", [nTokens, nKvHeads, headDim]).set(values);
  const suffix = suffixes[format.packing];
  // Nothing turns, so that a thread has one head.
  const consecutive = [0, nTokens, 0, 0, 0, 0, 0, 0, 0, 1, format.bits];
  // Neither positions nor a block table are read.
  const places = { 7: cache.norms, 8: cache.norms };
  dispatch(`hadamard_quantize_kv_seq${suffix}`, [src, cache.packed, cache.norms], headDim, format, consecutive, places);
  expectRight(cache.compare(values, start, nTokens, 0));

  using out = device.tensor("f32", [nKvHeads, nTokens, headDim]);
  dispatch(`hadamard_dequantize_kv${suffix}`, [cache.packed, cache.norms, out], headDim, format, [1]);
  using sized = device.tensor("f32", [nKvHeads, nTokens, headDim]);
  using pass = device.pass();
  dequantizeKv(pass, { ...cache.tensors, out: sized, ...format, readPosStart: start, isSliding: true });
  pass.commitAndWait();
  const expected = sized.view();
  const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  const worst = out.view().reduce((most, value, i) => Math.max(most, Math.abs(value - (expected[i] as number))), 0);
  expect(worst).toBeLessThan(2e-6 * largest);
});
