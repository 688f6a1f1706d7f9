import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openWith, openWithThreads } from "../../scripts/lib/open-device.ts";
import { Spin } from "../../scripts/lib/spin.ts";
import { Device, kvCacheCopy } from "../../src/index.ts";
import { rejectionOf, thrownBy } from "../helpers/errors.ts";

describe("a profiled pass", () => {
  test("tells the device's time of each dispatch, which add up to that of the pass", async () => {
    using device = openWithThreads(1);
    const spin = new Spin(device);
    const rounds: { times: number[]; share: number }[] = [];
    for (let round = 0; round < 40; round++) {
      using pass = device.pass({ profile: true });
      for (const microseconds of [200, 1600, 400]) spin.encode(pass, microseconds / 1e6);
      expect(pass.describe()[0]?.microseconds).toBeUndefined();
      const committed = performance.now();
      await pass.commit();
      expect(pass.info.gpuTime).toBeLessThan((performance.now() - committed) / 1e3);
      const times = pass.describe().map(({ microseconds = 0 }) => microseconds / 1e6);
      const share = times.reduce((a, b) => a + b) / pass.info.gpuTime;
      expect(share).toBeLessThan(1.01);
      rounds.push({ times, share });
    }
    // A busy machine can only make a dispatch, or the gap between two, longer: the least of the rounds is its own.
    const [first = 0, second = 0, third = 0] = [0, 1, 2].map((i) =>
      Math.min(...rounds.map(({ times }) => times[i] as number)),
    );
    expect(first).toBeGreaterThan(0);
    expect(second / first).toBeWithin(5, 12);
    expect(third / first).toBeWithin(1.4, 2.8);
    expect(Math.max(...rounds.map(({ share }) => share))).toBeGreaterThan(0.9);
  });

  test.each(["concurrent", "serial"] as const)("gives the same results and the same description (%s)", (mode) => {
    using device = Device.open();
    const src = device.tensor("f32", [2, 4]).set([1, 2, 3, 4, 5, 6, 7, 8]);
    const described = [false, true].map((profile) => {
      using cache = device.tensor("f32", [4, 4]);
      using pass = device.pass({ mode, profile });
      for (let i = 0; i < 100; i++) kvCacheCopy(pass, { src, cache, writePos: i, isSliding: true });
      pass.commitAndWait();
      // Copy 99 fills slots 3 and 0; the others keep the second row of theirs.
      expect([...cache.toFloat32Array()]).toEqual([5, 6, 7, 8, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4]);
      return pass.describe().map(({ op, barrierBefore }) => ({ op, barrierBefore }));
    });
    expect(described[1]).toEqual(described[0] as NonNullable<(typeof described)[0]>);
  });

  test("has times for thousands of dispatches, and bytes a second", () => {
    using device = Device.open();
    const src = device.tensor("f32", [1, 1024]);
    const cache = device.tensor("f32", [4, 1024]);
    using pass = device.pass({ profile: true });
    for (let i = 0; i < 3000; i++) kvCacheCopy(pass, { src, cache, writePos: i % 4 });
    pass.commitAndWait();
    const dispatches = pass.describe();
    expect(dispatches.length).toBe(3000);
    for (const { microseconds, gbPerSecond } of dispatches) {
      expect(microseconds).toBeGreaterThan(0);
      // 4 KiB read and 4 KiB written.
      expect(((gbPerSecond ?? 0) * (microseconds ?? 0)) / 8.192).toBeCloseTo(1, 2);
    }
  });

  test.each(["stage", "dispatch"] as const)("says where its times are sampled: %s", (point) => {
    using device = openWith({ SOFTMETAL_COUNTERS: point, SOFTMETAL_THREADS: "1" });
    const spin = new Spin(device);
    using pass = device.pass({ profile: true });
    for (let i = 0; i < 600; i++) spin.encode(pass, i === 550 ? 4e-3 : 1e-5);
    pass.commitAndWait();
    const dispatches = pass.describe();
    expect(new Set(dispatches.map(({ sampledAt }) => sampledAt))).toEqual(new Set([point]));
    const times = dispatches.map(({ microseconds = 0 }) => microseconds);
    expect(Math.min(...times)).toBeGreaterThan(0);
    const shorts = times.toSpliced(550, 1).sort((a, b) => a - b);
    expect(times[550]).toBeGreaterThan(100 * (shorts[300] as number));
    using plain = device.pass();
    spin.encode(plain, 1e-5);
    plain.commitAndWait();
    expect(plain.describe()[0]?.sampledAt).toBeUndefined();
  });

  test("without dispatches completes", async () => {
    using device = Device.open();
    using pass = device.pass({ profile: true });
    await pass.commit();
    expect(pass.describe()).toEqual([]);
  });

  test("that is never committed leaves no trace", () => {
    using device = Device.open();
    const [src, cache] = [device.tensor("f32", [1, 4]), device.tensor("f32", [4, 4])];
    for (let i = 0; i < 100; i++) {
      using pass = device.pass({ profile: true });
      if (i % 2 === 0) kvCacheCopy(pass, { src, cache, writePos: 1 });
    }
  });

  test("cannot be recorded: a recording has no such option", () => {
    using device = Device.open();
    expect(thrownBy(() => device.record(() => {}, { profile: true } as never)).code).toBe("invalid-argument");
  });
});

test("a description prints as a table whose ranges can be read", () => {
  using device = Device.open();
  const [src, cache] = [device.tensor("f32", [1, 4]), device.tensor("f32", [4, 4])];
  using pass = device.pass();
  kvCacheCopy(pass, { src, cache, writePos: 1 });
  const [{ reads, writes } = { reads: [], writes: [] }] = pass.describe();
  expect(Bun.inspect(writes[0])).toBe(`${writes[0]?.buffer}: 16 + 16`);
  expect(Bun.inspect.table(pass.describe())).toContain(`[ ${reads[0]?.buffer}: 0 + 16 ]`);
});

describe("a trace", () => {
  test("has the host's lanes and the device's, each dispatch inside its pass, by operation and kernel", async () => {
    const folder = mkdtempSync(join(tmpdir(), "metal-attention-trace-"));
    try {
      using device = openWithThreads(1);
      const spin = new Spin(device);
      const [src, cache] = [device.tensor("f32", [1, 4]), device.tensor("f32", [4, 4])];
      using pass = device.pass({ profile: true });
      spin.encode(pass, 2e-3);
      kvCacheCopy(pass, { src, cache, writePos: 1 });
      await pass.commit();
      const path = join(folder, "pass.trace.json");
      await pass.trace(path);
      const { traceEvents } = (await Bun.file(path).json()) as { traceEvents: TraceEvent[] };
      const spans = traceEvents.filter(({ ph }) => ph === "X");
      const lane = ({ pid, tid }: TraceEvent) =>
        traceEvents.find((event) => event.name === "thread_name" && event.pid === pid && event.tid === tid)?.args[
          "name"
        ];
      expect(spans.map((span) => [lane(span), span.name])).toEqual([
        ["encode", "encode 2 dispatches"],
        ["queue", "queue"],
        ["pass", "pass"],
        ["kernel", "spin"],
        ["kvCacheCopy", "kv_cache_copy_f32"],
      ]);
      const [encode, queue, whole, first, second] = spans as [Span, Span, Span, Span, Span];
      for (const { dur } of spans as Span[]) expect(dur).toBeGreaterThanOrEqual(0);
      expect(queue.ts).toBeCloseTo(encode.ts + encode.dur, 0);
      expect(whole.ts).toBeGreaterThanOrEqual(queue.ts);
      expect(first.ts).toBeGreaterThanOrEqual(whole.ts - 1);
      expect(second.ts).toBeGreaterThanOrEqual(first.ts + first.dur - 1);
      expect(second.ts + second.dur).toBeLessThanOrEqual(whole.ts + whole.dur + 1);
      expect(second.args).toMatchObject({ bytes: 32, op: "kvCacheCopy", grid: [1, 1, 1] });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("of a pass that was not profiled, or has not completed, is refused", async () => {
    using device = Device.open();
    const spin = new Spin(device);
    using plain = spin.pass(1e-4);
    await plain.commit();
    expect((await rejectionOf(plain.trace("never.json"))).code).toBe("invalid-state");
    using profiled = device.pass({ profile: true });
    spin.encode(profiled, 1e-4);
    expect((await rejectionOf(profiled.trace("never.json"))).code).toBe("invalid-state");
    expect(await Bun.file("never.json").exists()).toBe(false);
  });

  test("goes to a file that can be written, by its path", async () => {
    using device = Device.open();
    using pass = device.pass({ profile: true });
    pass.copy(device.tensor("f32", [1]), device.tensor("f32", [1]));
    pass.commitAndWait();
    for (const path of [undefined, null, "", 1, -1, Number.NaN, "a\0b", new URL("file:///tmp/a"), "file:///tmp/a"]) {
      const error = await rejectionOf(pass.trace(path as string));
      expect([error.code, error.argument]).toEqual(["invalid-argument", "path"]);
    }
    // There is no folder where a file is.
    const path = join(import.meta.path, "trace.json");
    const error = await rejectionOf(pass.trace(path));
    expect([error.code, error.argument]).toEqual(["invalid-argument", path]);
  });
});

interface TraceEvent {
  readonly name: string;
  readonly ph: string;
  readonly pid: number;
  readonly tid: number;
  readonly args: Readonly<Record<string, unknown>>;
}

type Span = TraceEvent & { readonly ts: number; readonly dur: number };

test("a pass whose dispatches the device cannot encode is refused, not run in part", () => {
  using device = openWith({ SOFTMETAL_FAIL: "encoder:2" });
  if (device.info.backend !== "SoftMetal") return;
  const [src, cache] = [device.tensor("f32", [1, 4]).set([1, 2, 3, 4]), device.tensor("f32", [4, 4])];
  using pass = device.pass({ profile: true });
  for (let writePos = 0; writePos < 3; writePos++) kvCacheCopy(pass, { src, cache, writePos });
  expect(thrownBy(() => pass.commitAndWait()).code).toBe("out-of-memory");
  expect([...cache.toFloat32Array()]).toEqual(new Array(16).fill(0));
});
