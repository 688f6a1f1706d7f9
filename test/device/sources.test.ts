/** Sources that are replaced, and kernels that have names of built-in ones. */
import { expect, test } from "bun:test";
import { Device, type Pipeline } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

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
  const name = device.kernelNames[0] ?? "";
  device.registerSource("a.metal", source(6, name));
  using own = device.pipeline(name);
  expect(result(device, own)).toBe(6);
  // The built-in one takes function constants.
  expectRefusal(() => device.pipeline(name, { builtIn: true }), "shader-compilation", undefined, "needs values");
  expectRefusal(() => device.pipeline("k", { builtIn: true }), "kernel-not-found", "kernel", "none is named");
});
