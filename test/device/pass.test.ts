import { describe, expect, test } from "bun:test";
import { Device, kvCacheCopy, type Pass, type Tensor } from "../../src/index.ts";
import { rejectionOf, thrownBy } from "../helpers/errors.ts";

interface Scene {
  readonly device: Device;
  readonly src: Tensor<"f32">;
  readonly cache: Tensor<"f32">;
}

/** A source of rows 1 2 3 4 and 5 6 7 8, and an empty cache of 4 slots. */
function scene(): Scene {
  const device = Device.open();
  const src = device.tensor("f32", [2, 4]).set([1, 2, 3, 4, 5, 6, 7, 8]);
  return { device, src, cache: device.tensor("f32", [4, 4]) };
}

const written = [0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0];

describe.each(["concurrent", "serial"] as const)("a %s pass", (mode) => {
  test("has run when commit() resolves", async () => {
    const { device, src, cache } = scene();
    using _ = device;
    using pass = device.pass({ mode });
    kvCacheCopy(pass, { src, cache, writePos: 1 });
    expect([...cache.toFloat32Array()]).toEqual(new Array(16).fill(0));
    await pass.commit();
    expect([...cache.toFloat32Array()]).toEqual(written);
    expect(pass.info).toMatchObject({ state: "completed", dispatches: 1 });
  });

  test("has run when commitAndWait() returns", () => {
    const { device, src, cache } = scene();
    using _ = device;
    using pass = device.pass({ mode });
    kvCacheCopy(pass, { src, cache, writePos: 1 });
    pass.commitAndWait();
    expect([...cache.toFloat32Array()]).toEqual(written);
    pass.wait();
    const { gpuStartTime, gpuEndTime, gpuTime } = pass.info;
    expect(gpuStartTime).toBeGreaterThan(0);
    expect(gpuEndTime).toBeGreaterThanOrEqual(gpuStartTime);
    expect(gpuTime).toBe(gpuEndTime - gpuStartTime);
  });

  test("describes what it holds", () => {
    const { device, src, cache } = scene();
    using _ = device;
    using pass = device.pass({ mode });
    kvCacheCopy(pass, { src, cache, writePos: 1 });
    kvCacheCopy(pass, { src, cache, writePos: 2 });
    using otherCache = device.tensor("f32", [4, 4]);
    kvCacheCopy(pass, { src, cache: otherCache, writePos: 0 });
    const dispatches = pass.describe();
    expect(dispatches.map(({ op, kernel, form }) => [op, kernel, form])).toEqual(
      new Array(3).fill(["kvCacheCopy", "kv_cache_copy_f32", "threads"]),
    );
    expect(dispatches[0]?.reads).toMatchObject([{ offset: 0, length: 32 }]);
    expect(dispatches[0]?.writes).toMatchObject([{ offset: 16, length: 32 }]);
    expect(dispatches[1]?.writes).toMatchObject([{ offset: 32, length: 32 }]);
    expect(dispatches[0]?.reads[0]?.buffer).toBe(dispatches[2]?.reads[0]?.buffer as number);
    expect(dispatches[0]?.writes[0]?.buffer).not.toBe(dispatches[2]?.writes[0]?.buffer as number);
    // Slot 2 is written twice; in a serial pass the order needs no barrier.
    expect(dispatches.map(({ barrierBefore }) => barrierBefore)).toEqual([false, mode === "concurrent", false]);
  });

  test("keeps the order of dispatches that conflict", () => {
    const { device, src, cache } = scene();
    using _ = device;
    using pass = device.pass({ mode });
    using second = src.slice(1);
    for (let i = 0; i < 200; i++) {
      kvCacheCopy(pass, { src, cache, writePos: 0, nNew: 1 });
      kvCacheCopy(pass, { src: second, cache, writePos: 0 });
    }
    pass.commitAndWait();
    expect([...cache.toFloat32Array().subarray(0, 4)]).toEqual([5, 6, 7, 8]);
  });
});

test("a pass without dispatches completes", async () => {
  using device = Device.open();
  using pass = device.pass();
  expect(pass.describe()).toEqual([]);
  const { openTime, ...info } = pass.info;
  expect(info).toEqual({
    state: "encoding",
    dispatches: 0,
    gpuStartTime: 0,
    gpuEndTime: 0,
    commitTime: 0,
    gpuTime: 0,
  });
  await pass.commit();
  expect(pass.info.state).toBe("completed");
  expect(openTime).toBeGreaterThan(0);
  expect(pass.info.commitTime).toBeGreaterThanOrEqual(openTime);
});

test("a pass holds 10,000 dispatches", () => {
  const { device, src, cache } = scene();
  using _ = device;
  using pass = device.pass();
  for (let i = 0; i < 10_000; i++) kvCacheCopy(pass, { src, cache, writePos: i, isSliding: true });
  expect(pass.info.dispatches).toBe(10_000);
  expect(pass.describe().length).toBe(10_000);
  pass.commitAndWait();
  // The last copies went to slots 9,999 mod 4 and the next: 3 and 0.
  expect([...cache.toFloat32Array()].slice(0, 4)).toEqual([5, 6, 7, 8]);
  expect([...cache.toFloat32Array()].slice(12)).toEqual([1, 2, 3, 4]);
});

describe("out of order", () => {
  test("a second commit is refused, and the first still ends", async () => {
    const { device, src, cache } = scene();
    using _ = device;
    using pass = device.pass();
    kvCacheCopy(pass, { src, cache, writePos: 1 });
    const first = pass.commit();
    expect((await rejectionOf(pass.commit())).code).toBe("invalid-state");
    expect(thrownBy(() => pass.commitAndWait()).code).toBe("invalid-state");
    await first;
    expect([...cache.toFloat32Array()]).toEqual(written);
    expect((await rejectionOf(pass.commit())).code).toBe("invalid-state");
  });

  test("an operation after the commit is refused", () => {
    const { device, src, cache } = scene();
    using _ = device;
    using pass = device.pass();
    pass.commitAndWait();
    expect(thrownBy(() => kvCacheCopy(pass, { src, cache, writePos: 0 })).code).toBe("invalid-state");
    expect(pass.describe()).toEqual([]);
    expect([...cache.toFloat32Array()]).toEqual(new Array(16).fill(0));
  });

  test("waiting before the commit is refused", () => {
    using device = Device.open();
    using pass = device.pass();
    expect(thrownBy(() => pass.wait()).code).toBe("invalid-state");
    pass.commitAndWait();
  });

  test("a refused operation leaves the pass usable", () => {
    const { device, src, cache } = scene();
    using _ = device;
    using pass = device.pass();
    expect(thrownBy(() => kvCacheCopy(pass, { src, cache, writePos: 3 })).code).toBe("overflow");
    kvCacheCopy(pass, { src, cache, writePos: 1 });
    pass.commitAndWait();
    expect([...cache.toFloat32Array()]).toEqual(written);
  });
});

describe("disposed", () => {
  test("a pass refuses every use, and a second dispose does nothing", async () => {
    const { device, src, cache } = scene();
    using _ = device;
    const pass: Pass = device.pass();
    pass.dispose();
    pass.dispose();
    const uses = [
      () => pass.info,
      () => pass.describe(),
      () => pass.wait(),
      () => pass.commitAndWait(),
      () => kvCacheCopy(pass, { src, cache, writePos: 0 }),
    ];
    for (const use of uses) expect(thrownBy(use).code).toBe("disposed");
    expect((await rejectionOf(pass.commit())).code).toBe("disposed");
  });

  test("in flight, the pass goes on and its promise resolves", async () => {
    const { device, src, cache } = scene();
    using _ = device;
    function run(): Promise<void> {
      using pass = device.pass();
      for (let i = 0; i < 100; i++) kvCacheCopy(pass, { src, cache, writePos: 1 });
      return pass.commit();
    }
    await run();
    expect([...cache.toFloat32Array()]).toEqual(written);
  });

  test("with its tensors in flight, the pass goes on", async () => {
    const { device, src, cache } = scene();
    using _ = device;
    using pass = device.pass();
    const temporary = device.tensor("f32", [2, 4]).set(src.toFloat32Array());
    kvCacheCopy(pass, { src: temporary, cache, writePos: 1 });
    temporary.dispose();
    await pass.commit();
    expect([...cache.toFloat32Array()]).toEqual(written);
  });

  test("with its device in flight, the promise resolves and views show the result", async () => {
    const { device, src, cache } = scene();
    const view = cache.view();
    const pass = device.pass();
    kvCacheCopy(pass, { src, cache, writePos: 1 });
    const done = pass.commit();
    device.dispose();
    expect(thrownBy(() => pass.info).code).toBe("disposed");
    await done;
    expect([...view]).toEqual(written);
  });

  test("with its device, the pass has ended when dispose() returns", async () => {
    const device = Device.open();
    const rows = 2048;
    const src = device.tensor("f32", [rows, 1024]).set(new Float32Array(rows * 1024).fill(7));
    const cache = device.tensor("f32", [rows, 1024]);
    const other = device.tensor("f32", [rows, 1024]);
    const view = cache.view();
    const commits = [0, 1].map((half) => {
      // Each is disposed while it runs, and writes its half of the cache in the end.
      using pass = device.pass();
      for (let i = 0; i < 20; i++) kvCacheCopy(pass, { src, cache: other, writePos: 0 });
      kvCacheCopy(pass, { src, cache, writePos: (half * rows) / 2, nNew: rows / 2 });
      return pass.commit();
    });
    src.dispose();
    device.dispose();
    expect(view.every((value) => value === 7)).toBe(true);
    await Promise.all(commits);
  });

  test("never committed, it leaves no trace", () => {
    const { device, src, cache } = scene();
    using _ = device;
    for (let i = 0; i < 200; i++) {
      using pass = device.pass();
      kvCacheCopy(pass, { src, cache, writePos: 1 });
    }
    expect([...cache.toFloat32Array()]).toEqual(new Array(16).fill(0));
  });
});

test("passes of one device run in the order of their commits", async () => {
  const { device, src, cache } = scene();
  using _ = device;
  const second = src.slice(1);
  const commits: Promise<void>[] = [];
  for (let i = 0; i < 20; i++) {
    using pass = device.pass();
    kvCacheCopy(pass, { src: i % 2 === 0 ? src : second, cache, writePos: 0, nNew: 1 });
    commits.push(pass.commit());
  }
  await Promise.all(commits);
  expect([...cache.toFloat32Array().subarray(0, 4)]).toEqual([5, 6, 7, 8]);
});
