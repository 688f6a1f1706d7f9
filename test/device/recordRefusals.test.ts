import { describe, expect, test } from "bun:test";
import { runInNewContext } from "node:vm";
import {
  applyRope,
  buildSlidingWindowMask,
  classifyMaskTiles,
  Device,
  dequantizeKv,
  flashAttnPrefill,
  hadamardQuantizeKvSeq,
  kvCacheBytes,
  kvCacheCopy,
  kvCacheCopyBatch,
  kvCacheCopyHeadMajor,
  kvCacheCopySeq,
  type RecordingPass,
} from "../../src/index.ts";
import { expectRefusal, thrownBy } from "../helpers/errors.ts";
import { copyScene, values } from "../helpers/recorded.ts";

describe("while recording", () => {
  test("an error of the callback ends it, and a promise is refused", () => {
    using s = copyScene();
    expect(() =>
      s.device.record(() => {
        throw new RangeError("mine");
      }),
    ).toThrow(RangeError);
    expectRefusal(() => s.device.record(async () => {}), "invalid-argument", "encode", "promise");
    // A promise of another realm is no instance of this one's class.
    const foreign = () => runInNewContext("Promise.reject(new Error('mine'))");
    expect(foreign().catch(() => {}) instanceof Promise).toBe(false);
    expectRefusal(() => s.device.record(foreign), "invalid-argument", "encode", "promise");
    expectRefusal(() => s.device.record(3 as never), "invalid-argument", "encode", 3);
  });

  test("a pass that the callback has disposed, or its device, gives no recording", () => {
    using s = copyScene();
    expectRefusal(() => s.device.record((pass) => pass.dispose()), "disposed", "pass", "the pass is");
    expectRefusal(() => s.device.record(() => s.device.dispose()), "disposed", "pass", "device");
  });

  test("a refused operation leaves no trace, nor what it would have taken", () => {
    using s = copyScene();
    using step = s.device.record((pass) => {
      const writePos = pass.parameter("writePos", { min: 1, max: 3 });
      expect(thrownBy(() => kvCacheCopy(pass, { src: s.cache, cache: s.cache, writePos })).code).toBe("overflow");
      expect(
        thrownBy(() => kvCacheCopySeq(pass, { src: 3 as never, cache: s.cache, seqPosStart: writePos })).code,
      ).toBe("invalid-argument");
      kvCacheCopy(pass, { src: s.src, cache: s.cache, writePos: 0 });
    });
    expect(step.describe()).toHaveLength(1);
    step.commitAndWait({ writePos: 3 });
    expect(values(s.cache)).toEqual([1, 2, 0, 0, 0, 0, 0, 0]);
  });

  test("a parameter is no number: not to compute with, not elsewhere, not in another pass", () => {
    using s = copyScene();
    using other = s.device.pass();
    s.device
      .record((pass) => {
        const n = pass.parameter("n", { min: 0, max: 3 });
        expectRefusal(() => n + 1, "invalid-argument", "n", "no value while recording");
        expectRefusal(() => s.src.slice(n), "invalid-argument", "start", "parameter n");
        expectRefusal(
          () => kvCacheCopy(other, { src: s.src, cache: s.cache, writePos: n }),
          "invalid-argument",
          "writePos",
          "another pass",
        );
        expectRefusal(() => pass.parameter("n", { min: 0, max: 1 }), "invalid-argument", "name", "n is declared");
        expectRefusal(() => pass.parameter("m", { min: 2, max: 1 }), "invalid-argument", "min", "max", 2, 1);
        expectRefusal(() => pass.parameter("", { min: 0, max: 1 }), "invalid-argument", "name");
        const misspelt = { min: 0, max: 1, valu: 1 };
        expectRefusal(() => pass.parameter("m", misspelt), "invalid-argument", "valu", "did you mean value");
        for (const value of [2, 0.5, Number.NaN, "1" as unknown as number]) {
          expectRefusal(() => pass.parameter("m", { min: 0, max: 1, value }), "invalid-argument", "value", value);
        }
      })
      .dispose();
    expect(other.describe()).toEqual([]);
  });

  test("a parameter is one that the argument could be given directly", () => {
    using s = copyScene();
    const mask = s.device.tensor("bool", [4, 4]);
    const [x, packed] = [s.device.tensor("f32", [1, 4, 64]), s.device.tensor("u8", [1, 4, 64])];
    const norms = s.device.tensor("f32", [1, 4, 1]);
    const src = s.device.tensor("f32", [4, 1, 64]);
    const positions = s.device.tensor("i32", [4]);
    s.device
      .record((pass) => {
        const n = pass.parameter("n", { min: 0, max: 2 ** 32 - 1, value: 4 });
        const refuse = (encode: () => void, argument: string, ...parts: (string | number)[]) =>
          expectRefusal(encode, "invalid-argument", argument, ...parts);
        // 0 would be no window.
        refuse(() => buildSlidingWindowMask(pass, { mask, window: n }), "window", "parameter n is 0 to", 1);
        // 2^32 - 1 would be position -1.
        refuse(() => applyRope(pass, { x, start: n, pairing: "half", theta: 10 }), "start", 2 ** 31 - 1, 2 ** 32 - 1);
        // What the shapes of other tensors say.
        refuse(() => dequantizeKv(pass, { packed, norms, out: x, bits: 8, nTokens: n }), "nTokens", "parameter n");
        const cache = { headDim: 64, nKvHeads: 1, capacity: 4, bits: 8 } as const;
        refuse(() => kvCacheBytes({ ...cache, capacity: n }), "capacity", "parameter n");
        refuse(() => kvCacheBytes({ ...cache, nLayers: n }), "nLayers", "parameter n");
        refuse(() => kvCacheBytes({ ...cache, bits: n as never }), "bits", "parameter n");
        const codes = { src, packed, norms, bits: 8 } as const;
        refuse(
          () => hadamardQuantizeKvSeq(pass, { ...codes, positions, nTokens: n }),
          "nTokens",
          "parameter n",
          "positions",
        );
        // How many tokens come behind an offset that each run gives.
        refuse(
          () => hadamardQuantizeKvSeq(pass, { ...codes, writePosStart: 0, srcTokOffset: n }),
          "nTokens",
          "parameter n",
        );
        const copy = { src, cache: x, seqPosStart: 0, srcTokOffset: n };
        refuse(() => kvCacheCopySeq(pass, copy), "nTokens", "parameter n");
        const heads = () => s.device.tensor("bf16", [1, 4, 64]);
        refuse(() => kvCacheCopyHeadMajor(pass, { ...copy, src: heads(), cache: heads() }), "nTokens", "parameter n");
        expect(pass.describe()).toEqual([]);
      })
      .dispose();
  });

  test("an operation within another's arguments is refused once that has taken a parameter", () => {
    using s = copyScene();
    using other = s.device.pass();
    using step = s.device.record((pass) => {
      const writePos = pass.parameter("writePos", { min: 0, max: 3 });
      const inner = { src: s.src, cache: s.cache, writePos: 0 };
      const outer = (within: RecordingPass | typeof other) => ({
        ...{ src: s.src, cache: s.cache, writePos },
        get nNew() {
          kvCacheCopy(within, inner);
          return 2;
        },
      });
      expectRefusal(() => kvCacheCopy(pass, outer(pass)), "invalid-state", "pass", "parameter");
    });
    expect(step.describe()).toEqual([]);
    using later = s.device.record((pass) => {
      const writePos = pass.parameter("writePos", { min: 0, max: 2 });
      expectRefusal(() => kvCacheCopy(pass, { src: 3 as never, cache: s.cache, writePos }), "invalid-argument", "src");
      kvCacheCopy(pass, { src: s.src, cache: s.cache, writePos });
    });
    later.commitAndWait({ writePos: 2 });
    expect(values(s.cache)).toEqual([0, 0, 0, 0, 1, 2, 0, 0]);
  });

  test("an operation that ends with any error leaves the pass usable", () => {
    using s = copyScene();
    const gone = s.device.tensor("f32", [4, 2]);
    gone.dispose();
    s.device.registerSource("fill.metal", "kernel void fill(device float *x [[buffer(0)]]) { x[0] = 1; }");
    using fill = s.device.pipeline("fill");
    using step = s.device.record((pass) => {
      const position = pass.parameter("position", { min: 0, max: 3 });
      const src = s.device.tensor("f32", [1, 1, 2]);
      expectRefusal(() => kvCacheCopyBatch(pass, { src, cache: gone, seqPos: position }), "disposed", "cache");
      const thrower = {
        ...{ src, cache: s.cache, seqPosStart: position },
        get isSliding(): never {
          throw new RangeError("mine");
        },
      };
      expect(() => kvCacheCopySeq(pass, thrower)).toThrow(RangeError);
      const bytes = { 0: position };
      expectRefusal(() => pass.dispatch(fill, { bytes, uses: [gone], grid: 1, threads: 1 }), "disposed", "uses[0]");
      kvCacheCopy(pass, { src: s.src, cache: s.cache, writePos: position });
    });
    step.commitAndWait({ position: 3 });
    expect(values(s.cache)).toEqual([0, 0, 0, 0, 0, 0, 1, 2]);
  });

  test("the pass is not committed itself, and takes nothing once the recording has ended", () => {
    using s = copyScene();
    let kept: RecordingPass | undefined;
    using step = s.device.record((pass) => {
      kept = pass;
      expect(thrownBy(() => pass.commitAndWait()).code).toBe("invalid-state");
    });
    expect(thrownBy(() => kvCacheCopy(kept as RecordingPass, { src: s.src, cache: s.cache, writePos: 0 })).code).toBe(
      "disposed",
    );
    step.commitAndWait();
    expect(step.describe()).toEqual([]);
  });
});

describe("tile classes", () => {
  function attention(device: Device) {
    const tensor = () => device.tensor("f16", [1, 1, 32, 64]);
    return { q: tensor(), k: tensor(), v: tensor(), out: tensor(), mask: device.tensor("bool", [32, 32]) };
  }

  test("that recorded attention reads are refused once the mask is written", () => {
    using device = Device.open();
    const { mask, ...tensors } = attention(device);
    using first = device.pass();
    buildSlidingWindowMask(first, { mask, window: 4 });
    const tileClasses = classifyMaskTiles(first, { mask, headDim: 64 });
    first.commitAndWait();
    using step = device.record((pass) => flashAttnPrefill(pass, { ...tensors, mask, tileClasses }));
    step.commitAndWait();
    mask.set(new Array(32 * 32).fill(true));
    expectRefusal(() => step.commitAndWait(), "invalid-argument", "tileClasses", "stale");
  });

  test("that only a recording makes serve no other pass until it runs", () => {
    using device = Device.open();
    const { mask, ...tensors } = attention(device);
    using first = device.pass();
    buildSlidingWindowMask(first, { mask, window: 4 });
    const tileClasses = classifyMaskTiles(first, { mask, headDim: 64 });
    first.commitAndWait();
    mask.set(new Array(32 * 32).fill(true));
    using step = device.record((pass) => {
      classifyMaskTiles(pass, { mask, headDim: 64, reuse: tileClasses });
      flashAttnPrefill(pass, { ...tensors, mask, tileClasses });
    });
    using other = device.pass();
    expectRefusal(
      () => flashAttnPrefill(other, { ...tensors, mask, tileClasses }),
      "invalid-argument",
      "tileClasses",
      "stale",
    );
    step.commitAndWait();
    flashAttnPrefill(other, { ...tensors, mask, tileClasses });
    other.commitAndWait();
  });

  test("stay as they were where a run is refused", () => {
    using device = Device.open();
    const { mask, ...tensors } = attention(device);
    using first = device.pass();
    const tileClasses = classifyMaskTiles(first, { mask, headDim: 64 });
    first.commitAndWait();
    const [src, cache] = [device.tensor("f32", [1, 2]), device.tensor("f32", [4, 2])];
    using step = device.record((pass) => {
      buildSlidingWindowMask(pass, { mask, window: 4 });
      kvCacheCopy(pass, { src, cache, writePos: pass.parameter("writePos", { min: 0, max: 9 }) });
    });
    expect(thrownBy(() => step.commitAndWait({ writePos: 9 })).code).toBe("overflow");
    using second = device.pass();
    flashAttnPrefill(second, { ...tensors, mask, tileClasses });
    second.commitAndWait();
  });
});
