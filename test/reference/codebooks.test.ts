import { describe, expect, test } from "bun:test";
import { generatedFiles } from "../../scripts/codebooks.ts";
import { boundariesOf, CODEBOOKS, type CodeBits, type Codebook } from "../../src/reference/index.ts";
import { testTable } from "../helpers/table.ts";

// Solves the codebooks by another method than scripts/codebooks.ts: from a guess
// of the outermost centroid, cell by cell inwards, with Simpson's rule and
// bisection, in place of Newton's method for all at once with Gauss's rule.

const tail = 11;

/** Integral by Simpson's rule with 2n and n steps, extrapolated: the error is of order 6. */
function integral(density: (t: number) => number, length: number): number {
  const steps = 4 * Math.ceil(2 + length * 40);
  const h = length / steps;
  let [ends, odd, even2, even4] = [density(0) + density(length), 0, 0, 0];
  for (let i = 1; i < steps; i++) {
    const value = density(i * h);
    if (i % 2 === 1) odd += value;
    else if (i % 4 === 2) even2 += value;
    else even4 += value;
  }
  const fine = (h / 3) * (ends + 4 * odd + 2 * (even2 + even4));
  const coarse = ((2 * h) / 3) * (ends + 4 * even2 + 2 * even4);
  return fine + (fine - coarse) / 15;
}

/** Moments 0, 1 and 2 about `lower` of exp(-x^2 / 2) on [lower, upper], up to the common factor exp(-lower^2 / 2). */
function moments(lower: number, upper: number): readonly [number, number, number] {
  const length = Math.min(upper, lower + tail) - lower;
  const moment = (k: number) => integral((t) => t ** k * Math.exp(-t * (lower + t / 2)), length);
  return [moment(0), moment(1), moment(2)];
}

/** The mean of N(0, 1) in a cell. */
function mean(lower: number, upper: number): number {
  const [mass, first] = moments(lower, upper);
  return lower + first / mass;
}

/** The place in [low, high] where a rising function changes its sign. */
function root(rising: (x: number) => number, low: number, high: number): number {
  let [from, to] = [low, high];
  for (let middle = (from + to) / 2; middle > from && middle < to; middle = (from + to) / 2) {
    if (rising(middle) < 0) from = middle;
    else to = middle;
  }
  return to;
}

/** Cells from the outermost inwards, where that one's centroid is `outermost`. */
function cellsInwards(outermost: number, count: number): { lower: number; upper: number; centroid: number }[] {
  const lower = root((edge) => mean(edge, Number.POSITIVE_INFINITY) - outermost, outermost - 2, outermost);
  const cells = [{ lower, upper: Number.POSITIVE_INFINITY, centroid: outermost }];
  while (cells.length < count) {
    const { lower: upper, centroid: above } = cells.at(-1) as (typeof cells)[number];
    const centroid = 2 * upper - above;
    const reach = 2 * (upper - centroid);
    cells.push({ lower: root((edge) => mean(edge, upper) - centroid, centroid - reach, centroid), upper, centroid });
  }
  return cells;
}

/** Positive centroids and distortion of the optimum with 2^bits levels: its innermost edge is 0. */
function solve(bits: number): { centroids: number[]; distortion: number } {
  const count = 2 ** (bits - 1);
  const edge = (outermost: number) => cellsInwards(outermost, count).at(-1)?.lower ?? Number.NaN;
  const cells = cellsInwards(root(edge, 1, 5), count).reverse();
  const distortion = cells.reduce((sum, { lower, upper, centroid }) => {
    const [mass, first, second] = moments(lower, upper);
    const offset = centroid - lower;
    const factor = Math.exp(-(lower ** 2) / 2) * (2 / Math.sqrt(2 * Math.PI));
    return sum + factor * (second - 2 * offset * first + offset * offset * mass);
  }, 0);
  return { centroids: cells.map(({ centroid }) => centroid), distortion };
}

/** Published optima (Max, 1960, and later tables). */
const published: Readonly<Record<CodeBits, number>> = {
  2: 0.11748,
  3: 0.034548,
  4: 0.009501,
  5: 0.0025047,
  6: 0.00064424,
  8: 0.000041185,
};

testTable(
  "codebooks solved again",
  ([2, 3, 4, 5, 6, 8] as const).map((bits) => ({ name: `${bits} bits`, bits })),
  ({ bits }) => {
    const solved = solve(bits);
    const { centroids, distortion }: Codebook = CODEBOOKS[bits];
    expect(centroids.length).toBe(2 ** (bits - 1));
    const worst = Math.max(...centroids.map((centroid, i) => Math.abs(centroid - (solved.centroids[i] as number))));
    // 128 cells, each found from the one before, gather a little error.
    expect(worst).toBeLessThan(bits < 8 ? 1e-12 : 1e-11);
    expect(Math.abs(distortion / solved.distortion - 1)).toBeLessThan(1e-9);
    expect(Math.abs(distortion / published[bits] - 1)).toBeLessThan(3e-5);
  },
);

describe("codebooks", () => {
  test("4 bits: the extreme centroids", () => {
    expect(CODEBOOKS[4].centroids.at(-1)).toBeCloseTo(2.7325896, 7);
  });

  test("boundaries are midpoints, symmetric about 0", () => {
    const boundaries = boundariesOf(3);
    expect(boundaries.length).toBe(7);
    expect(boundaries[3]).toBe(0);
    expect(boundaries[6]).toBe((1.3439092785049997 + 2.151945704536987) / 2);
    expect(boundaries.map((b) => -b).reverse()).toEqual(boundaries.map((b) => (b === 0 ? -0 : b)));
  });

  test("files hold what the script writes", async () => {
    for (const [url, text] of generatedFiles(new URL("../../", import.meta.url))) {
      expect(await Bun.file(url).text()).toBe(text);
    }
  });
});
