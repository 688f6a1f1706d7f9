import { afterAll, describe, expect, test } from "bun:test";
import {
  buildSlidingWindowMask,
  classifyMaskTiles,
  Device,
  flashAttnPrefill,
  type Pass,
  type Tensor,
  type TileClasses,
} from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

// Passes run in the order of their commits, which need not be that of encoding: what tile classes are made of, and who
// reads them, is held to that order too.

const device = Device.open();
afterAll(() => device.dispose());

const [length, headDim] = [64, 64];
const shape = [1, 1, length, headDim];
const [q, k, out] = [device.tensor("f16", shape), device.tensor("f16", shape), device.tensor("f16", shape)];
// Key j has the values j, so that a row is the mean of the keys that it attends.
const v = device.tensor("f16", shape).set(Float32Array.from({ length: length * headDim }, (_, i) => i >> 6));
const everyKey = new Uint8Array(length * length).fill(1);
/** The last row where it attends all keys, or itself alone. */
const [meanOfAll, itself] = [(length - 1) / 2, length - 1];

const unmasked = () => device.tensor("bool", [length, length]).set(everyKey);

/** Commits what `encode` encodes, and gives what it returns. */
function run<T>(encode: (pass: Pass) => T): T {
  using pass = device.pass();
  const result = encode(pass);
  pass.commitAndWait();
  return result;
}

const classify = (mask: Tensor<"bool">, reuse?: TileClasses) =>
  run((pass) => classifyMaskTiles(pass, { mask, headDim, ...(reuse === undefined ? {} : { reuse }) }));
const narrow = (pass: Pass, mask: Tensor<"bool">) => buildSlidingWindowMask(pass, { mask, window: 1 });
const attend = (pass: Pass, mask: Tensor<"bool">, tileClasses: TileClasses) =>
  flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses });
const lastRow = () => out.toFloat32Array().at(-1);

const refusesCommit = (pass: Pass, says: string) =>
  expectRefusal(() => pass.commitAndWait(), "invalid-state", undefined, says);

describe("a pass is not committed", () => {
  test("before the one that makes the tile classes that it reads; after it, it is", () => {
    const mask = unmasked();
    using making = device.pass();
    const tileClasses = classifyMaskTiles(making, { mask, headDim });
    using reading = device.pass();
    attend(reading, mask, tileClasses);
    refusesCommit(reading, "not committed");
    expect(reading.info.state).toBe("encoding");
    making.commitAndWait();
    reading.commitAndWait();
    expect(lastRow()).toBe(meanOfAll);
  });

  test("when that one was given up", () => {
    const mask = unmasked();
    const making = device.pass();
    const tileClasses = classifyMaskTiles(making, { mask, headDim });
    using reading = device.pass();
    attend(reading, mask, tileClasses);
    making.dispose();
    refusesCommit(reading, "not committed");
  });

  const writes: readonly (readonly [string, (mask: Tensor<"bool">, tileClasses: TileClasses) => void])[] = [
    ["another pass", (mask) => run((pass) => narrow(pass, mask))],
    ["the host", (mask) => mask.slice(3, 4).set(new Uint8Array(length))],
    ["classes of another mask in their place", (_, tileClasses) => classify(unmasked(), tileClasses)],
    ["the host, in the classes", (_, { tensor }) => tensor.set(new Uint8Array(tensor.length))],
  ];
  test.each(writes)("after a write that came between: by %s", (_, write) => {
    const mask = unmasked();
    const tileClasses = classify(mask);
    using reading = device.pass();
    attend(reading, mask, tileClasses);
    write(mask, tileClasses);
    refusesCommit(reading, "stale");
  });

  test("after the pass that made them made others in their place", () => {
    const mask = unmasked();
    using making = device.pass();
    const tileClasses = classifyMaskTiles(making, { mask, headDim });
    using reading = device.pass();
    attend(reading, mask, tileClasses);
    classifyMaskTiles(making, { mask: unmasked(), headDim, reuse: tileClasses });
    making.commitAndWait();
    refusesCommit(reading, "stale");
  });
});

test("a write encoded before the classes and committed after them makes them stale", () => {
  const mask = unmasked();
  using writing = device.pass();
  narrow(writing, mask);
  mask.set(everyKey);
  const tileClasses = classify(mask);
  run((pass) => attend(pass, mask, tileClasses));
  expect(lastRow()).toBe(meanOfAll);
  writing.commitAndWait();
  using pass = device.pass();
  expectRefusal(() => attend(pass, mask, tileClasses), "invalid-argument", "tileClasses", "stale");
  run((again) => attend(again, mask, classifyMaskTiles(again, { mask, headDim })));
  expect(lastRow()).toBe(itself);
});

describe("what is right in the order of commits is taken", () => {
  test("the mask and the classes written again in the same pass, after they were read", () => {
    const mask = unmasked();
    const tileClasses = classify(mask);
    const other = unmasked();
    run((pass) => {
      attend(pass, mask, tileClasses);
      narrow(pass, mask);
      const again = classifyMaskTiles(pass, { mask: other, headDim, reuse: tileClasses });
      attend(pass, other, again);
    });
    expect(lastRow()).toBe(meanOfAll);
  });

  test("tensors disposed before the commit", () => {
    const mask = unmasked();
    const tileClasses = classify(mask);
    using reading = device.pass();
    attend(reading, mask, tileClasses);
    mask.dispose();
    tileClasses.dispose();
    reading.commitAndWait();
    expect(lastRow()).toBe(meanOfAll);
  });

  test("a mask that a pass before it builds, and another write after both", () => {
    const mask = unmasked();
    using building = device.pass();
    narrow(building, mask);
    using making = device.pass();
    const tileClasses = classifyMaskTiles(making, { mask, headDim });
    using reading = device.pass();
    attend(reading, mask, tileClasses);
    for (const pass of [building, making, reading]) pass.commitAndWait();
    expect(lastRow()).toBe(itself);
    run((pass) => narrow(pass, mask));
  });
});

// The last one: a GPU is lost with the fault.
test("classes of a pass that failed serve nobody", () => {
  device.registerSource(
    "stray.metal",
    `#include <metal_stdlib>
    kernel void stray(device uint *x [[buffer(0)]]) { x[1ul << 40] = 1; }`,
  );
  const mask = unmasked();
  using failing = device.pass();
  failing.dispatch(device.pipeline("stray"), { buffers: [device.tensor("u32", [4])], grid: 1, threads: 1 });
  const tileClasses = classifyMaskTiles(failing, { mask, headDim });
  using encodedBefore = device.pass();
  attend(encodedBefore, mask, tileClasses);
  expectRefusal(() => failing.commitAndWait(), "execution", undefined);
  refusesCommit(encodedBefore, "failed");
  using pass = device.pass();
  expectRefusal(() => attend(pass, mask, tileClasses), "invalid-argument", "tileClasses", "failed");
});
