import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { Pipeline } from "../../src/device/kernels.ts";
import { DeviceLifetime } from "../../src/device/lifetime.ts";
import { Pass } from "../../src/device/pass.ts";
import { Block } from "../../src/ffi/block.ts";
import { loadLibrary } from "../../src/ffi/library.ts";
import { Device, kvCacheCopy } from "../../src/index.ts";
import { thrownBy } from "../helpers/errors.ts";
import { collectUntil } from "../helpers/gc.ts";
import { runChecked } from "../helpers/run.ts";

const size = 1 << 20;

/** Allocates, fills and frees memory of the same size, which would overwrite what was freed too early. */
function overwriteFreed(device: Device): void {
  for (let i = 0; i < 8; i++) {
    using tensor = device.tensor("u8", [size]);
    tensor.bytes.fill(0xee);
  }
  for (let i = 0; i < 8; i++) new Uint8Array(size).fill(0xee);
}

// Each of these makes its objects in a frame of its own, so that nothing on
// the test's stack keeps them alive.

/** A view of a tensor that is disposed, filled with 7. */
function viewOfDisposed(device: Device): Uint8Array {
  using tensor = device.tensor("u8", [size]);
  tensor.bytes.fill(7);
  return tensor.bytes;
}

function leakTensors(device: Device): void {
  for (let i = 0; i < 10; i++) device.tensor("u8", [size]).slice(1);
}

describe("a zero-copy view", () => {
  test("stays valid after its tensor is disposed, and the memory goes when the view has been collected", async () => {
    using device = Device.open();
    const before = device.info.currentAllocatedSize;
    const views = [viewOfDisposed(device)];
    for (let i = 0; i < 20; i++) {
      Bun.gc(true);
      overwriteFreed(device);
      await Bun.sleep(0);
    }
    expect(device.info.currentAllocatedSize).toBeGreaterThanOrEqual(before + size);
    expect(views[0]?.every((byte) => byte === 7)).toBe(true);
    views[0]?.fill(9);
    views.pop();
    expect(await collectUntil(() => device.info.currentAllocatedSize === before)).toBe(true);
  });

  test("keeps the memory through a part of it, or its ArrayBuffer, alone", async () => {
    using device = Device.open();
    const before = device.info.currentAllocatedSize;
    const part = viewOfDisposed(device).subarray(100, 110);
    const { buffer } = viewOfDisposed(device);
    for (let i = 0; i < 20; i++) {
      Bun.gc(true);
      overwriteFreed(device);
      await Bun.sleep(0);
    }
    expect(device.info.currentAllocatedSize).toBeGreaterThanOrEqual(before + 2 * size);
    expect([...part]).toEqual(new Array(10).fill(7));
    expect(new Uint8Array(buffer)[size - 1]).toBe(7);
  });

  test("stays valid after its device is disposed", async () => {
    function viewOfDisposedDevice(): Uint8Array {
      using device = Device.open();
      return viewOfDisposed(device);
    }
    const view = viewOfDisposedDevice();
    using other = Device.open();
    for (let i = 0; i < 20; i++) {
      Bun.gc(true);
      overwriteFreed(other);
      await Bun.sleep(0);
    }
    expect(view.every((byte) => byte === 7)).toBe(true);
  });

  test("shows what later views and the tensor show", () => {
    using device = Device.open();
    using tensor = device.tensor("f32", [4]);
    const first = tensor.view();
    const second = tensor.view();
    first[2] = 5;
    expect([...second]).toEqual([0, 0, 5, 0]);
    tensor.set([1, 2, 3, 4]);
    expect([...first]).toEqual([1, 2, 3, 4]);
  });

  test.each([true, false])(
    "may be transferred: the new owner's memory stays valid (tensor used after it: %p)",
    async (used) => {
      function transferred(): ArrayBuffer {
        using device = Device.open();
        using tensor = device.tensor("u8", [size]);
        const view = tensor.bytes;
        view.fill(7);
        const owner = view.buffer.transfer();
        expect(view.length).toBe(0);
        if (used) {
          expect(tensor.toFloat32Array()[size - 1]).toBe(7);
          expect(tensor.bytes.length).toBe(size);
        }
        return owner;
      }
      const owner = transferred();
      using device = Device.open();
      for (let i = 0; i < 20; i++) {
        Bun.gc(true);
        overwriteFreed(device);
        await Bun.sleep(0);
      }
      expect(new Uint8Array(owner).every((byte) => byte === 7)).toBe(true);
    },
  );

  test("whose buffer is detached does not hinder an operation on its tensor", () => {
    using device = Device.open();
    using src = device.tensor("f32", [1, 4]).set([1, 2, 3, 4]);
    using cache = device.tensor("f32", [2, 4]);
    structuredClone(src.bytes, { transfer: [src.bytes.buffer] });
    using pass = device.pass();
    kvCacheCopy(pass, { src, cache, writePos: 1 });
    pass.commitAndWait();
    expect([...cache.toFloat32Array()]).toEqual([0, 0, 0, 0, 1, 2, 3, 4]);
  });
});

describe("left undisposed", () => {
  test("tensors and slices go when they have been collected", async () => {
    using device = Device.open();
    const before = device.info.currentAllocatedSize;
    leakTensors(device);
    expect(await collectUntil(() => device.info.currentAllocatedSize === before)).toBe(true);
  });

  test("tensors do not pile up in a loop that never lets the event loop run", async () => {
    const [count, bytes] = [600, 16 << 20];
    const child = join(import.meta.dir, "../device/undisposed-child.ts");
    const { most } = JSON.parse(await runChecked([process.execPath, child, String(count), String(bytes)])) as {
      most: number;
    };
    // Of 9,600 MiB; the collector waits for some of its own before it looks.
    expect(most).toBeGreaterThanOrEqual(bytes);
    expect(most).toBeLessThan(1 << 30);
  }, 60_000);

  test("a slice keeps the memory of a tensor that has been collected", async () => {
    using device = Device.open();
    const slice = device.tensor("u8", [2, size]).slice(1);
    slice.set(new Array(size).fill(3));
    for (let i = 0; i < 20; i++) {
      Bun.gc(true);
      overwriteFreed(device);
      await Bun.sleep(0);
    }
    expect(slice.toFloat32Array().every((value) => value === 3)).toBe(true);
  });

  test("a tensor keeps open a device that nothing else refers to", async () => {
    const tensor = Device.open().tensor("f32", [1, 4]).set([1, 2, 3, 4]);
    for (let i = 0; i < 20; i++) {
      Bun.gc(true);
      await Bun.sleep(0);
    }
    using cache = tensor.device.tensor("f32", [1, 4]);
    using pass = tensor.device.pass();
    kvCacheCopy(pass, { src: tensor, cache, writePos: 0 });
    pass.commitAndWait();
    expect([...cache.toFloat32Array()]).toEqual([1, 2, 3, 4]);
  });

  test("a pipeline goes when it has been collected", async () => {
    using device = Device.open();
    using pass = device.pass();
    const lifetime = Pass.use(pass).device;
    const constants = [0, 1].map((index) => ({ index, dtype: "bool", value: false }) as const);
    const leak = () => Pipeline.use(device.pipeline("kv_cache_copy", { constants }), lifetime);
    const handle = leak();
    const info = new Block(16);
    expect(lifetime.native.ma_pipeline_info(handle, info.bytes)).toBe(0);
    expect(await collectUntil(() => lifetime.native.ma_pipeline_info(handle, info.bytes) === -2)).toBe(true);
  });

  test("passes go when they have been collected: a device makes any number of them", async () => {
    using device = Device.open();
    function leak(): void {
      for (let i = 0; i < 50; i++) device.pass();
    }
    for (let i = 0; i < 40; i++) {
      leak();
      await collectUntil(() => false, 2);
    }
    using pass = device.pass();
    await pass.commit();
    expect(pass.info.state).toBe("completed");
  });

  test("a pass with dispatches that was never committed says so, once", async () => {
    const output = await runChecked([process.execPath, join(import.meta.dir, "../device/forgotten-child.ts")]);
    const steps = output
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as string[]);
    expect(steps.slice(0, 3)).toEqual([[], [], []]);
    for (const warnings of steps.slice(3)) {
      expect(warnings.length).toBe(1);
      expect(warnings[0]).toContain("a pass with 1 dispatch was collected without commit()");
    }
    expect(steps.length).toBe(5);
  });

  test("so does one whose device was disposed before, and none that was disposed after it", async () => {
    const child = [process.execPath, join(import.meta.dir, "../device/forgotten-child.ts"), "closed"];
    const warnings = JSON.parse(await runChecked([...child, "forgotten"])) as string[];
    expect(warnings).toEqual([expect.stringContaining("a pass with 1 dispatch was collected without commit()")]);
    expect(JSON.parse(await runChecked([...child, "disposed"]))).toEqual([]);
  });

  test("a promise of a pass that nothing refers to resolves", async () => {
    function commit(): { done: Promise<void>; view: Float32Array } {
      const device = Device.open();
      const src = device.tensor("f32", [1, 4]).set([1, 2, 3, 4]);
      const cache = device.tensor("f32", [1, 4]);
      const pass = device.pass();
      for (let i = 0; i < 1000; i++) kvCacheCopy(pass, { src, cache, writePos: 0 });
      return { done: pass.commit(), view: cache.view() };
    }
    const { done, view } = commit();
    Bun.gc(true);
    await done;
    expect([...view]).toEqual([1, 2, 3, 4]);
  });
});

test("objects that JavaScript makes of the library's classes are refused, and none is freed later", async () => {
  using device = Device.open();
  using tensor = device.tensor("f32", [1]);
  using pass = device.pass();
  const constants = [0, 1].map((index) => ({ index, dtype: "bool", value: false }) as const);
  using pipeline = device.pipeline("kv_cache_copy", { constants });
  for (const made of [device, tensor, pass, pipeline]) {
    const Class = made.constructor as new (...args: unknown[]) => unknown;
    expect(thrownBy(() => new Class()).message).toContain("use Device.");
    expect(thrownBy(() => new Class({}, {}, {}, [])).message).toContain("use Device.");
  }
  await collectUntil(() => false, 20);
});

describe("a native device", () => {
  test("closes when its last holder lets go, once", () => {
    const native = loadLibrary();
    const out = new Block(8);
    expect(native.ma_device_open(out.bytes)).toBe(0);
    const handle = out.u32[0] as number;
    const lifetime = new DeviceLifetime(native, handle);
    const info = new Block(192);
    lifetime.retain();
    lifetime.release();
    expect([lifetime.closed, native.ma_device_info(handle, info.bytes)]).toEqual([false, 0]);
    lifetime.release();
    expect([lifetime.closed, native.ma_device_info(handle, info.bytes)]).toEqual([true, -2]);
  });
});

test("arguments survive a collection before and after every call", async () => {
  using device = Device.open();
  using cache = device.tensor("f32", [64, 4]);
  for (let i = 0; i < 64; i++) {
    using src = device.tensor("f32", [1, 4]).set(new Float32Array(4).fill(i));
    using pass = device.pass();
    Bun.gc(true);
    kvCacheCopy(pass, { src, cache, writePos: i });
    Bun.gc(true);
    if (i % 2 === 0) pass.commitAndWait();
    else await pass.commit();
  }
  const expected = Float32Array.from({ length: 256 }, (_, i) => Math.floor(i / 4));
  expect(cache.toFloat32Array()).toEqual(expected);
});
