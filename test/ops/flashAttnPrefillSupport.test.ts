import { afterAll, describe, expect, test } from "bun:test";
import { Device, flashAttnPrefillSupport } from "../../src/index.ts";
import { promisedHeadSizes } from "../helpers/promised.ts";

const device = Device.open();
afterAll(() => device.dispose());

const table = flashAttnPrefillSupport();

describe("the support table", () => {
  test("has both dtypes, eight head sizes and three kinds of mask, each combination once", () => {
    const keys = new Set(table.map(({ dtype, headDim, mask }) => `${dtype} ${headDim} ${mask}`));
    const expected = ["bf16", "f16"].flatMap((dtype) =>
      promisedHeadSizes.flatMap((headDim) => ["none", "additive", "bool"].map((mask) => `${dtype} ${headDim} ${mask}`)),
    );
    expect([...keys].sort()).toEqual(expected.sort());
    expect(table.length).toBe(expected.length);
  });

  test("names the attention kernels that the library has, and no other", () => {
    const kernels = device.kernelNames.filter((name) => /^flash_attn_prefill_(?!decode_)/.test(name));
    expect([...new Set(table.map(({ kernel }) => kernel))].sort()).toEqual(kernels.sort());
    // The twelve entry points of the reference.
    for (const dtype of ["bf16", "f16"])
      for (const headDim of [64, 256, 512])
        for (const mask of ["", "_boolmask"])
          expect(kernels).toContain(`flash_attn_prefill_${dtype}_d${headDim}${mask}`);
  });

  test("cannot be changed", () => {
    expect(Object.isFrozen(table)).toBe(true);
    expect(table.every(Object.isFrozen)).toBe(true);
  });

  test("states the error contract of each row", () => {
    for (const { dtype, maxErrorToPlain, maxNmse } of table) {
      expect([maxErrorToPlain, maxNmse]).toEqual([2, dtype === "bf16" ? 1e-5 : 1e-6]);
    }
  });

  test.each(table.filter(({ mask }) => mask !== "none").map((row) => [row.kernel, row] as const))(
    "%s takes the threadgroup memory and the threads that its row says",
    (kernel, { threadgroupMemory, simdgroups }) => {
      const indices = [200, 201, 300, 301, 303, 304, 305, 306, 307];
      const constants = indices.map((index) => ({ index, dtype: "bool", value: true }) as const);
      using pipeline = device.pipeline(kernel, { constants });
      expect(pipeline.info.staticThreadgroupMemoryLength).toBe(threadgroupMemory);
      expect(simdgroups).toBe(4);
      expect(pipeline.info.maxTotalThreadsPerThreadgroup).toBe(32 * simdgroups);
      expect(threadgroupMemory).toBeLessThanOrEqual(32 * 1024);
    },
    60_000,
  );
});
