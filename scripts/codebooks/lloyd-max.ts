/**
 * Lloyd-Max quantizers of the standard normal distribution (Max, "Quantizing
 * for minimum distortion", 1960): each centroid is the mean of its cell, each
 * boundary the midpoint of two centroids. The optimum is symmetric and unique.
 */
import type { Codebook } from "../../src/reference/codebooks.ts";

/** Nodes and weights of the Gauss-Legendre rule on [-1, 1]. */
function gaussLegendre(count: number): readonly { node: number; weight: number }[] {
  return Array.from({ length: count }, (_, i) => {
    let node = Math.cos((Math.PI * (i + 0.75)) / (count + 0.5));
    let slope = 0;
    for (let step = 0; step < 10; step++) {
      let [previous, value] = [1, node];
      for (let k = 2; k <= count; k++)
        [previous, value] = [value, ((2 * k - 1) * node * value - (k - 1) * previous) / k];
      slope = (count * (previous - node * value)) / (1 - node * node);
      node -= value / slope;
    }
    return { node, weight: 2 / ((1 - node * node) * slope * slope) };
  });
}

const rule = gaussLegendre(24);

/** The longest stretch that one rule covers, and where the tail is cut: less than 1e-30 lies beyond. */
const stretch = 1;
const tailLength = 12;

/** Moments 0, 1, 2 of exp(-(x^2 - lower^2)/2) on [lower, upper], about `lower`, so that narrow cells lose no digits. */
function moments(lower: number, upper: number): readonly [number, number, number] {
  const length = Math.min(upper - lower, tailLength);
  const pieces = Math.ceil(length / stretch);
  const half = length / pieces / 2;
  let [mass, first, second] = [0, 0, 0];
  for (let piece = 0; piece < pieces; piece++) {
    for (const { node, weight } of rule) {
      const t = half * (2 * piece + 1 + node);
      const density = weight * half * Math.exp(-t * (lower + t / 2));
      mass += density;
      first += density * t;
      second += density * t * t;
    }
  }
  return [mass, first, second];
}

/** Boundaries of the positive half, 0 and infinity included. */
function boundaries(centroids: readonly number[]): readonly number[] {
  const inner = centroids.slice(1).map((centroid, i) => ((centroids[i] as number) + centroid) / 2);
  return [0, ...inner, Number.POSITIVE_INFINITY];
}

/** Solves a tridiagonal system by elimination; row i is lower[i], diagonal[i], upper[i]. */
function solveTridiagonal(lower: number[], diagonal: number[], upper: number[], right: number[]): number[] {
  const count = right.length;
  const get = (values: number[], i: number) => values[i] as number;
  for (let i = 1; i < count; i++) {
    const factor = get(lower, i) / get(diagonal, i - 1);
    diagonal[i] = get(diagonal, i) - factor * get(upper, i - 1);
    right[i] = get(right, i) - factor * get(right, i - 1);
  }
  const solution = new Array<number>(count).fill(0);
  for (let i = count - 1; i >= 0; i--) {
    const above = i + 1 < count ? get(upper, i) * get(solution, i + 1) : 0;
    solution[i] = (get(right, i) - above) / get(diagonal, i);
  }
  return solution;
}

/** One step of Newton's method on "centroid - mean of its cell = 0"; returns the new centroids and the largest change. */
function newtonStep(centroids: readonly number[]): { next: number[]; change: number } {
  const edges = boundaries(centroids);
  const [lowers, diagonals, uppers, residuals] = [[], [], [], []] as [number[], number[], number[], number[]];
  for (const [i, centroid] of centroids.entries()) {
    const [lower, upper] = [edges[i] as number, edges[i + 1] as number];
    const [mass, first] = moments(lower, upper);
    const offset = first / mass;
    // Derivatives of the mean by the cell's edges; an edge moves half as far as either centroid beside it.
    const byLower = i === 0 ? 0 : offset / mass / 2;
    const width = upper - lower;
    const density = Number.isFinite(upper) ? Math.exp(-width * (lower + width / 2)) : 0;
    const byUpper = Number.isFinite(upper) ? (density * (width - offset)) / mass / 2 : 0;
    lowers.push(-byLower);
    diagonals.push(1 - byLower - byUpper);
    uppers.push(-byUpper);
    residuals.push(lower + offset - centroid);
  }
  const step = solveTridiagonal(lowers, diagonals, uppers, residuals);
  const next = centroids.map((centroid, i) => centroid + (step[i] as number));
  return { next, change: Math.max(...step.map(Math.abs)) };
}

/** A start near the optimum: quantiles of the normal distribution with variance 3 (Panter and Dite, 1951). */
function start(levels: number): number[] {
  const quantile = (p: number): number => {
    let [low, high] = [0, 10];
    const tail = (x: number) =>
      (Math.exp((-x * x) / 2) * moments(x, Number.POSITIVE_INFINITY)[0]) / Math.sqrt(2 * Math.PI);
    for (let step = 0; step < 40; step++) {
      const middle = (low + high) / 2;
      if (tail(middle) > 1 - p) low = middle;
      else high = middle;
    }
    return low;
  };
  return Array.from({ length: levels / 2 }, (_, i) => Math.sqrt(3) * quantile(0.5 + (i + 0.5) / levels));
}

/** Solves for 2^bits levels; throws where Newton's method does not settle to 1e-12. */
export function lloydMax(bits: number): Codebook {
  let centroids = start(2 ** bits);
  let change = Number.POSITIVE_INFINITY;
  for (let step = 0; step < 30 && change > 1e-14; step++) ({ next: centroids, change } = newtonStep(centroids));
  if (!(change <= 1e-12)) throw new Error(`no optimum found for ${bits} bits: the last step moved by ${change}`);
  const edges = boundaries(centroids);
  const cells = centroids.map((centroid, i) => {
    const lower = edges[i] as number;
    const [mass, first, second] = moments(lower, edges[i + 1] as number);
    const offset = centroid - lower;
    return Math.exp((-lower * lower) / 2) * (second - 2 * offset * first + offset * offset * mass);
  });
  return { centroids, distortion: (2 * cells.reduce((a, b) => a + b)) / Math.sqrt(2 * Math.PI) };
}
