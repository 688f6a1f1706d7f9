import { describe, expect, test } from "bun:test";
import { type RopeFrequenciesArgs, ropeFrequencies } from "../../src/index.ts";
import { expectRefusal } from "../helpers/errors.ts";

// The published formulas, in the form of their papers and reference code where the library has another.

const inverse = (i: number, dim: number, theta: number): number => 1 / theta ** ((2 * i) / dim);
const f32 = (values: readonly number[]): Float32Array => Float32Array.from(values);
const pairs = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

describe("frequencies", () => {
  test("default and linear", () => {
    const { invFreq, attentionScale } = ropeFrequencies({ type: "default", rotaryDim: 8, theta: 10_000 });
    expect(invFreq).toEqual(f32([1, 0.1, 0.01, 0.001]));
    expect(attentionScale).toBe(1);
    const linear = ropeFrequencies({ type: "linear", rotaryDim: 8, theta: 10_000, factor: 4 });
    expect(linear).toEqual({ invFreq: f32([0.25, 0.025, 0.0025, 0.00025]), attentionScale: 1 });
  });

  test("llama3, by wavelengths: short ones kept, long ones divided, a blend between", () => {
    const [factor, low, high, trained] = [8, 1, 4, 8192];
    const kinds = { kept: 0, divided: 0, blended: 0 };
    const wanted = pairs(64).map((i) => {
      const frequency = inverse(i, 128, 500_000);
      const wavelength = (2 * Math.PI) / frequency;
      if (wavelength < trained / high) {
        kinds.kept++;
        return frequency;
      }
      if (wavelength > trained / low) {
        kinds.divided++;
        return frequency / factor;
      }
      kinds.blended++;
      const smooth = (trained / wavelength - low) / (high - low);
      return ((1 - smooth) * frequency) / factor + smooth * frequency;
    });
    const { invFreq } = ropeFrequencies({
      type: "llama3",
      rotaryDim: 128,
      theta: 500_000,
      factor,
      lowFreqFactor: low,
      highFreqFactor: high,
      originalMaxPositions: trained,
    });
    expectClose(invFreq, wanted);
    // Of the 64 pairs of Llama 3.1 these turn more than four times in 8,192 positions, less than once, or between.
    expect(kinds).toEqual({ kept: 29, divided: 29, blended: 6 });
  });

  test("yarn: the ramp between pairs that turn 32 times and once over the trained positions", () => {
    const [dim, theta, factor, trained] = [128, 10_000, 4, 4096];
    // The pairs that turn 32 times and once, found by counting turns.
    const turns = (i: number): number => (trained * inverse(i, dim, theta)) / (2 * Math.PI);
    const first = pairs(64).filter((i) => turns(i) >= 32).length - 1;
    const last = pairs(64).findIndex((i) => turns(i) <= 1);
    const wanted = pairs(64).map((i) => {
      const ramp = i <= first ? 0 : i >= last ? 1 : (i - first) / (last - first);
      const frequency = inverse(i, dim, theta);
      return frequency * (1 - ramp) + (frequency / factor) * ramp;
    });
    const yarn = { type: "yarn", rotaryDim: dim, theta, factor, originalMaxPositions: trained } as const;
    const { invFreq, attentionScale } = ropeFrequencies(yarn);
    expectClose(invFreq, wanted);
    expect(attentionScale).toBeCloseTo(0.1 * Math.log(4) + 1, 12);
    expect(ropeFrequencies({ ...yarn, truncate: false }).invFreq).not.toEqual(invFreq);
    // Where even the slowest pair turns more often, the ramp ends at the last element of the head.
    const long = { ...yarn, rotaryDim: 8, theta: 10, originalMaxPositions: 1e7, betaFast: 1e7 } as const;
    expectClose(
      ropeFrequencies(long).invFreq,
      pairs(4).map((i) => inverse(i, 8, 10) * (1 - (i / 7) * (1 - 1 / factor))),
    );
    expect(ropeFrequencies({ ...yarn, mscale: 1, mscaleAllDim: 1 }).attentionScale).toBe(1);
    expect(ropeFrequencies({ ...yarn, mscale: 0.707, mscaleAllDim: 1 }).attentionScale).toBeCloseTo(
      (0.0707 * Math.log(4) + 1) / (0.1 * Math.log(4) + 1),
      12,
    );
    expect(ropeFrequencies({ ...yarn, attentionScale: 1.5 }).attentionScale).toBe(1.5);
    expect(ropeFrequencies({ ...yarn, factor: 1 })).toEqual({
      invFreq: f32(pairs(64).map((i) => inverse(i, dim, theta))),
      attentionScale: 1,
    });
  });

  test("longrope: a list for short sequences and one for long ones", () => {
    const longrope = {
      type: "longrope",
      rotaryDim: 4,
      theta: 10_000,
      shortFactor: [1, 2],
      longFactor: [4, 8],
      originalMaxPositions: 4096,
      factor: 32,
      sequenceLength: 4096,
    } as const;
    const scale = Math.sqrt(1 + Math.log(32) / Math.log(4096));
    expect(ropeFrequencies(longrope)).toEqual({ invFreq: f32([1, 0.005]), attentionScale: scale });
    expect(ropeFrequencies({ ...longrope, sequenceLength: 4097 }).invFreq).toEqual(f32([0.25, 0.00125]));
  });

  test("proportional: frequencies of the whole head, of which a part turns", () => {
    const proportional = { type: "proportional", rotaryDim: 8, theta: 10_000, rotatedPairs: 1 } as const;
    expect(ropeFrequencies(proportional).invFreq).toEqual(f32([1, 0, 0, 0]));
    expect(ropeFrequencies({ ...proportional, rotatedPairs: 0 }).invFreq).toEqual(f32([0, 0, 0, 0]));
    expect(ropeFrequencies({ ...proportional, rotatedPairs: 2, factor: 2 }).invFreq).toEqual(f32([0.5, 0.05, 0, 0]));
  });
});

test("refusals", () => {
  const refuse = (change: object, argument: string, ...parts: (string | number)[]) => {
    const args = { type: "default", rotaryDim: 8, theta: 10_000, ...change };
    expectRefusal(() => ropeFrequencies(args as RopeFrequenciesArgs), "invalid-argument", argument, ...parts);
  };
  refuse({ type: "dynamic" }, "type", "llama3", "dynamic");
  for (const beta of ["betaFast", "betaSlow"]) {
    refuse({ type: "yarn", factor: 4, originalMaxPositions: 4096, [beta]: null }, beta, "null");
  }
  refuse({ type: "proportional", rotatedPairs: 1, factor: null }, "factor", "null");
  refuse({ type: ["default"] }, "type", "an array");
  refuse({ type: Object.create(null) }, "type", "an object");
  refuse({ type: "toString" }, "type", "toString");
  refuse({ rotaryDim: 7 }, "rotaryDim", 7);
  for (const rotaryDim of [2050, 2 ** 28, 2 ** 40]) {
    const args: RopeFrequenciesArgs = { type: "default", rotaryDim, theta: 10_000 };
    expectRefusal(() => ropeFrequencies(args), "unsupported", "rotaryDim", rotaryDim, 2048);
  }
  expect(ropeFrequencies({ type: "default", rotaryDim: 2048, theta: 10_000 }).invFreq.length).toBe(1024);
  refuse({ theta: -1 }, "theta", -1);
  refuse({ factor: 2 }, "factor");
  refuse({ type: "linear" }, "factor", "undefined");
  refuse({ type: "linear", factor: Number.POSITIVE_INFINITY }, "factor", "Infinity");
  const llama3 = { type: "llama3", factor: 8, lowFreqFactor: 4, highFreqFactor: 4, originalMaxPositions: 8192 };
  refuse(llama3, "highFreqFactor", 4);
  refuse({ ...llama3, highFreqFactor: 8, originalMaxPositions: 0 }, "originalMaxPositions", 0);
  const longrope = { type: "longrope", originalMaxPositions: 4096, factor: 2, sequenceLength: 5 };
  refuse({ ...longrope, shortFactor: [1], longFactor: [1] }, "shortFactor", 4, 1);
  refuse({ ...longrope, shortFactor: [1, 1, 0, 1], longFactor: [1] }, "shortFactor[2]", 0);
  for (const rotatedPairs of [5, -1, 0.5])
    refuse({ type: "proportional", rotatedPairs }, "rotatedPairs", 4, rotatedPairs);
  refuse(
    { ...longrope, originalMaxPositions: 1, shortFactor: [1, 1, 1, 1], longFactor: [1, 1, 1, 1] },
    "originalMaxPositions",
    1,
    2,
  );
  const yarn = { type: "yarn", factor: 2, originalMaxPositions: 10 };
  refuse({ ...yarn, betaFast: 1, betaSlow: 2 }, "betaFast", 1, 2);
  refuse({ ...yarn, theta: 1 }, "theta", 1);
  refuse({ ...yarn, truncate: "no" }, "truncate", "no");
  for (const name of ["mscale", "mscaleAllDim", "attentionScale"]) {
    for (const value of [Number.NaN, "1", 0, -100]) refuse({ ...yarn, [name]: value }, name, String(value));
  }
  refuse({ type: "linear", factor: 1e-44 }, "factor", "pair 0", "Infinity");
  refuse({ rotaryDim: 64, theta: 1e-44 }, "theta", "Infinity");
});

/** Within a rounding of f32 and what two forms of one formula differ by in f64. */
function expectClose(got: Float32Array, wanted: readonly number[]): void {
  expect(got.length).toBe(wanted.length);
  wanted.forEach((want, i) => {
    expect(Math.abs((got[i] as number) / want - 1)).toBeLessThan(2 ** -24 + 1e-12);
  });
}
