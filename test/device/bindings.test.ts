import { afterAll, describe, expect, test } from "bun:test";
import { Device, type Tensor } from "../../src/index.ts";

// A pass binds a buffer once for the dispatches that take it at the same index and offset: each has to see its own.

const device = Device.open();
afterAll(() => device.dispose());

device.registerSource(
  "pair.metal",
  `#include <metal_stdlib>
   kernel void pair(device uint *out [[buffer(0)]], device const uint *a [[buffer(1)]], constant uint &b [[buffer(2)]]) {
     out[0] = 100 * a[0] + b;
   }
   kernel void lone(device uint *out [[buffer(1)]], device const uint *a [[buffer(0)]]) { out[0] = a[0]; }`,
);
const pair = device.pipeline("pair");
const lone = device.pipeline("lone");
const values = device.tensor("u32", [8]).set([0, 1, 2, 3, 4, 5, 6, 7]);
const other = device.tensor("u32", [1]).set([50]);
const value = (i: number) => values.slice(i, i + 1);
const bytes = (number: number) => Uint32Array.of(number);

type Given = Tensor | number;

/** What `pair` makes of a and b of each dispatch of one pass: tensors, or numbers as bytes. */
function pairs(given: readonly (readonly [Given, Given])[], options: Parameters<typeof device.pass>[0]): number[] {
  const out = device.tensor("u32", [given.length]);
  using pass = device.pass(options);
  given.forEach((arguments_, i) => {
    const buffers: Record<number, Tensor> = { 0: out.slice(i, i + 1) };
    const constants: Record<number, Uint32Array> = {};
    for (const [place, argument] of arguments_.entries()) {
      if (typeof argument === "number") constants[place + 1] = bytes(argument);
      else buffers[place + 1] = argument;
    }
    pass.dispatch(pair, { buffers, bytes: constants, grid: 1, threads: 1 });
  });
  pass.commitAndWait();
  return [...out.view()];
}

describe.each([{ mode: "concurrent" }, { mode: "serial" }, { profile: true }] as const)("a pass of %j", (options) => {
  test("binds again after another offset, another buffer, and bytes", () => {
    const one = value(1);
    const seven = value(7);
    const given = [
      [one, seven],
      [one, seven],
      [seven, one],
      [other, one],
      [one, one],
      [3, one],
      [one, 4],
      [3, 4],
      [one, seven],
      [other, other],
    ] as const;
    const number = (argument: Given) => (typeof argument === "number" ? argument : (argument.view()[0] as number));
    expect(pairs(given, options)).toEqual(given.map(([a, b]) => 100 * number(a) + number(b)));
  });

  test("binds what the pass before it had bound", () => {
    for (let i = 0; i < 5; i++) expect(pairs([[other, value(2)]], options)).toEqual([5002]);
  });

  test("a constant is what the dispatch before has written", () => {
    const out = device.tensor("u32", [6]);
    using pass = device.pass(options);
    for (let i = 0; i < 5; i++) {
      pass.dispatch(pair, {
        buffers: { 0: out.slice(i + 1, i + 2), 1: value(1), 2: out.slice(i, i + 1) },
        grid: 1,
        threads: 1,
      });
    }
    pass.commitAndWait();
    expect([...out.view()]).toEqual([0, 100, 200, 300, 400, 500]);
  });

  test("binds by index, for kernels in turns", () => {
    const out = device.tensor("u32", [4]);
    using pass = device.pass(options);
    for (let i = 0; i < 4; i += 2) {
      pass.dispatch(pair, { buffers: { 0: out.slice(i, i + 1), 1: other, 2: value(3) }, grid: 1, threads: 1 });
      pass.dispatch(lone, { buffers: { 0: other, 1: out.slice(i + 1, i + 2) }, grid: 1, threads: 1 });
    }
    pass.commitAndWait();
    expect([...out.view()]).toEqual([5003, 50, 5003, 50]);
  });

  test("binds a tensor that has the memory of one that is gone", () => {
    const out = device.tensor("u32", [64]);
    using pass = device.pass(options);
    for (let i = 0; i < 64; i++) {
      using passing = device.tensor("u32", [1]).set([i]);
      pass.dispatch(lone, { buffers: { 0: passing, 1: out.slice(i, i + 1) }, grid: 1, threads: 1 });
    }
    pass.commitAndWait();
    expect([...out.view()]).toEqual(Array.from({ length: 64 }, (_, i) => i));
  });
});

test("a pass that was never committed leaves nothing bound or logged", () => {
  for (let i = 0; i < 3; i++) {
    const out = device.tensor("u32", [1]);
    const dispatch = { buffers: { 0: out, 1: other, 2: value(5) }, grid: 1, threads: 1 };
    using left = device.pass();
    left.dispatch(pair, dispatch);
    left.dispose();
    using pass = device.pass();
    pass.dispatch(pair, dispatch);
    expect(pass.describe()).toHaveLength(1);
    expect(pass.describe()[0]?.barrierBefore).toBe(false);
    pass.commitAndWait();
    expect(out.view()[0]).toBe(5005);
  }
});
