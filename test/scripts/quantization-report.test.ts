import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { normalArray } from "../../scripts/lib/random.ts";
import { compareSigns, formats, rateDistortion, roundTrip } from "../../scripts/quantization/measure.ts";
import { Device } from "../../src/index.ts";
import { CODEBOOKS } from "../../src/reference/index.ts";

describe("error", () => {
  test("on Gaussian vectors it is the optimum's in every format, or a little less: their length is known", () => {
    using device = Device.open();
    const headDim = 128;
    const data = { name: "Gaussian", headDim, values: normalArray(2000 * headDim, 3, 5) };
    for (const format of formats) {
      const { error, toOptimum, bitsPerValue } = roundTrip(device, data, format);
      expect(error).toBe(toOptimum * CODEBOOKS[format.bits].distortion);
      expect(toOptimum).toBeWithin(0.95, 1.01);
      // One f32 norm for 128 values.
      expect(bitsPerValue).toBe((format.packing === "byte" ? 8 : format.bits) + 0.25);
    }
  }, 60_000);

  test("no scalar code reaches the rate-distortion bound", () => {
    for (const { bits } of formats) {
      const ratio = CODEBOOKS[bits].distortion / rateDistortion(bits);
      // At most pi sqrt(3) / 2, the limit for many bits.
      expect(ratio).toBeWithin(1.5, (Math.PI * Math.sqrt(3)) / 2);
    }
  });
});

describe("signs", () => {
  const headDim = 128;
  const comparisons = compareSigns(headDim, [2, 4, 8]);
  const of = (name: string, bits: number) => {
    const found = comparisons.find((each) => each.data === name && each.bits === bits);
    if (found === undefined) throw new Error(`no ${name} at ${bits} bits`);
    return found;
  };

  test.each([2, 4, 8] as const)("without them a constant vector is a spike that %p bits cut off", (bits) => {
    const { centroids } = CODEBOOKS[bits];
    // One coordinate is sqrt(D), all others 0: the largest centroid, and the smallest.
    const spike = 1 - (centroids.at(-1) as number) / Math.sqrt(headDim);
    const rest = ((headDim - 1) / headDim) * (centroids[0] as number) ** 2;
    for (const name of ["constant", "period 2: 1, -1"]) {
      expect(of(name, bits).without).toBeCloseTo(spike ** 2 + rest, 12);
      expect(of(name, bits).withSigns).toBeLessThan(1.5 * CODEBOOKS[bits].distortion);
    }
  });

  test("without them every vector of period 2 is at least eight times worse", () => {
    for (const { data, withSigns, without } of comparisons) {
      if (data === "constant" || data.startsWith("period 2")) expect(without).toBeGreaterThan(8 * withSigns);
    }
  });

  test("a one-hot vector is flat with them and without", () => {
    for (const bits of [2, 4, 8]) expect(of("one-hot", bits).without).toBe(of("one-hot", bits).withSigns);
  });
});

describe("the command", () => {
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-report-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  test("prints every format of every data set, and draws both charts", () => {
    const script = resolve(import.meta.dir, "../../scripts/quantization/main.ts");
    const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, script, "--out", folder]);
    expect({ exitCode, errors: stderr.toString().replace(/^ {4}.*: \d+ s\n/gm, "") }).toEqual({
      exitCode: 0,
      errors: "",
    });
    const names = ["Gaussian", "one channel 50 times larger", "keys of the text", "values of the text"];
    for (const name of names) {
      const rows = stdout.toString().match(new RegExp(`^${name} +[2-8]  (dense|nibble|byte)`, "gm"));
      expect(rows).toHaveLength(formats.length);
    }
    const errors = readFileSync(join(folder, "quantization-error.svg"), "utf8");
    for (const name of [...names, "optimum of scalar codes (Lloyd-Max)", "rate-distortion bound"]) {
      expect(errors).toContain(`>${name}</text>`);
    }
    const signs = readFileSync(join(folder, "quantization-signs.svg"), "utf8");
    for (const name of ["constant", "one-hot", "with signs", "without"]) expect(signs).toContain(`>${name}</text>`);
  }, 120_000);
});
