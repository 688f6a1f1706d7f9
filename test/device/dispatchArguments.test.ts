import { afterAll, describe, expect, test } from "bun:test";
import { Device, type Tensor } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

// The keys of `buffers` and `bytes`, in every form that JavaScript has for
// them: each dispatch is packed by its own, whatever the one before had.

const device = Device.open();
afterAll(() => device.dispose());

device.registerSource(
  "weigh.metal",
  `#include <metal_stdlib>
   kernel void weigh_far(device uint *out [[buffer(0)]], constant uint &a [[buffer(3)]], device const uint *b [[buffer(30)]]) {
     out[0] = 100 * a + b[0];
   }
   kernel void weigh_near(device uint *out [[buffer(1)]], device const uint *b [[buffer(2)]], constant uint &a [[buffer(4)]]) {
     out[0] = 100 * a + b[0];
   }`,
);
const far = device.pipeline("weigh_far");
const near = device.pipeline("weigh_near");
const out = device.tensor("u32", [1]);
const b = device.tensor("u32", [1]).set([7]);
const bytes = (value: number) => Uint32Array.of(value);

type Buffers = Record<number, Tensor>;
type Bytes = Record<number, Uint32Array>;

function weigh(pipeline: typeof far, buffers: Buffers, given: Bytes): number {
  using pass = device.pass();
  pass.dispatch(pipeline, { buffers, bytes: given, grid: 1, threads: 1 });
  pass.commitAndWait();
  return out.view()[0] as number;
}

test("kernels with other indices take turns", () => {
  for (let i = 1; i < 20; i++) {
    expect(weigh(far, { 0: out, 30: b }, { 3: bytes(i) })).toBe(100 * i + 7);
    expect(weigh(near, { 1: out, 2: b }, { 4: bytes(i) })).toBe(100 * i + 7);
  }
});

test("keys in any order, and of any plain object", () => {
  expect(weigh(far, { 30: b, 0: out }, { 3: bytes(2) })).toBe(207);
  expect(weigh(far, Object.assign(Object.create(null), { 30: b, 0: out }), { 3: bytes(3) })).toBe(307);
  expect(weigh(far, Object.assign([], { 30: b, 0: out }), Object.assign([], { 3: bytes(4) }))).toBe(407);
});

test("keys that an object inherits count too", () => {
  expect(weigh(far, Object.create({ 0: out, 30: b }), Object.create({ 3: bytes(5) }))).toBe(507);
  const buffers = Object.create({ 30: b });
  buffers[0] = out;
  expect(weigh(far, buffers, { 3: bytes(6) })).toBe(607);
});

test("what holds them in another way is refused, and not left out", () => {
  using pass = device.pass();
  const good = { buffers: { 0: out, 30: b }, bytes: { 3: bytes(1) }, grid: 1, threads: 1 };
  const others = [new Set([out]), new Map([[0, out]]), new Date(), new ArrayBuffer(4), bytes(1), device];
  for (const list of ["buffers", "bytes", "uses", "threadgroupMemory"]) {
    for (const other of others) {
      expectRefusal(
        () => pass.dispatch(far, { ...good, [list]: other } as never),
        "invalid-argument",
        list,
        "expected",
      );
    }
  }
  expectRefusal(() => pass.dispatch(far, [good] as never), "invalid-argument", "options", "an array");
  expect(pass.info.dispatches).toBe(0);
});

describe("after a dispatch with the same number of keys", () => {
  const again = () => weigh(far, { 0: out, 30: b }, { 3: bytes(8) });

  for (const key of ["1", "-1", "01", "31", "x", "4294967296", "1.5"]) {
    test(`key ${key} in place of 30`, () => {
      expect(again()).toBe(807);
      using pass = device.pass();
      const buffers = { 0: out, [key]: b };
      const call = () => pass.dispatch(far, { buffers, bytes: { 3: bytes(8) }, grid: 1, threads: 1 });
      if (key === "1") expectRefusal(call, "invalid-argument", "buffers[1]", "no argument buffer(1)");
      else expectRefusal(call, "invalid-argument", `buffers[${key}]`, "from 0 to 30");
      expect(pass.info.dispatches).toBe(0);
      expect(again()).toBe(807);
    });
  }

  test("one key more", () => {
    expect(again()).toBe(807);
    using pass = device.pass();
    const call = () =>
      pass.dispatch(far, { buffers: { 0: out, 5: b, 30: b }, bytes: { 3: bytes(8) }, grid: 1, threads: 1 });
    expectRefusal(call, "invalid-argument", "buffers[5]", "no argument buffer(5)");
  });

  test("a getter that takes a key away", () => {
    expect(again()).toBe(807);
    using pass = device.pass();
    const buffers: Record<number, Tensor> = {
      get 0() {
        delete buffers[30];
        return out;
      },
      30: b,
      29: b,
    };
    const call = () => pass.dispatch(far, { buffers, bytes: { 3: bytes(8) }, grid: 1, threads: 1 });
    expectRefusal(call, "invalid-argument", "buffers[29]", "no argument buffer(29)");
  });

  test("a getter that adds keys", () => {
    using pass = device.pass();
    const buffers: Record<number, Tensor> = {
      get 0() {
        buffers[28] = b;
        return out;
      },
    };
    const call = () => pass.dispatch(far, { buffers, bytes: { 3: bytes(8) }, grid: 1, threads: 1 });
    expectRefusal(call, "invalid-argument", "buffers", "changed while it was read");
  });
});
