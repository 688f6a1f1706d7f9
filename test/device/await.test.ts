import { describe, expect, spyOn, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { openWithThreads } from "../../scripts/lib/open-device.ts";
import { Spin } from "../../scripts/lib/spin.ts";
import { Device } from "../../src/index.ts";
import { rejectionOf } from "../helpers/errors.ts";
import { collectUntil } from "../helpers/gc.ts";
import { run } from "../helpers/run.ts";

const openFiles = () => readdirSync("/proc/self/fd").length;
const isLinux = process.platform === "linux";

/** How a program ends that holds `body`, a device and passes of a chosen time. */
async function ending(body: string) {
  const program = `
    import { Device } from "${join(import.meta.dir, "../../src/index.ts")}";
    import { Spin } from "${join(import.meta.dir, "../../scripts/lib/spin.ts")}";
    const device = Device.open();
    const spin = new Spin(device);
    ${body}`;
  const start = performance.now();
  const outcome = await run([process.execPath, "-e", program]);
  return { ...outcome, milliseconds: performance.now() - start };
}

/** What a program could poll with. */
const timers = [
  [globalThis, "setTimeout"],
  [globalThis, "setInterval"],
  [globalThis, "setImmediate"],
  [Bun, "sleep"],
] as const;

// The time that this saves is in the benchmark await-latency: here another process may have the processor.
test("await is woken when the pass has ended, and polls with no timer", async () => {
  using device = openWithThreads(1);
  using pass = new Spin(device).pass(0.05);
  const spies = timers.map(([owner, name]) => spyOn(owner as typeof globalThis, name as "setTimeout"));
  try {
    await pass.commit();
    for (const [index, spy] of spies.entries()) {
      expect(spy, timers[index]?.[1]).not.toHaveBeenCalled();
    }
    await new Promise((resolve) => setTimeout(resolve, 1));
    expect(spies[0]).toHaveBeenCalledTimes(1);
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
});

test("timers run while a pass is awaited, and the thread is idle", async () => {
  using device = openWithThreads(1);
  const spin = new Spin(device);
  let ticks = 0;
  const timer = setInterval(() => ticks++, 10);
  using pass = spin.pass(0.4);
  const before = process.threadCpuUsage();
  await pass.commit();
  const { user, system } = process.threadCpuUsage(before);
  clearInterval(timer);
  expect(ticks).toBeGreaterThanOrEqual(10);
  expect((user + system) / 1e6).toBeLessThan(0.1 * pass.info.gpuTime);
});

test("many passes in flight: each promise settles once its own pass has ended, in any order of waiting", async () => {
  using device = Device.open();
  using other = Device.open();
  const spins = [new Spin(device), new Spin(other)] as const;
  const ended: string[] = [];
  const commits = Array.from({ length: 24 }, (_, i) => {
    const which = i % 2;
    // The second device's are short, and so overtake the first's.
    const pass = (spins[which] as Spin).pass(which === 0 ? 4e-3 : 0.1e-3);
    return pass.commit().then(() => {
      expect(pass.info.state).toBe("completed");
      ended.push(`${which}.${i >> 1}`);
      pass.dispose();
    });
  });
  await Promise.all(commits.toReversed());
  for (const which of [0, 1]) {
    expect(ended.filter((name) => name.startsWith(`${which}.`))).toEqual(
      Array.from({ length: 12 }, (_, i) => `${which}.${i}`),
    );
  }
  expect(ended.indexOf("1.0")).toBeLessThan(ended.indexOf("0.11"));
});

test("hundreds of passes awaited together all settle", async () => {
  using device = Device.open();
  const spin = new Spin(device);
  const commits = Array.from({ length: 500 }, () => {
    using pass = spin.pass(1e-5);
    return pass.commit();
  });
  await Promise.all(commits);
});

test("a pass that fails rejects, and the next one is awaited as ever", async () => {
  using device = Device.open();
  const spin = new Spin(device);
  device.registerSource(
    "fault.metal",
    `#include <metal_stdlib>
     kernel void fault(device uint *out [[buffer(0)]], constant ulong &distance [[buffer(1)]]) { out[distance] = 1; }`,
  );
  using out = device.tensor("u32", [1]);
  using pipeline = device.pipeline("fault");
  for (let i = 0; i < 3; i++) {
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [out], bytes: { 1: BigUint64Array.of(2n ** 40n) }, grid: 1, threads: 1 });
    expect((await rejectionOf(pass.commit())).code).toBe("execution");
    using next = spin.pass(1e-4);
    await next.commit();
  }
});

test("disposed while its pass is in flight, a device lets the promise resolve", async () => {
  const device = Device.open();
  const pass = new Spin(device).pass(0.02);
  const commit = pass.commit();
  device.dispose();
  await commit;
});

test.if(isLinux)("a device has one descriptor for its events, and gives it back when it is disposed", async () => {
  async function use(): Promise<number> {
    using device = Device.open();
    const spin = new Spin(device);
    using first = spin.pass(1e-4);
    first.commitAndWait();
    const before = openFiles();
    for (let i = 0; i < 3; i++) {
      using pass = spin.pass(1e-4);
      await pass.commit();
    }
    return openFiles() - before;
  }
  await use();
  await Bun.sleep(5);
  const before = openFiles();
  // A pair of sockets: the library's end and this one.
  for (let i = 0; i < 10; i++) expect(await use()).toBe(2);
  expect(await collectUntil(() => openFiles() <= before)).toBe(true);
});

test.if(isLinux)("without its socket a device blocks until a pass has ended, now and later", async () => {
  const { status, output } = await ending(`
    import { dlopen } from "bun:ffi";
    import { readdirSync, readlinkSync } from "node:fs";
    const { shutdown } = dlopen("libc.so.6", { shutdown: { args: ["i32", "i32"], returns: "i32" } }).symbols;
    const sockets = () => readdirSync("/proc/self/fd").filter((fd) => {
      try { return readlinkSync("/proc/self/fd/" + fd).startsWith("socket:"); } catch { return false; }
    });
    const before = sockets();
    { using pass = spin.pass(1e-4); await pass.commit(); }
    for (const fd of sockets()) if (!before.includes(fd)) shutdown(Number(fd), 2);
    for (let i = 0; i < 3; i++) { using pass = spin.pass(1e-3); await pass.commit(); await Bun.sleep(1); }
    console.log("ended");`);
  expect({ status, output }).toEqual({ status: 0, output: "ended\n" });
});

describe("the process", () => {
  test("stays until a pass in flight has ended, and no longer", async () => {
    const { status, output, milliseconds } = await ending(`
      const pass = spin.pass(0.3);
      pass.commit().then(() => console.log("ended", pass.info.state));`);
    expect({ status, output }).toEqual({ status: 0, output: "ended completed\n" });
    expect(milliseconds).toBeGreaterThan(300);
  });

  test("ends at once when nothing is in flight, with a device open that has waited before", async () => {
    const { status, output } = await ending(`
      for (let i = 0; i < 3; i++) { using pass = spin.pass(1e-3); await pass.commit(); }
      console.log("done");`);
    expect({ status, output }).toEqual({ status: 0, output: "done\n" });
  });
});

test("workers each await passes of their own device", async () => {
  const answers = await Promise.all(
    Array.from({ length: 4 }, () => {
      const worker = new Worker(join(import.meta.dir, "await-worker.ts"));
      const { promise, resolve, reject } = Promise.withResolvers<unknown>();
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = ({ message }) => reject(new Error(message));
      return promise.finally(() => worker.terminate());
    }),
  );
  expect(answers).toEqual(new Array(4).fill("ended"));
});
