import { describe, expect, test } from "bun:test";
import { applyRope, type RopeDType, ropeFrequencies } from "../../src/index.ts";
import { oneAndTwoThreads } from "../helpers/devices.ts";
import { bitsOf } from "../helpers/elements.ts";
import { expectRefusal } from "../helpers/errors.ts";
import { seededRandom } from "../helpers/random.ts";
import { expectTurned, type RopeCase } from "../helpers/rope.ts";
import { testTable } from "../helpers/table.ts";

// Rotary positions against the oracle in float64.

const devices = oneAndTwoThreads();
const [device] = devices;
const dtypes: readonly RopeDType[] = ["f32", "f16", "bf16"];
const layouts = ["head-major", "sequence-major"] as const;
const pairings = ["half", "interleaved"] as const;

const frequencies = (rotaryDim: number, theta = 10_000): Float32Array =>
  ropeFrequencies({ type: "default", rotaryDim, theta }).invFreq;

/** Every pair of dtypes with every layout and pairing; a batch, k and positions come in turn. */
const forms: RopeCase[] = dtypes.flatMap((from) =>
  dtypes.flatMap((to) =>
    layouts.flatMap((layout) =>
      pairings.flatMap((pairing) =>
        [false, true].flatMap((dual) =>
          ([undefined, 1, 3] as const).flatMap((batch) =>
            (["start", "shared", "own"] as const).map((places): RopeCase => {
              const count = (places === "own" ? (batch ?? 1) : 1) * 5;
              return {
                name: `${from} to ${to}, ${layout}, ${pairing}, ${dual ? "q and k" : "x"}, batch ${batch ?? "none"}, ${places}`,
                from,
                to,
                layout,
                pairing,
                nHeads: 6,
                ...(dual ? { nKvHeads: 3 } : {}),
                ...(batch === undefined ? {} : { batch }),
                nTokens: 5,
                headDim: 16,
                invFreq: frequencies(12),
                ...(places === "start"
                  ? { start: 1000 }
                  : { positions: Array.from({ length: count }, (_, i) => (i * 7919) % 40_000) }),
              };
            }),
          ),
        ),
      ),
    ),
  ),
);

testTable("every form", forms, (entry) => {
  for (const each of devices) expectTurned(each, entry);
});

const sizes: RopeCase[] = [2, 4, 64, 80, 96, 112, 128, 192, 256, 512, 2048].flatMap((headDim) =>
  [2, headDim / 2 - ((headDim / 2) % 2) || 2, headDim].flatMap((rotaryDim) =>
    pairings.map(
      (pairing): RopeCase => ({
        name: `D=${headDim}, ${rotaryDim} of them, ${pairing}`,
        from: "f32",
        to: "f32",
        nHeads: 5,
        nTokens: 3,
        headDim,
        invFreq: frequencies(rotaryDim, 500_000),
        pairing,
        start: 77,
        attentionScale: 1.25,
      }),
    ),
  ),
);
testTable("head sizes, and parts of them", [...new Map(sizes.map((each) => [each.name, each])).values()], (entry) =>
  expectTurned(device, entry),
);

// Where a thread has two pairs of each head.
const wide = (["bf16", "f32"] as const).flatMap((dtype) =>
  [128, 256].flatMap((headDim) =>
    layouts.map(
      (layout): RopeCase => ({
        name: `${dtype}, D=${headDim}, ${layout}`,
        ...{ from: dtype, to: dtype, layout, headDim, batch: 2, nHeads: 6, nKvHeads: 3, nTokens: 5 },
        ...{ invFreq: frequencies(headDim), attentionScale: 1.25, inPlace: headDim === 128 },
        positions: [0, 77, -5, 2 ** 24, 12_345_677],
      }),
    ),
  ),
);
testTable("two pairs a thread", wide, (entry) => expectTurned(device, entry));

const far = [0, 1, -1, 4095, 4096, 65_537, 2 ** 20 - 1, 12_345_677, 2 ** 24 - 1, 2 ** 24, -(2 ** 24)];
testTable(
  "positions to 2^24 at the accuracy of f32",
  [1 / (1 + 31 / 97), 0.75, 0.7499, 2 ** -7.3, 1e-4, 1e-9].map(
    (frequency): RopeCase => ({
      name: `${frequency} radians a position`,
      from: "f32",
      to: "f32",
      nHeads: 2,
      nTokens: far.length,
      headDim: 64,
      invFreq: new Float32Array(32).map((_, i) => frequency * (1 + i / 97)),
      positions: far,
    }),
  ),
  (entry) => expectTurned(device, entry),
);

testTable(
  "in place",
  dtypes.flatMap((dtype) =>
    layouts.map(
      (layout): RopeCase => ({
        name: `${dtype}, ${layout}`,
        from: dtype,
        to: dtype,
        nHeads: 4,
        nKvHeads: 2,
        nTokens: 9,
        headDim: 32,
        invFreq: frequencies(24),
        layout,
        start: 3,
        inPlace: true,
      }),
    ),
  ),
  (entry) => expectTurned(device, entry),
);

describe("values", () => {
  test("theta gives the frequencies theta^(-2 i / rotaryDim)", () => {
    using x = device.tensor("f32", [2, 3, 8]).set(Float32Array.from({ length: 48 }, (_, i) => Math.sin(i)));
    using byTheta = device.tensor("f32", [2, 3, 8]);
    using byTable = device.tensor("f32", [2, 3, 8]);
    using pass = device.pass();
    applyRope(pass, { x, out: byTheta, start: 9, theta: 1000, pairing: "half" });
    const invFreq = Float32Array.from([0, 1, 2, 3], (i) => 1000 ** (-i / 4));
    applyRope(pass, { x, out: byTable, start: 9, invFreq, pairing: "half" });
    pass.commitAndWait();
    expect(byTheta.toFloat32Array()).toEqual(byTable.toFloat32Array());
  });

  test("a position and its negative undo each other; position 0 keeps the bits", () => {
    const values = Float32Array.from({ length: 64 }, (_, i) => Math.fround(Math.cos(i) * 3));
    using x = device.tensor("f32", [1, 1, 64]).set(values);
    using pass = device.pass();
    applyRope(pass, { x, start: 0, theta: 10_000, pairing: "half" });
    pass.commitAndWait();
    expect(x.toFloat32Array()).toEqual(values);
    using there = device.pass();
    applyRope(there, { x, start: 123_456, theta: 10_000, pairing: "half" });
    applyRope(there, { x, start: -123_456, theta: 10_000, pairing: "half" });
    there.commitAndWait();
    x.toFloat32Array().forEach((got, i) => {
      expect(Math.abs(got - (values[i] as number))).toBeLessThan(3e-6);
    });
  });

  test("coordinates that do not turn keep any bits, NaN and infinities among them", () => {
    using x = device.tensor("bf16", [1, 1, 8]);
    const bits = Uint16Array.of(0, 0, 0x7fc1, 0xff80, 0x8000, 0x7f80, 0x0001, 0x3f80);
    bitsOf(x).set(bits);
    using pass = device.pass();
    applyRope(pass, { x, start: 5, invFreq: Float32Array.of(1), pairing: "half" });
    pass.commitAndWait();
    expect([...bitsOf(x)]).toEqual([...bits]);
  });

  test("two pairs a thread have the bits of one, NaN, infinities and ties among them", () => {
    const shape = [3, 40, 128];
    const count = 3 * 40 * 128;
    for (const dtype of ["bf16", "f32"] as const) {
      const random = seededRandom(9);
      const words = Uint32Array.from({ length: count }, () => 2 ** 32 * random());
      const bits = dtype === "f32" ? words : Uint16Array.from(words, (word) => word >>> 16);
      // Vectors that begin in the middle of a pair go one pair a thread.
      const turned = [0, 1].map((first) => {
        const x = device
          .tensor(dtype, [count + first])
          .slice(first, count + first)
          .reshape(shape);
        x.bytes.set(new Uint8Array(bits.buffer));
        using pass = device.pass();
        applyRope(pass, { x, theta: 10_000, pairing: "half", start: 3 });
        pass.commitAndWait();
        return bitsOf(x);
      });
      expect(turned[0]).toEqual(turned[1] as (typeof turned)[0]);
    }
  });

  test("nothing to turn encodes nothing", () => {
    using pass = device.pass();
    using whole = device.tensor("f32", [8]);
    for (const shape of [
      [0, 3, 8],
      [2, 0, 8],
      [0, 2, 3, 8],
    ]) {
      applyRope(pass, { x: whole.slice(0, 0).reshape(shape), start: 0, theta: 10_000, pairing: "half" });
    }
    expect(pass.describe()).toEqual([]);
  });

  test("accesses: a barrier between a call in place and the next", () => {
    using x = device.tensor("f32", [2, 2, 8]);
    using pass = device.pass();
    applyRope(pass, { x, start: 0, theta: 10_000, pairing: "half" });
    applyRope(pass, { x, start: 0, theta: 10_000, pairing: "half" });
    expect(pass.describe().map(({ barrierBefore }) => barrierBefore)).toEqual([false, true]);
  });
});

describe("refusals", () => {
  const x = device.tensor("f32", [2, 3, 8]);
  const ok = { x, start: 0, theta: 10_000, pairing: "half" } as const;
  const refuse = (
    change: object,
    ...rest: Parameters<typeof expectRefusal> extends [unknown, ...infer R] ? R : never
  ) => {
    using pass = device.pass();
    expectRefusal(() => applyRope(pass, { ...ok, ...change } as never), ...rest);
    expect(pass.describe()).toEqual([]);
  };
  test("pairing, frequencies and scale", () => {
    refuse({ pairing: "both" }, "invalid-argument", "pairing", "half", "interleaved", "both");
    refuse({ theta: undefined }, "invalid-argument", "theta", "neither");
    refuse({ invFreq: new Float32Array(4) }, "invalid-argument", "theta", "both");
    refuse({ theta: 0 }, "invalid-argument", "theta", 0);
    refuse({ theta: undefined, invFreq: [1, 2] }, "invalid-argument", "invFreq", "Float32Array");
    refuse({ theta: undefined, invFreq: new Float32Array(0) }, "invalid-argument", "invFreq");
    const detached = new Float32Array(4);
    detached.buffer.transfer();
    refuse({ theta: undefined, invFreq: detached }, "invalid-argument", "invFreq", "transferred");
    for (const [at, value] of [Number.POSITIVE_INFINITY, Number.NaN, 1, Number.NEGATIVE_INFINITY].entries()) {
      const invFreq = new Float32Array(4).fill(value, at, at + 1);
      if (value !== 1)
        refuse({ theta: undefined, invFreq }, "invalid-argument", "invFreq", `element ${at} is ${value}`);
    }
    refuse({ theta: undefined, invFreq: new Float32Array(5) }, "invalid-argument", "rotaryDim", 10, 8);
    refuse({ theta: undefined, invFreq: new Float32Array(2), rotaryDim: 6 }, "invalid-argument", "invFreq", 3, 2);
    refuse({ rotaryDim: 3 }, "invalid-argument", "rotaryDim", 3);
    refuse({ rotaryDim: 10 }, "invalid-argument", "rotaryDim", 10, 8);
    refuse({ attentionScale: 0 }, "invalid-argument", "attentionScale", 0);
    refuse({ attentionScale: Number.NaN }, "invalid-argument", "attentionScale", "NaN");
    refuse({ attentionScale: "1" }, "invalid-argument", "attentionScale");
    refuse({ x: device.tensor("f32", [1, 1, 4096]) }, "unsupported", "rotaryDim", 4096, 2048);
    refuse({ x: device.tensor("f32", [1, 1, 7]) }, "invalid-argument", "rotaryDim", 7);
    refuse({ layout: "token-major" }, "invalid-argument", "layout", "token-major");
    refuse({ paring: "half" }, "invalid-argument", "paring", "pairing");
    using pass = device.pass();
    for (const args of [undefined, null, 5, [ok]]) {
      expectRefusal(() => applyRope(pass, args as never), "invalid-argument", "args", "expected an object");
    }
  });
  test("positions", () => {
    refuse({ start: 2 ** 24 }, "overflow", "start", 2 ** 24, 3);
    refuse({ start: -(2 ** 24) - 1 }, "overflow", "start", 2 ** 24);
    refuse({ start: 0.5 }, "invalid-argument", "start", 0.5);
    const positions = device.tensor("i32", [3]);
    refuse({ positions }, "invalid-argument", "start", "positions");
    refuse({ start: undefined, positions: device.tensor("i32", [2]) }, "invalid-argument", "positions", "[3]", "[2]");
    refuse({ start: undefined, positions: device.tensor("f32", [3]) }, "unsupported", "positions", "f32", "i32");
    refuse({ start: undefined, positions: 3 }, "invalid-argument", "positions");
  });
  test("tensors", () => {
    refuse({ x: device.tensor("f32", [2, 8]) }, "invalid-argument", "x", "[nHeads, nTokens, headDim]", "[2,8]");
    refuse({ x: device.tensor("u8", [2, 3, 8]) }, "unsupported", "x", "u8", "f32, f16 or bf16");
    refuse({ out: device.tensor("f32", [2, 3, 4]) }, "invalid-argument", "out", "[2,3,8]", "[2,3,4]");
    refuse({ out: device.tensor("i8", [2, 3, 8]) }, "unsupported", "out", "i8");
    const long = device.tensor("f32", [96]);
    const [front, shifted] = [long.slice(0, 48), long.slice(8, 56)].map((part) => part.reshape([2, 3, 8]));
    refuse({ x: front, out: shifted }, "invalid-argument", "out", "overlap");
    const k = { x: device.tensor("f32", [2, 3, 8]) };
    const both = (q: object, other: object) => ({ x: undefined, q, k: other });
    refuse({ q: { x }, k }, "invalid-argument", "x", "q and k");
    refuse(both({ x }, { x: device.tensor("f16", [2, 3, 8]) }), "unsupported", "k.x", "f16", "f32");
    const half = device.tensor("f16", [2, 3, 8]);
    refuse(both({ x }, { x: k.x, out: half }), "unsupported", "k.out", "f16", "f32");
    refuse(both({ x }, { x: device.tensor("f32", [2, 4, 8]) }), "invalid-argument", "k.x", "nTokens", 4, 3);
    refuse(both({ x }, { x: device.tensor("f32", [2, 3, 6]) }), "invalid-argument", "k.x", "headDim", 6, 8);
    refuse(both({ x }, { x }), "invalid-argument", "q.out", "k.x", "overlap");
    refuse(both({ x }, { x: k.x, out: x }), "invalid-argument", "q.out", "k.out", "overlap");
    refuse(both({ x, to: x }, k), "invalid-argument", "q.to");
    refuse({ x: undefined, q: { x } }, "invalid-argument", "k");
  });
});
