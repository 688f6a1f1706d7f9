import { describe, expect, test } from "bun:test";
import {
  buildSlidingWindowMask,
  classifyMaskTiles,
  Device,
  flashAttnPrefill,
  hadamardQuantizeKv,
  kvCacheCopy,
  kvCacheCopyBatch,
  kvCacheCopySeq,
  type RecordingPass,
  type Tensor,
} from "../../src/index.ts";
import { expectRefusal, rejectionOf, thrownBy } from "../helpers/errors.ts";
import { collectUntil } from "../helpers/gc.ts";
import { capacity, copyScene, values } from "../helpers/recorded.ts";

describe.each(["concurrent", "serial"] as const)("a recorded pass (%s)", (mode) => {
  test("runs as often as wanted, with what its tensors then hold", async () => {
    using s = copyScene();
    using step = s.device.record((pass) => kvCacheCopy(pass, { src: s.src, cache: s.cache, writePos: 1 }), { mode });
    expect(values(s.cache)).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
    await step.commit();
    expect(values(s.cache)).toEqual([0, 0, 1, 2, 0, 0, 0, 0]);
    s.src.set([3, 4]);
    step.commitAndWait();
    expect(values(s.cache)).toEqual([0, 0, 3, 4, 0, 0, 0, 0]);
  });

  test("takes another tensor for each that it names, or for some of them", () => {
    using s = copyScene();
    using step = s.device.record(
      (pass) => {
        pass.tensor("src", s.src);
        pass.tensor("cache", s.cache);
        kvCacheCopy(pass, { src: s.src, cache: s.cache, writePos: 1 });
      },
      { mode },
    );
    const src = s.device.tensor("f32", [1, 2]).set([5, 6]);
    const cache = s.device.tensor("f32", [capacity, 2]);
    step.commitAndWait({ src, cache });
    expect([values(s.cache), values(cache)]).toEqual([
      [0, 0, 0, 0, 0, 0, 0, 0],
      [0, 0, 5, 6, 0, 0, 0, 0],
    ]);
    step.commitAndWait({ src });
    step.commitAndWait({ cache });
    expect([values(s.cache), values(cache)]).toEqual([
      [0, 0, 5, 6, 0, 0, 0, 0],
      [0, 0, 1, 2, 0, 0, 0, 0],
    ]);
  });

  test("gives what the same operations give when encoded anew, bit for bit, with the same barriers", async () => {
    using device = Device.open();
    const random = (seed: number) => (length: number) =>
      Float32Array.from({ length }, (_, i) => Math.fround(Math.sin(seed + i * 12.9898) * 2));
    const tensor = (shape: number[], seed: number) =>
      device.tensor("bf16", shape).set(random(seed)(shape.reduce((a, b) => a * b)));
    const [q, k, v] = [tensor([1, 4, 64, 64], 1), tensor([1, 2, 64, 64], 2), tensor([1, 2, 64, 64], 3)];
    const tokens = device.tensor("f32", [5, 2, 64]).set(random(4)(5 * 2 * 64));
    const mask = device.tensor("bool", [64, 64]);
    const keys = k.reshape([2, 64, 64]);
    function encode(pass: RecordingPass | ReturnType<Device["pass"]>, out: Tensor<"bf16">): void {
      kvCacheCopySeq(pass, { src: tokens, cache: keys, seqPosStart: 3 });
      buildSlidingWindowMask(pass, { mask, window: 9 });
      const tileClasses = classifyMaskTiles(pass, { mask, headDim: 64 });
      flashAttnPrefill(pass, { q, k, v, out, mask, tileClasses });
    }
    const [expected, out] = [device.tensor("bf16", [1, 4, 64, 64]), device.tensor("bf16", [1, 4, 64, 64])];
    using pass = device.pass({ mode });
    encode(pass, expected);
    const described = pass.describe().map(({ op, grid, barrierBefore }) => ({ op, grid, barrierBefore }));
    await pass.commit();
    using step = device.record((pass) => encode(pass, out), { mode });
    expect(step.describe().map(({ op, grid, barrierBefore }) => ({ op, grid, barrierBefore }))).toEqual(described);
    for (let run = 0; run < 3; run++) {
      out.bytes.fill(0xee);
      await step.commit();
      expect(Buffer.compare(out.bytes, expected.bytes)).toBe(0);
    }
  });

  test("takes a number by name with each run", async () => {
    using s = copyScene();
    using step = s.device.record(
      (pass) => {
        const writePos = pass.parameter("writePos", { min: 0, max: 100 });
        kvCacheCopy(pass, { src: s.src, cache: s.cache, writePos });
      },
      { mode },
    );
    await step.commit({ writePos: 2 });
    expect(values(s.cache)).toEqual([0, 0, 0, 0, 1, 2, 0, 0]);
    await step.commit({ writePos: 0 });
    expect(values(s.cache)).toEqual([1, 2, 0, 0, 1, 2, 0, 0]);
    // Within its range, but beyond the cache: the operation's own check, by its own names.
    const error = thrownBy(() => step.commitAndWait({ writePos: 4 }));
    expect({ code: error.code, argument: error.argument }).toEqual({ code: "overflow", argument: "writePos" });
    expect(error.message).toContain("operation 0 (ma_kv_cache_copy): writePos 4");
    expectRefusal(() => step.commitAndWait({ writePos: 101 }), "invalid-argument", "writePos", 101, "0 to 100");
    expectRefusal(() => step.commitAndWait({}), "invalid-argument", "writePos", "missing");
    expectRefusal(() => step.commitAndWait(), "invalid-argument", "writePos", "missing");
    expectRefusal(() => step.commitAndWait({ writePos: -1 }), "invalid-argument", "writePos", -1);
    expectRefusal(() => step.commitAndWait({ writePoz: 1 }), "invalid-argument", "writePoz", "writePos");
    expect((await rejectionOf(step.commit({ writePos: 4 }))).code).toBe("overflow");
    expect(values(s.cache)).toEqual([1, 2, 0, 0, 1, 2, 0, 0]);
  });
});

test("a number with a value of its own may be left out", () => {
  using s = copyScene();
  using step = s.device.record((pass) => {
    const writePos = pass.parameter("writePos", { min: 0, max: 3, value: 3 });
    kvCacheCopy(pass, { src: s.src, cache: s.cache, writePos });
  });
  step.commitAndWait();
  expect(values(s.cache)).toEqual([0, 0, 0, 0, 0, 0, 1, 2]);
  step.commitAndWait({ writePos: 0 });
  step.commitAndWait({});
  expect(values(s.cache)).toEqual([1, 2, 0, 0, 0, 0, 1, 2]);
  expectRefusal(() => step.commitAndWait({ writePos: null as never }), "invalid-argument", "writePos", "null");
  expect(values(s.cache)).toEqual([1, 2, 0, 0, 0, 0, 1, 2]);
});

test("one number serves several operations and arguments, K and V among them", () => {
  using device = Device.open();
  const src = device.tensor("f32", [2, 64]).set(new Float32Array(128).fill(1));
  const [k, v] = [device.tensor("f32", [2, capacity, 64]), device.tensor("f32", [2, capacity, 64])];
  const packed = device.tensor("u8", [2, capacity, 32]);
  const norms = device.tensor("f32", [2, capacity, 1]);
  using step = device.record((pass) => {
    const position = pass.parameter("position", { min: 0, max: capacity - 1 });
    kvCacheCopyBatch(pass, { k: { src, cache: k }, v: { src, cache: v }, seqPos: position });
    // Its C name is another.
    hadamardQuantizeKv(pass, { src, packed, norms, bits: 4, writePos: position });
  });
  for (const position of [2, 0]) {
    step.commitAndWait({ position });
    for (const cache of [k, v]) expect(cache.toFloat32Array()[position * 64]).toBe(1);
    expect(norms.toFloat32Array()[position]).toBeGreaterThan(0);
  }
  expect(k.toFloat32Array()[64]).toBe(0);
  expect(norms.toFloat32Array()[1]).toBe(0);
});

test("barriers follow from the numbers of each run", () => {
  using device = Device.open();
  const rows = device.tensor("f32", [2, 2]).set([1, 2, 3, 4]);
  const [first, second] = [rows.slice(0, 1), rows.slice(1)];
  const cache = device.tensor("f32", [capacity, 2]);
  using step = device.record((pass) => {
    const writePos = pass.parameter("writePos", { min: 0, max: 3 });
    kvCacheCopy(pass, { src: first, cache, writePos });
    kvCacheCopy(pass, { src: second, cache, writePos: 2 });
  });
  expect(step.describe().map(({ barrierBefore }) => barrierBefore)).toEqual([false, false]);
  for (let run = 0; run < 50; run++) {
    step.commitAndWait({ writePos: 2 });
    expect(values(cache).slice(4, 6)).toEqual([3, 4]);
  }
});

describe("a kernel of the caller", () => {
  const source = `
    #include <metal_stdlib>
    kernel void fill(device uint *out [[buffer(0)]], constant uint &value [[buffer(1)]],
                     constant uint &more [[buffer(2)]], uint i [[thread_position_in_grid]]) { out[i] = value + more; }`;

  test("takes a number as bytes, and keeps the bytes that it was recorded with", () => {
    using device = Device.open();
    device.registerSource("fill.metal", source);
    using pipeline = device.pipeline("fill");
    using out = device.tensor("u32", [4]);
    const more = Uint32Array.of(100);
    using step = device.record((pass) => {
      const value = pass.parameter("value", { min: 0, max: 50 });
      pass.dispatch(pipeline, { buffers: [out], bytes: { 1: value, 2: more }, grid: 4, threads: 4 });
    });
    more[0] = 7;
    for (const value of [1, 50]) {
      step.commitAndWait({ value });
      expect(values(out)).toEqual(new Array(4).fill(100 + value));
    }
  });

  test("cannot take its grid, nor bytes of another size, from a parameter", () => {
    using device = Device.open();
    device.registerSource("fill.metal", source);
    using pipeline = device.pipeline("fill");
    using out = device.tensor("u32", [4]);
    const bytes = { 1: Uint32Array.of(1), 2: Uint32Array.of(2) };
    using step = device.record((pass) => {
      const n = pass.parameter("n", { min: 1, max: 4 });
      expectRefusal(
        () => pass.dispatch(pipeline, { buffers: [out], bytes, grid: n, threads: 4 }),
        "unsupported",
        "grid",
        "parameter",
      );
      // The refusal has left nothing behind.
      pass.dispatch(pipeline, { buffers: [out], bytes, grid: 4, threads: 4 });
    });
    expect(step.describe()).toHaveLength(1);
    step.commitAndWait({ n: 2 });
    expect(values(out)).toEqual([3, 3, 3, 3]);
  });
});

describe("a tensor that runs replace", () => {
  test("by another, for one run, wherever it or a slice of it is used", () => {
    using device = Device.open();
    const rows = device.tensor("f32", [2, 2]).set([1, 2, 3, 4]);
    const shifted = device.tensor("f32", [4, 2]).set([0, 0, 0, 0, 5, 6, 7, 8]);
    const cache = device.tensor("f32", [capacity, 2]);
    using step = device.record((pass) => {
      const src = pass.tensor("src", rows);
      kvCacheCopy(pass, { src, cache, writePos: 0 });
      kvCacheCopy(pass, { src: src.slice(1), cache, writePos: 2 });
    });
    step.commitAndWait({ src: shifted.slice(2) });
    expect(values(cache)).toEqual([5, 6, 7, 8, 7, 8, 0, 0]);
    step.commitAndWait();
    expect(values(cache)).toEqual([1, 2, 3, 4, 3, 4, 0, 0]);
  });

  test("for a kernel of the caller", () => {
    using device = Device.open();
    device.registerSource(
      "next.metal",
      `#include <metal_stdlib>
       kernel void next(device uint *x [[buffer(0)]]) { x[0] += 1; }`,
    );
    using pipeline = device.pipeline("next");
    const [a, b] = [device.tensor("u32", [1]), device.tensor("u32", [1])];
    using step = device.record((pass) => {
      pass.tensor("x", a);
      pass.dispatch(pipeline, { buffers: [a], grid: 1, threads: 1 });
    });
    step.commitAndWait({ x: b });
    step.commitAndWait({ x: b });
    step.commitAndWait({ x: a });
    expect([values(a), values(b)]).toEqual([[1], [2]]);
  });

  test("refuses one of another dtype or shape, of another device, disposed, or overlapping", () => {
    using s = copyScene();
    using other = Device.open();
    using step = s.device.record((pass) => {
      kvCacheCopy(pass, { src: pass.tensor("src", s.src), cache: s.cache, writePos: 0 });
    });
    expectRefusal(() => step.commitAndWait({ src: s.device.tensor("f16", [1, 2]) }), "invalid-argument", "src", "f16");
    expectRefusal(
      () => step.commitAndWait({ src: s.device.tensor("f32", [2, 1]) }),
      "invalid-argument",
      "src",
      "[2,1]",
    );
    expectRefusal(() => step.commitAndWait({ src: other.tensor("f32", [1, 2]) }), "invalid-handle", "src");
    expectRefusal(() => step.commitAndWait({ src: 3 }), "invalid-argument", "src", "3");
    const gone = s.device.tensor("f32", [1, 2]);
    gone.dispose();
    expectRefusal(() => step.commitAndWait({ src: gone }), "disposed", "src");
    // The operation's own check of the tensors together.
    const error = thrownBy(() => step.commitAndWait({ src: s.cache.slice(0, 1) }));
    expect(error.code).toBe("invalid-argument");
    expect(error.message).toContain("overlap");
    expect(values(s.cache)).toEqual(new Array(8).fill(0));
    step.commitAndWait();
    expect(values(s.cache).slice(0, 2)).toEqual([1, 2]);
  });

  test("may be gone where it is replaced", () => {
    using s = copyScene();
    const src = s.device.tensor("f32", [1, 2]);
    using step = s.device.record((pass) => {
      kvCacheCopy(pass, { src: pass.tensor("src", src), cache: s.cache, writePos: 0 });
    });
    src.dispose();
    step.commitAndWait({ src: s.src });
    expect(values(s.cache).slice(0, 2)).toEqual([1, 2]);
    expect(thrownBy(() => step.commitAndWait()).code).toBe("disposed");
  });
});

describe("disposed", () => {
  test("a tensor of it makes a run an error, and nothing runs; its memory stays until then", async () => {
    using s = copyScene();
    const src = s.device.tensor("f32", [1, 2]).set([5, 6]);
    using step = s.device.record((pass) => {
      kvCacheCopy(pass, { src: s.src, cache: s.cache, writePos: 0 });
      kvCacheCopy(pass, { src, cache: s.cache, writePos: 1 });
    });
    step.commitAndWait();
    const running = step.commit();
    src.dispose();
    await running;
    s.cache.set(new Float32Array(8));
    expect(thrownBy(() => step.commitAndWait()).code).toBe("disposed");
    expect((await rejectionOf(step.commit())).code).toBe("disposed");
    expect(values(s.cache)).toEqual(new Array(8).fill(0));
  });

  test("a tensor whose memory lives on in a slice counts as well", () => {
    using s = copyScene();
    const src = s.device.tensor("f32", [1, 2]);
    const slice = src.slice(0);
    using step = s.device.record((pass) => kvCacheCopy(pass, { src, cache: s.cache, writePos: 0 }));
    src.dispose();
    expect(thrownBy(() => step.commitAndWait()).code).toBe("disposed");
    expect(slice.disposed).toBe(false);
  });

  test("the recorded pass, or its device, refuses every use", async () => {
    const s = copyScene();
    const [first, second] = [0, 1].map(() =>
      s.device.record((pass) => kvCacheCopy(pass, { src: s.src, cache: s.cache, writePos: 0 })),
    );
    first?.dispose();
    first?.dispose();
    const running = second?.commit();
    s.device.dispose();
    await running;
    for (const step of [first, second]) {
      expect(thrownBy(() => step?.commitAndWait()).code).toBe("disposed");
      expect(thrownBy(() => step?.describe()).code).toBe("disposed");
    }
  });

  test("it gives back the memory that it kept", async () => {
    using device = Device.open();
    using cache = device.tensor("f32", [capacity, 1024]);
    const before = device.info.currentAllocatedSize;
    function use(): void {
      const src = device.tensor("f32", [capacity, 1024]);
      const step = device.record((pass) => kvCacheCopy(pass, { src, cache, writePos: 0 }));
      step.commitAndWait();
      src.dispose();
      // Every other one is left to the collector.
      if (device.info.currentAllocatedSize % 2 === 0) step.dispose();
    }
    for (let i = 0; i < 20; i++) use();
    expect(await collectUntil(() => device.info.currentAllocatedSize === before)).toBe(true);
  });
});

test("hundreds of runs in flight end in the order of their commits", async () => {
  using s = copyScene();
  using step = s.device.record((pass) => {
    const writePos = pass.parameter("writePos", { min: 0, max: 3 });
    kvCacheCopy(pass, { src: pass.tensor("src", s.src), cache: s.cache, writePos });
  });
  const sources = Array.from({ length: 400 }, (_, i) => s.device.tensor("f32", [1, 2]).set([i, i]));
  await Promise.all(sources.map((src, i) => step.commit({ src, writePos: i % 4 })));
  expect(values(s.cache)).toEqual([396, 396, 397, 397, 398, 398, 399, 399]);
});
