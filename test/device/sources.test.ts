/** Sources that are replaced, and kernels that have names of built-in ones. */
import { describe, expect, test } from "bun:test";
import { Device, type Pipeline } from "../../src/index.ts";
import { expectRefusal, thrownBy } from "../helpers/errors.ts";

const source = (value: number, name = "k"): string =>
  `#include <metal_stdlib>\nkernel void ${name}(device int *out [[buffer(0)]]) { out[0] = ${value}; }\n`;

function result(device: Device, pipeline: Pipeline): number {
  using out = device.tensor("i32", [1]);
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers: { 0: out }, grid: 1, threads: 1 });
  pass.commitAndWait();
  return out.view()[0] ?? Number.NaN;
}

test("a source is replaced; pipelines of the old one go on", () => {
  using device = Device.open();
  device.registerSource("a.metal", source(1));
  using old = device.pipeline("k");
  device.registerSource("a.metal", source(2), { replace: true });
  using made = device.pipeline("k");
  expect([result(device, old), result(device, made)]).toEqual([1, 2]);
  expect(device.kernelNames.filter((name) => name === "k")).toHaveLength(1);
});

const added = (value: number): string =>
  `#include <metal_stdlib>
   kernel void k(device int *out [[buffer(0)]], constant uint &n [[buffer(1)]]) { out[0] = 10 * out[0] + ${value} + n; }`;

/** The kernel of a.metal with `text` in the place of what it was. */
function replaced(device: Device, text: string): Pipeline {
  device.registerSource("a.metal", text, { replace: true });
  return device.pipeline("k");
}

describe("a source that is replaced over and over", () => {
  const none = new Uint32Array(1);

  test("leaves a pass with what was encoded into it, once the pipelines are disposed", async () => {
    using device = Device.open();
    using out = device.tensor("i32", [1]);
    using pass = device.pass();
    for (const value of [1, 2, 3, 4]) {
      using pipeline = replaced(device, added(value));
      pass.dispatch(pipeline, { buffers: { 0: out }, bytes: { 1: none }, grid: 1, threads: 1 });
    }
    replaced(device, added(5)).dispose();
    await pass.commit();
    expect(out.view()[0]).toBe(1234);
    expect(pass.describe().map(({ kernel }) => kernel)).toEqual(["k", "k", "k", "k"]);
  });

  test("leaves a recorded pass with what was recorded, and its runs when it is disposed", async () => {
    using device = Device.open();
    using out = device.tensor("i32", [1]);
    using kept = replaced(device, added(0));
    const step = device.record((pass) => {
      const n = pass.parameter("n", { min: 0, max: 9 });
      for (const value of [1, 2]) {
        using pipeline = replaced(device, added(value));
        pass.dispatch(pipeline, { buffers: { 0: out }, bytes: { 1: none }, grid: 1, threads: 1 });
      }
      pass.dispatch(kept, { buffers: { 0: out }, bytes: { 1: n }, grid: 1, threads: 1 });
    });
    replaced(device, added(5)).dispose();
    const runs = [step.commit({ n: 3 }), step.commit({ n: 4 })];
    step.dispose();
    replaced(device, added(6)).dispose();
    await Promise.all(runs);
    expect(out.view()[0]).toBe(123124);
  });

  if (process.platform === "linux") {
    test("gives the memory of the kernels back", async () => {
      using device = Device.open();
      const mappings = async (): Promise<number> =>
        (await Bun.file("/proc/self/maps").text()).split("memfd:softmetal").length - 1;
      const replace = (count: number): void => {
        for (let i = 0; i < count; i++) {
          using pipeline = replaced(device, source(i % 2));
          expect(result(device, pipeline)).toBe(i % 2);
        }
      };
      replace(8);
      const before = await mappings();
      replace(64);
      // A kernel has five.
      expect((await mappings()) - before).toBeLessThan(64);
    });
  }
});

test("a source that does not compile is replaced by one that does", () => {
  using device = Device.open();
  device.registerSource("a.metal", "kernel void k(device int *out) { out[0] = missing; }");
  expectRefusal(() => device.pipeline("k"), "shader-compilation", undefined, "missing");
  device.registerSource("a.metal", source(3), { replace: true });
  using made = device.pipeline("k");
  expect(result(device, made)).toBe(3);
});

test("replace registers where there is nothing to replace, and refuses kernels of other sources", () => {
  using device = Device.open();
  device.registerSource("a.metal", source(4), { replace: true });
  using made = device.pipeline("k");
  expect(result(device, made)).toBe(4);
  expectRefusal(
    () => device.registerSource("b.metal", source(5), { replace: true }),
    "invalid-argument",
    undefined,
    "b.metal: kernel k is already defined by a.metal",
  );
  expectRefusal(() => device.registerSource("a.metal", source(5)), "invalid-argument", undefined, "already defined");
});

test("a kernel beside the built-in one of its name", () => {
  using device = Device.open();
  const builtIn = device.kernelNames;
  const name = builtIn[0] ?? "";
  device.registerSource("a.metal", source(6, name));
  using own = device.pipeline(name);
  expect(result(device, own)).toBe(6);
  // The built-in one takes function constants.
  expectRefusal(() => device.pipeline(name, { builtIn: true }), "shader-compilation", undefined, "needs values");
  device.registerSource("b.metal", source(7, "own_kernel"));
  const error = thrownBy(() => device.pipeline("own_kernel", { builtIn: true }));
  expect([error.code, error.argument]).toEqual(["kernel-not-found", "kernel"]);
  expect(error.message).toContain("none of the library's is named");
  expect(error.message.split("known: ")[1]?.split(", ")).toEqual(builtIn);
  expect(error.message).not.toContain("did you mean own_kernel");
  expectRefusal(() => device.pipeline("k", { builtIn: true }), "kernel-not-found", "kernel", "library's is named");
});
