import { afterAll, describe, expect, test } from "bun:test";
import {
  buildCausalMask,
  buildSlidingWindowMask,
  classifyMaskTiles,
  Device,
  flashAttnPrefill,
  kvCacheCopy,
  type Pass,
  type Tensor,
} from "../../src/index.ts";
import { NativeScene, statusCodes } from "../helpers/abi.ts";
import { bitsOf, fillPattern } from "../helpers/elements.ts";
import { expectRefusal } from "../helpers/errors.ts";

// Tile classes are bound to the memory and to the state of their mask.

const device = Device.open();
afterAll(() => device.dispose());

const [qL, kL, headDim] = [40, 48, 64];
const attention = (["q", "k", "v", "out"] as const).map((name, index) => {
  const tensor = device.tensor("bf16", [1, 1, name === "q" || name === "out" ? qL : kL, headDim]);
  const bits = bitsOf(tensor);
  for (let i = 0; i < bits.length; i++) bits[i] = 0x3e00 + ((i * 37 + index * 11) % 300);
  return tensor;
}) as [Tensor<"bf16">, Tensor<"bf16">, Tensor<"bf16">, Tensor<"bf16">];
const [q, k, v, out] = attention;

type Classes = ReturnType<typeof classifyMaskTiles>;

const run = (encode: (pass: Pass) => void) => {
  using pass = device.pass();
  encode(pass);
  pass.commitAndWait();
};

/** A mask with room before and after it in its buffer, built, and its classes, both in passes that ran. */
const classified = () => classifiedAs("bool");

function classifiedAs<T extends "bool" | "bf16">(dtype: T) {
  const whole = device.tensor(dtype, [qL + 2, kL]);
  const mask = whole.slice(1, qL + 1);
  run((pass) => buildSlidingWindowMask(pass, { mask, window: 9, qOffsetInK: 8 }));
  let classes: Classes | undefined;
  run((pass) => {
    classes = classifyMaskTiles(pass, { mask, headDim });
  });
  return { whole, mask, classes: classes as Classes };
}

/** Attention with a mask and classes, in a pass of its own. */
function attend(mask: Tensor<"bool" | "bf16">, tileClasses: Classes): void {
  run((pass) => flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses }));
}

function expectRefused(mask: Tensor<"bool" | "bf16">, tileClasses: Classes, says: string): void {
  using pass = device.pass();
  const call = () => flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses });
  expectRefusal(call, "invalid-argument", "tileClasses", says);
  expect(pass.describe()).toEqual([]);
}

const stale = "stale";
const other = "another mask";

describe("classes of a mask", () => {
  test("serve it, in their pass and in later ones, however often", () => {
    const { mask, classes } = classified();
    attend(mask, classes);
    attend(mask, classes);
    const mixed = device.tensor("bool", [qL, kL]);
    run((pass) => {
      buildCausalMask(pass, { mask: mixed });
      const tileClasses = classifyMaskTiles(pass, { mask: mixed, headDim });
      flashAttnPrefill(pass, { q, k, v, out, mask: mixed, tileClasses });
      flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses: classes });
    });
  });

  test("do not serve another of the same shape, which gave wrong rows once", () => {
    const { classes } = classified();
    const second = classified();
    expectRefused(second.mask, classes, other);
    attend(second.mask, second.classes);
  });

  test("do not serve another part of the same buffer, of the same shape", () => {
    const { whole, mask, classes } = classified();
    expectRefused(whole.slice(0, qL), classes, other);
    expectRefused(whole.slice(2), classes, other);
    attend(mask, classes);
    attend(whole.slice(1, qL + 1), classes);
  });
});

/** Ways to write to a mask. */
const writes: readonly (readonly [string, (mask: Tensor<"bf16">) => void])[] = [
  ["built again", (mask) => run((pass) => buildCausalMask(pass, { mask }))],
  ["another window", (mask) => run((pass) => buildSlidingWindowMask(pass, { mask, window: 3 }))],
  ["tensor.set", (mask) => mask.set(new Float32Array(mask.length))],
  ["tensor.set of one row", (mask) => mask.slice(7, 8).set(new Float32Array(kL))],
  [
    "tensor.set of its last element",
    (mask) =>
      mask
        .reshape([qL * kL])
        .slice(qL * kL - 1)
        .set([0]),
  ],
  ["tensor.set from its last element on", (mask) => mask.set([0], qL * kL - 1)],
  ["tensor.set from an element of a row on", (mask) => mask.slice(7, 8).set([0, 0], 1)],
  ["tensor.set under another shape", (mask) => mask.reshape([qL * kL]).set(new Float32Array(mask.length))],
  [
    "a cache copy",
    (mask) => run((pass) => kvCacheCopy(pass, { src: device.tensor("bf16", [1, kL]), cache: mask, writePos: 5 })),
  ],
  ["a user's kernel", (mask) => run((pass) => dispatchTo(pass, mask, "read-write"))],
  ["a user's kernel that only writes", (mask) => run((pass) => dispatchTo(pass, mask, "write"))],
  [
    "attention",
    (mask) => {
      const rows = [1, 1, mask.length / headDim, headDim];
      run((pass) => flashAttnPrefill(pass, { q: device.tensor("bf16", rows), k, v, out: mask.reshape(rows) }));
    },
  ],
];

device.registerSource(
  "zero.metal",
  `#include <metal_stdlib>
  kernel void zero_one(device ushort *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { if (i == 0) x[0] = 0; }
  kernel void read_one(device const ushort *x [[buffer(0)]], device ushort *y [[buffer(1)]]) { y[0] = x[0]; }`,
);

function dispatchTo(pass: Pass, tensor: Tensor<"bf16">, access: "read-write" | "write"): void {
  pass.dispatch(device.pipeline("zero_one"), { buffers: { 0: { tensor, access } }, grid: 1, threads: 1 });
}

describe("a mask that is written afterwards makes them stale", () => {
  test.each(writes)("%s", (_, write) => {
    const { mask, classes } = classifiedAs("bf16");
    attend(mask, classes);
    write(mask);
    expectRefused(mask, classes, stale);
    // To classify it again cures it.
    run((pass) => classifyMaskTiles(pass, { mask, headDim, reuse: classes }));
    attend(mask, classes);
  });

  test("as soon as the write is encoded, in the same pass", () => {
    const { mask, classes } = classified();
    using pass = device.pass();
    flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses: classes });
    buildCausalMask(pass, { mask });
    const call = () => flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses: classes });
    expectRefusal(call, "invalid-argument", "tileClasses", stale);
    const again = classifyMaskTiles(pass, { mask, headDim });
    flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses: again });
    expectRefusal(call, "invalid-argument", "tileClasses", stale);
    pass.commitAndWait();
  });

  test("classes made with new memory do not revive the old ones", () => {
    const { mask, classes } = classified();
    run((pass) => buildCausalMask(pass, { mask }));
    run((pass) => classifyMaskTiles(pass, { mask, headDim }));
    expectRefused(mask, classes, stale);
  });
});

describe("what does not refuse them", () => {
  test("a write beside the mask in its buffer, up to its first byte and from its last", () => {
    const { whole, mask, classes } = classifiedAs("bf16");
    whole.slice(0, 1).set(new Float32Array(kL));
    whole.slice(qL + 1).set(new Float32Array(kL));
    const after = whole.slice(qL + 1);
    run((pass) => {
      dispatchTo(pass, after, "read-write");
      buildCausalMask(pass, { mask: whole.slice(0, 1) });
      kvCacheCopy(pass, { src: device.tensor("bf16", [1, kL]), cache: after, writePos: 0 });
    });
    attend(mask, classes);
  });

  test("a kernel that only reads the mask, an operation that only reads it, and a write of no byte", () => {
    const { mask, classes } = classifiedAs("bf16");
    run((pass) => {
      const y = device.tensor("bf16", [1]);
      pass.dispatch(device.pipeline("read_one"), {
        buffers: { 0: { tensor: mask, access: "read" }, 1: y },
        grid: 1,
        threads: 1,
      });
      kvCacheCopy(pass, { src: mask, cache: device.tensor("bf16", [qL, kL]), writePos: 0 });
      classifyMaskTiles(pass, { mask, headDim: 512 });
    });
    mask.slice(0, 0).set([]);
    attend(mask, classes);
  });

  test("a call that was refused", () => {
    const { mask, classes } = classified();
    using pass = device.pass();
    expectRefusal(() => buildSlidingWindowMask(pass, { mask, window: 0 }), "invalid-argument", "window");
    expectRefusal(() => buildCausalMask(pass, { mask, qOffsetInK: 2 ** 31 - 1 }), "overflow", "qOffsetInK");
    expect(() => mask.set([1])).toThrow();
    attend(mask, classes);
  });
});

describe("classes that are not what they were", () => {
  test("overwritten by tensor.set or by a kernel", () => {
    const { mask, classes } = classified();
    classes.tensor.slice(0, 1).set(new Uint8Array(classes.tensor.length / (classes.tensor.shape[0] ?? 1)));
    expectRefused(mask, classes, stale);
    const second = classified();
    run((pass) =>
      pass.dispatch(device.pipeline("zero_one"), { buffers: [second.classes.tensor], grid: 1, threads: 1 }),
    );
    expectRefused(second.mask, second.classes, stale);
  });

  test("reused for another mask: they serve that one alone", () => {
    const first = classified();
    const second = classified();
    run((pass) => classifyMaskTiles(pass, { mask: second.mask, headDim, reuse: first.classes }));
    attend(second.mask, first.classes);
    expectRefused(first.mask, first.classes, other);
  });

  test("of a pass that was never committed", () => {
    const { mask } = classified();
    const pass = device.pass();
    const classes = classifyMaskTiles(pass, { mask, headDim });
    flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses: classes });
    pass.dispose();
    expectRefused(mask, classes, stale);
    run((again) => classifyMaskTiles(again, { mask, headDim, reuse: classes }));
    attend(mask, classes);
  });

  test("of a pass that is open yet: they serve it, and later passes", () => {
    const { mask } = classified();
    using pass = device.pass();
    const classes = classifyMaskTiles(pass, { mask, headDim });
    using later = device.pass();
    flashAttnPrefill(later, { q, k, v, out, mask, tileClasses: classes });
    pass.commitAndWait();
    later.commitAndWait();
    attend(mask, classes);
  });
});

test("classes and a fresh result: the bits of attention without them", () => {
  const { mask, classes } = classified();
  attend(mask, classes);
  const withClasses = bitsOf(out).slice();
  fillPattern(bitsOf(out), 3);
  run((pass) => flashAttnPrefill(pass, { q, k, v, out, mask }));
  expect(bitsOf(out)).toEqual(withClasses);
});

test("a released buffer leaves nothing behind: the next one in its place is no mask of old classes", () => {
  const spare = classified();
  for (let round = 0; round < 100; round++) {
    const { whole, mask, classes } = classified();
    attend(mask, classes);
    for (const tensor of [mask, whole]) tensor.dispose();
    // Classes whose mask is gone serve no other.
    if (round % 2 === 0) expectRefused(spare.mask, classes, other);
    classes.dispose();
    const next = device.tensor("bool", [qL, kL]);
    run((pass) => {
      buildCausalMask(pass, { mask: next });
      const tileClasses = classifyMaskTiles(pass, { mask: next, headDim });
      flashAttnPrefill(pass, { q, k, v, out, mask: next, tileClasses });
      tileClasses.dispose();
    });
    next.dispose();
  }
  attend(spare.mask, spare.classes);
});

describe("ma_buffer_written", () => {
  const scene = new NativeScene();
  afterAll(() => scene.close());
  const { native } = scene;

  test("takes any part of a buffer, and refuses what leaves it", () => {
    const { handle } = scene.buffer(100);
    for (const [offset, length] of [
      [0n, 100n],
      [99n, 1n],
      [100n, 0n],
      [0n, 0n],
    ] as const) {
      expect(native.ma_buffer_written(handle, offset, length)).toBe(statusCodes.ok);
    }
    for (const [offset, length] of [
      [0n, 101n],
      [100n, 1n],
      [101n, 0n],
      [1n, 2n ** 64n - 1n],
      [2n ** 64n - 1n, 2n],
    ] as const) {
      expect(native.ma_buffer_written(handle, offset, length)).toBe(statusCodes.bufferTooSmall);
      expect(scene.lastFailure()).toMatchObject({ argument: "buffer", function: "ma_buffer_written" });
    }
    expect(native.ma_buffer_written(0, 0n, 0n)).toBe(statusCodes.invalidHandle);
    native.ma_buffer_release(handle);
    expect(native.ma_buffer_written(handle, 0n, 0n)).toBe(statusCodes.invalidHandle);
  });
});
