/** Tensors that kernels reach by addresses in other memory: argument buffers. */
import { afterAll, describe, expect, test } from "bun:test";
import { openWith } from "../../scripts/lib/open-device.ts";
import { Device, struct, type Tensor } from "../../src/index.ts";
import { expectRefusal, thrownBy } from "../helpers/errors.ts";

const device = Device.open();
afterAll(() => device.dispose());

const source = `#include <metal_stdlib>
using namespace metal;
struct Arguments {
  device float *out;
  device const float *x;
  constant float *weights;
  uint count;
};
kernel void through(constant Arguments &arguments [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  if (i < arguments.count) arguments.out[i] = arguments.x[i] * arguments.weights[i];
}
struct Numbered {
  device float *out [[id(0)]];
  device const float *x [[id(1)]];
};
kernel void numbered(constant Numbered &arguments [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  arguments.out[i] = arguments.x[i] + 1;
}
struct Node {
  float value;
  device Node *next;
};
kernel void follow(device Node *first [[buffer(0)]], device float *sum [[buffer(1)]]) {
  float total = 0;
  for (device Node *node = first; node != nullptr; node = node->next) total += node->value;
  sum[0] = total;
}
struct Row {
  device float *values;
};
kernel void rows(device const Row *table [[buffer(0)]], constant uint &columns [[buffer(1)]], uint2 at [[thread_position_in_grid]]) {
  table[at.y].values[at.x] = at.y * columns + at.x;
}
kernel void add(device const float *x [[buffer(0)]], device float *out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = x[i] + 100;
}
`;
device.registerSource("addresses.metal", source);

const layout = struct({ out: "u64", x: "u64", weights: "u64", count: "u32" });
const bytesOf = (out: Tensor, x: Tensor, weights: Tensor, count: number) =>
  layout.pack({ out: out.gpuAddress, x: x.gpuAddress, weights: weights.gpuAddress, count });

const floats = (values: readonly number[]) => device.tensor("f32", [values.length]).set(values);

describe("an address", () => {
  test("leads to the first element, of a slice too", () => {
    using x = floats([1, 2, 3, 4]);
    using part = x.slice(2);
    expect(typeof x.gpuAddress).toBe("bigint");
    expect(part.gpuAddress - x.gpuAddress).toBe(8n);
    expect(x.gpuAddress % 16n).toBe(0n);
  });

  test("of a disposed tensor, or of one of a disposed device, is refused", () => {
    const x = floats([1]);
    x.dispose();
    expectRefusal(() => x.gpuAddress, "disposed", undefined, "disposed");
    const other = Device.open();
    const y = other.tensor("f32", [1]);
    other.dispose();
    expectRefusal(() => y.gpuAddress, "disposed", undefined, "disposed");
  });
});

describe("a kernel follows addresses", () => {
  test("in a struct given as bytes", () => {
    using pipeline = device.pipeline("through");
    using x = floats([1, 2, 3, 4, 5]);
    using weights = floats([2, 3, 4, 5, 6]);
    using out = device.tensor("f32", [5]);
    using pass = device.pass();
    const uses = [out, { tensor: x, access: "read" as const }, { tensor: weights, access: "read" as const }];
    pass.dispatch(pipeline, { bytes: [bytesOf(out, x, weights, 4)], uses, grid: 5, threads: 5 });
    const [dispatch] = pass.describe();
    expect([dispatch?.reads.length, dispatch?.writes.length]).toEqual([2, 1]);
    pass.commitAndWait();
    expect([...out.toFloat32Array()]).toEqual([2, 6, 12, 20, 0]);
  });

  test("in a struct with [[id(n)]], in a tensor", () => {
    using pipeline = device.pipeline("numbered");
    using x = floats([1, 2, 3]);
    using out = device.tensor("f32", [3]);
    using table = device.tensor("u64", [2]).set([out.gpuAddress, x.gpuAddress]);
    using pass = device.pass();
    const buffers = [{ tensor: table, access: "read" as const }];
    pass.dispatch(pipeline, { buffers, uses: [out, { tensor: x, access: "read" }], grid: 3, threads: 3 });
    pass.commitAndWait();
    expect([...out.toFloat32Array()]).toEqual([2, 3, 4]);
  });

  test("from node to node", () => {
    using pipeline = device.pipeline("follow");
    const node = struct({ value: "f32", next: "u64" });
    using nodes = device.tensor("u8", [4, node.size]);
    for (let i = 0; i < 4; i++) {
      const next = i < 3 ? nodes.gpuAddress + BigInt((i + 1) * node.size) : 0n;
      nodes.bytes.set(new Uint8Array(node.pack({ value: 10 ** i, next }).buffer), i * node.size);
    }
    using sum = device.tensor("f32", [1]);
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [nodes, sum], grid: 1, threads: 1 });
    pass.commitAndWait();
    expect(sum.toFloat32Array()[0]).toBe(1111);
  });

  test("in a table of 300 tensors", () => {
    using pipeline = device.pipeline("rows");
    const rows = Array.from({ length: 300 }, () => device.tensor("f32", [3]));
    using table = device.tensor("u64", [300]).set(rows.map((row) => row.gpuAddress));
    using pass = device.pass();
    const buffers = [{ tensor: table, access: "read" as const }];
    pass.dispatch(pipeline, { buffers, bytes: { 1: Uint32Array.of(3) }, uses: rows, grid: [3, 300], threads: [3, 10] });
    pass.commitAndWait();
    rows.forEach((row, i) => {
      expect([...row.toFloat32Array()]).toEqual([3 * i, 3 * i + 1, 3 * i + 2]);
      row.dispose();
    });
  });
});

describe("what is named in uses", () => {
  test("orders dispatches", () => {
    using through = device.pipeline("through");
    using add = device.pipeline("add");
    const n = 4096;
    const ones = new Float32Array(n).fill(1);
    using x = device.tensor("f32", [n]).set(ones);
    using weights = device.tensor("f32", [n]).set(ones.map(() => 2));
    using middle = device.tensor("f32", [n]);
    using out = device.tensor("f32", [n]);
    using pass = device.pass();
    const uses = [middle, { tensor: x, access: "read" as const }, { tensor: weights, access: "read" as const }];
    pass.dispatch(through, { bytes: [bytesOf(middle, x, weights, n)], uses, grid: n, threads: 64 });
    pass.dispatch(add, { buffers: [{ tensor: middle, access: "read" }, out], grid: n, threads: 64 });
    pass.dispatch(through, {
      bytes: [bytesOf(middle, out, weights, n)],
      uses: [middle, { tensor: out, access: "read" }],
      grid: n,
      threads: 64,
    });
    expect(pass.describe().map(({ barrierBefore }) => barrierBefore)).toEqual([false, true, true]);
    pass.commitAndWait();
    expect(new Set(middle.toFloat32Array())).toEqual(new Set([204]));
  });

  test("lives until the pass has ended", () => {
    using pipeline = device.pipeline("through");
    using out = device.tensor("f32", [2]);
    using weights = floats([1, 1]);
    const x = floats([5, 6]);
    using pass = device.pass();
    const read = (tensor: Tensor) => ({ tensor, access: "read" as const });
    pass.dispatch(pipeline, {
      bytes: [bytesOf(out, x, weights, 2)],
      uses: [out, read(x), read(weights)],
      grid: 2,
      threads: 2,
    });
    x.dispose();
    pass.commitAndWait();
    expect([...out.toFloat32Array()]).toEqual([5, 6]);
  });

  test("is recorded, and a run fails once one of them is gone", () => {
    using pipeline = device.pipeline("numbered");
    using out = device.tensor("f32", [2]);
    const x = floats([5, 6]);
    using table = device.tensor("u64", [2]).set([out.gpuAddress, x.gpuAddress]);
    using recorded = device.record((pass) => {
      pass.dispatch(pipeline, {
        buffers: [{ tensor: table, access: "read" }],
        uses: [out, { tensor: x, access: "read" }],
        grid: 2,
        threads: 2,
      });
    });
    for (const value of [1, 2]) {
      x.set([value, value]);
      recorded.commitAndWait();
      expect([...out.toFloat32Array()]).toEqual([value + 1, value + 1]);
    }
    x.dispose();
    expectRefusal(() => recorded.commitAndWait(), "disposed", undefined, "disposed");
  });

  test.each([
    [[undefined], "uses[0]", "object"],
    [[{ tensor: 1 }], "uses[0]", "Tensor"],
    [3, "uses", "object"],
    [{ 512: 1 }, "uses[512]", "0 to 511"],
  ] as const)("%p is refused", (uses, argument, word) => {
    using pipeline = device.pipeline("add");
    using x = floats([1]);
    using out = device.tensor("f32", [1]);
    using pass = device.pass();
    const options = { buffers: [x, out], uses: uses as never, grid: 1, threads: 1 };
    expectRefusal(() => pass.dispatch(pipeline, options), "invalid-argument", argument, word);
  });

  test("a wrong access, a disposed tensor and one of another device are refused", () => {
    using pipeline = device.pipeline("add");
    using x = floats([1]);
    using out = device.tensor("f32", [1]);
    using other = Device.open();
    using foreign = other.tensor("f32", [1]);
    using pass = device.pass();
    const dispatch = (use: unknown) => () =>
      pass.dispatch(pipeline, { buffers: [x, out], uses: [x, use] as never, grid: 1, threads: 1 });
    expectRefusal(dispatch({ tensor: x, access: "none" }), "invalid-argument", "uses[1].access", "none");
    expectRefusal(dispatch({ tensor: x, acess: "read" }), "invalid-argument", "uses[1].acess");
    expectRefusal(dispatch(foreign), "invalid-handle", "uses[1]", "another device");
    const gone = floats([1]);
    gone.dispose();
    expectRefusal(dispatch(gone), "disposed", "uses[1]", "disposed");
    expect(pass.info.dispatches).toBe(0);
  });
});

// An Apple GPU has no such mode.
if (device.info.backend === "SoftMetal")
  test("under SOFTMETAL_GUARD a kernel that follows the address of a tensor that is gone fails its pass", () => {
    using guarded = openWith({ SOFTMETAL_GUARD: "1" });
    guarded.registerSource("addresses.metal", source);
    using pipeline = guarded.pipeline("numbered");
    using out = guarded.tensor("f32", [4]);
    const x = guarded.tensor("f32", [4]);
    const { gpuAddress } = x;
    x.dispose();
    // Memory that the system could have put there.
    const others = Array.from({ length: 8 }, () => guarded.tensor("f32", [4]));
    using pass = guarded.pass();
    const bytes = [BigUint64Array.of(out.gpuAddress, gpuAddress)];
    pass.dispatch(pipeline, { bytes, uses: [out], grid: 4, threads: 4 });
    const { code, message } = thrownBy(() => pass.commitAndWait());
    expect(code).toBe("execution");
    expect(message).toMatch(/kernel 'numbered' \(dispatch 1 of 1\) read from address 0x[0-9a-f]+/);
    // The device goes on.
    using again = guarded.pass();
    again.dispatch(pipeline, {
      bytes: [BigUint64Array.of(out.gpuAddress, (others[0] as Tensor).gpuAddress)],
      uses: [out, others[0] as Tensor],
      grid: 4,
      threads: 4,
    });
    again.commitAndWait();
    expect([...out.toFloat32Array()]).toEqual([1, 1, 1, 1]);
    for (const other of others) other.dispose();
  });
