import { afterAll, describe, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { thrownBy } from "../helpers/errors.ts";
import { run } from "../helpers/run.ts";

// SOFTMETAL_GUARD lays zones of a known pattern around every buffer. The tests of the library run in that mode.

const device = openWith({ SOFTMETAL_GUARD: "1" });
afterAll(() => device.dispose());
device.registerSource(
  "stray.metal",
  `#include <metal_stdlib>
   using namespace metal;
   kernel void stray_write(device uchar *x [[buffer(0)]], constant int &at [[buffer(1)]]) { x[at] = 1; }
   kernel void stray_far(device uchar *x [[buffer(0)]], constant int &at [[buffer(1)]]) { x[at] = 1; x[long(at) - (1l << 40)] = 1; }
   kernel void stray_read(device float *x [[buffer(0)]], constant int &at [[buffer(1)]]) { x[0] = x[at]; }
   kernel void stray_read_half(device half *x [[buffer(0)]], constant int &at [[buffer(1)]]) { x[0] = x[at]; }`,
);

/** Runs a kernel that touches element `at` of a tensor, and gives the tensor's first element. */
function touch(kernel: string, dtype: "u8" | "f32" | "f16", length: number, at: number): number | undefined {
  using pipeline = device.pipeline(kernel);
  using tensor = device.tensor(dtype, [length]);
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: { 0: tensor }, bytes: { 1: new Int32Array([at]) }, grid: 1, threads: 1 });
  pass.commitAndWait();
  return tensor.toFloat32Array()[0];
}

// An Apple GPU has no such mode.
if (device.info.backend === "SoftMetal")
  describe("a guarded buffer", () => {
    test.each([
      { length: 100, at: 100, place: "0 bytes behind its end" },
      { length: 1, at: 4000, place: "3999 bytes behind its end" },
      { length: 4096, at: 8191, place: "4095 bytes behind its end" },
      { length: 4095, at: -1, place: "1 bytes before its start" },
      { length: 10000, at: -4096, place: "4096 bytes before its start" },
    ])("of $length bytes fails the pass that writes byte $at", ({ length, at, place }) => {
      const error = thrownBy(() => touch("stray_write", "u8", length, at));
      expect(error.code).toBe("execution");
      expect(error.message).toContain(`a buffer of ${length} bytes was left: byte ${at}, ${place}, was written`);
    });

    test("is named beside all others that the pass left, once", () => {
      using pipeline = device.pipeline("stray_write");
      using left = device.tensor("u8", [100]);
      using other = device.tensor("u8", [200]);
      const run = (at: number) => {
        using pass = device.pass();
        for (const tensor of [left, other]) {
          pass.dispatch(pipeline, { buffers: { 0: tensor }, bytes: { 1: new Int32Array([at]) }, grid: 1, threads: 1 });
        }
        pass.commitAndWait();
      };
      expect(thrownBy(() => run(300)).message).toMatch(
        /of 100 bytes was left: byte 300.*of 200 bytes was left: byte 300/,
      );
      run(99);
    });

    test("is named after a fault of the kernel that left it, and not again when it is released", () => {
      const { code, message } = thrownBy(() => touch("stray_far", "u8", 100, 101));
      expect(code).toBe("execution");
      expect(message).toContain("kernel 'stray_far' (dispatch 1 of 1) wrote to address");
      expect(message).toContain("a buffer of 100 bytes was left: byte 101");
    });

    test.each([0, 1, 99])("lets a pass write byte %d of 100", (at) => {
      touch("stray_write", "u8", 100, at);
    });

    test.each([
      { kernel: "stray_read", dtype: "f32" },
      { kernel: "stray_read_half", dtype: "f16" },
    ] as const)("gives what is not a number to a kernel that reads $dtype behind or before it", ({ kernel, dtype }) => {
      expect([7, 8, 50, -1].map((at) => touch(kernel, dtype, 7, at))).toEqual([NaN, NaN, NaN, NaN]);
      expect(touch(kernel, dtype, 7, 6)).toBe(0);
    });

    test("ends the process that writes behind it and releases it", async () => {
      const { status, output, errors } = await run([process.execPath, `${import.meta.dir}/guard-child.ts`], {
        env: { ...process.env, SOFTMETAL_GUARD: "1" },
      });
      expect(status).not.toBe(0);
      expect(output).toBe("written\n");
      expect(errors).toContain(
        "SoftMetal: a buffer of 16 bytes was left: byte 16, 0 bytes behind its end, was written",
      );
    });
  });
