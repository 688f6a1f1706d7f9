import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Device, flashAttnPrefill, type SharedTensor } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { runChecked } from "../helpers/run.ts";
import type { Task } from "./share-worker.ts";

/** What a worker of its own answers to a task. */
async function answer(task: Task): Promise<unknown> {
  const worker = new Worker(join(import.meta.dir, "share-worker.ts"));
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  worker.onmessage = ({ data }) => resolve(data);
  worker.onerror = ({ message }) => reject(new Error(message));
  worker.postMessage(task);
  return promise.finally(() => worker.terminate());
}

test("four workers attend over one cache while another appends to free slots", async () => {
  using device = Device.open();
  const [heads, headDim, capacity, rows] = [2, 64, 256, 100];
  const random = (seed: number, count: number) =>
    Float32Array.from({ length: count }, (_, i) => Math.sin(seed + i * 78.233));
  const tensor = (seed: number, ...shape: number[]) =>
    device.tensor("bf16", shape).set(
      random(
        seed,
        shape.reduce((a, b) => a * b),
      ),
    );
  using q = tensor(1, 1, heads, 32, headDim);
  using k = tensor(2, 1, heads, capacity, headDim);
  using v = tensor(3, 1, heads, capacity, headDim);
  using out = device.tensor("bf16", q.shape);
  using pass = device.pass();
  flashAttnPrefill(pass, { q, k, v, out, seqLenK: rows });
  pass.commitAndWait();
  const expected = Bun.hash(out.bytes).toString(16);

  const shared = { q: q.share(), k: k.share(), v: v.share() };
  const answers = await Promise.all([
    ...Array.from({ length: 4 }, () => answer({ kind: "attend", ...shared, rows, repeats: 40 })),
    answer({ kind: "append", ...shared, from: rows, to: capacity }),
  ]);
  expect(answers).toEqual([...new Array(4).fill([expected]), "appended"]);
  // What was appended is in this device's tensors too.
  for (const cache of [k, v]) {
    const values = cache.toFloat32Array();
    for (const head of [0, 1]) {
      expect(values[(head * capacity + rows) * headDim]).toBe(rows);
      expect(values[(head * capacity + capacity - 1) * headDim]).toBe(capacity - 1);
    }
  }
  using again = device.pass();
  flashAttnPrefill(again, { q, k, v, out, seqLenK: rows });
  again.commitAndWait();
  expect(Bun.hash(out.bytes).toString(16)).toBe(expected);
});

describe("a tensor that is shared", () => {
  test("is the same memory in another device, slices with their place and shape", () => {
    using first = Device.open();
    using second = Device.open();
    using whole = first.tensor("f32", [4, 2]).set([1, 2, 3, 4, 5, 6, 7, 8]);
    using adopted = second.adopt(structuredClone(whole.slice(1, 3).reshape([2, 1, 2]).share()));
    expect({ dtype: adopted.dtype, shape: adopted.shape }).toEqual({ dtype: "f32", shape: [2, 1, 2] });
    expect([...adopted.toFloat32Array()]).toEqual([3, 4, 5, 6]);
    adopted.set([9, 9, 9, 9]);
    expect([...whole.toFloat32Array()]).toEqual([1, 2, 9, 9, 9, 9, 7, 8]);
  });

  test("keeps its memory until the last of both is disposed, whichever that is", () => {
    using first = Device.open();
    using second = Device.open();
    const [before, beforeSecond] = [first.info.currentAllocatedSize, second.info.currentAllocatedSize];
    const size = 1 << 20;
    for (const order of [0, 1]) {
      const tensor = first.tensor("u8", [size]);
      const adopted = second.adopt(tensor.share());
      tensor.set(new Uint8Array(size).fill(order + 5));
      (order === 0 ? tensor : adopted).dispose();
      expect(first.info.currentAllocatedSize).toBeGreaterThanOrEqual(before + size);
      const kept = order === 0 ? adopted : tensor;
      expect(kept.bytes.every((byte) => byte === order + 5)).toBe(true);
      kept.dispose();
    }
    Bun.gc(true);
    for (let i = 0; i < 20; i++) second.adopt(first.tensor("u8", [size]).share()).dispose();
    expect(second.info.currentAllocatedSize).toBeLessThanOrEqual(beforeSecond + 2 * size);
  });

  test("outlives the device that made it", () => {
    const first = Device.open();
    using second = Device.open();
    const tensor = first.tensor("f32", [2]).set([1, 2]);
    using adopted = second.adopt(tensor.share());
    first.dispose();
    expect([...adopted.toFloat32Array()]).toEqual([1, 2]);
  });

  test("is refused once it is disposed, from another process, or where the description was changed", async () => {
    using first = Device.open();
    using second = Device.open();
    const tensor = first.tensor("f32", [4]);
    const description = tensor.share();
    const changed = (change: object) => () => second.adopt({ ...description, ...change } as SharedTensor);
    expectRefusal(changed({ shape: [] }), "invalid-argument", "description.shape", "0 axes");
    expectRefusal(changed({ shape: [2 ** 32] }), "invalid-argument", "description.shape[0]", 2 ** 32);
    expectRefusal(changed({ shape: [5] }), "invalid-argument", "description", 16);
    expectRefusal(changed({ byteOffset: 4 }), "invalid-argument", "description", 4, 16);
    expectRefusal(changed({ byteOffset: 2 }), "invalid-argument", "description", 2);
    expectRefusal(changed({ dtype: "f64" }), "invalid-argument", "description.dtype");
    expectRefusal(changed({ more: 1 }), "invalid-argument", "description.more");
    expectRefusal(changed({ number: description.number + 1 }), "invalid-handle", "description", "no longer open");
    expectRefusal(changed({ buffer: 0 }), "invalid-handle", "description");
    expectRefusal(() => second.adopt(3 as never), "invalid-argument", "description");
    const index = JSON.stringify(join(import.meta.dir, "../../src/index.ts"));
    const program = `import { Device } from ${index}; console.log(JSON.stringify(Device.open().tensor("f32", [4]).share()));`;
    const foreign = JSON.parse(await runChecked([process.execPath, "-e", program])) as SharedTensor;
    expectRefusal(() => second.adopt(foreign), "invalid-handle", "description", "another process");
    tensor.dispose();
    expectRefusal(() => second.adopt(description), "invalid-handle", "description", "no longer open");
    // The handle's slot may come again for another buffer.
    const others = Array.from({ length: 1200 }, () => first.tensor("f32", [4]));
    expectRefusal(() => second.adopt(description), "invalid-handle", "description", "no longer open");
    for (const other of others) other.dispose();
    expectRefusal(() => tensor.share(), "disposed", undefined);
  });
});
