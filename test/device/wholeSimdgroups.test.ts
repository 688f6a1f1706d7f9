/** Kernels that need whole SIMD groups: those with 8x8 matrices, and built-in ones that are compiled for rows of them. */
import { afterAll, describe, expect, test } from "bun:test";
import { Device, type DispatchOptions } from "../../src/index.ts";
import { thrownBy } from "../helpers/errors.ts";

const device = Device.open();
afterAll(() => device.dispose());

device.registerSource(
  "square.metal",
  `#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;
kernel void square(device float *out [[buffer(0)]], const device float *in [[buffer(1)]]) {
  simdgroup_float8x8 m, r;
  simdgroup_load(m, in);
  simdgroup_multiply(r, m, m);
  simdgroup_store(r, out);
}
`,
);

const attention = "flash_attn_vec_reduce_d128";

type Extent = readonly [number, number, number];

/** Memory for each kernel. Its parameters are zeros, with which none reads more. */
const memory = () => device.tensor("f32", [4096]);
const argumentsOf: Record<string, Pick<DispatchOptions, "buffers" | "bytes">> = {
  square: { buffers: { 0: memory(), 1: memory() } },
  [attention]: {
    buffers: { 0: memory(), 1: memory(), 2: memory(), 6: memory(), 7: memory() },
    bytes: { 5: new Uint32Array(64) },
  },
};

/** A pass with a dispatch of a kernel. */
function passOf(kernel: string, grid: Extent, threads: Extent) {
  using pipeline = device.pipeline(kernel);
  const pass = device.pass();
  pass.dispatch(pipeline, { ...argumentsOf[kernel], grid: [...grid], threads: [...threads] });
  return pass;
}

// What another device says of such a dispatch is its own affair.
if (device.info.backend === "SoftMetal") {
  describe.each<[kernel: string, grid: Extent, threads: Extent]>([
    ["square", [32, 1, 1], [32, 1, 1]],
    ["square", [32, 3, 1], [32, 2, 1]],
    ["square", [8, 4, 1], [8, 4, 1]],
    [attention, [32, 1, 1], [32, 1, 1]],
    [attention, [96, 3, 1], [64, 2, 1]],
  ])("%s", (kernel, grid, threads) => {
    test(`${grid.join(" x ")} threads in threadgroups of ${threads.join(" x ")} run`, () => {
      using pass = passOf(kernel, grid, threads);
      pass.commitAndWait();
    });
  });

  const matrices = "uses simdgroup matrices, which need whole SIMD groups of 32 threads";
  const rows = "is compiled for rows of whole SIMD groups, of 32 threads each";
  describe.each<[kernel: string, grid: Extent, threads: Extent, why: string, found: string]>([
    ["square", [40, 1, 1], [40, 1, 1], matrices, "40 x 1 x 1"],
    ["square", [48, 1, 1], [32, 1, 1], matrices, "16 x 1 x 1"],
    ["square", [16, 3, 1], [16, 2, 1], matrices, "16 x 1 x 1"],
    [attention, [31, 1, 1], [31, 1, 1], rows, "31 x 1 x 1"],
    [attention, [72, 1, 1], [64, 1, 1], rows, "8 x 1 x 1"],
    [attention, [16, 2, 1], [16, 2, 1], rows, "16 x 2 x 1"],
  ])("%s", (kernel, grid, threads, why, found) => {
    test(`${grid.join(" x ")} threads in threadgroups of ${threads.join(" x ")} are refused`, () => {
      using pass = passOf(kernel, grid, threads);
      const { code, message } = thrownBy(() => pass.commitAndWait());
      expect(code).toBe("execution");
      expect(message).toContain(`kernel '${kernel}' ${why}; the grid has a threadgroup of ${found} threads`);
    });
  });
}
