import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Kernels, type SampleRow } from "../../../examples/llama/model/kernels.ts";
import { Sampler } from "../../../examples/llama/run/sampling.ts";
import { normalArray } from "../../../scripts/lib/random.ts";
import { device } from "./models.ts";

let kernels: Kernels;
beforeAll(async () => {
  kernels = await Kernels.compile(device);
});
afterAll(() => kernels.dispose());

/** The tokens that the kernel chooses: a row of logits for each way. */
function sampled(rows: readonly Float32Array[], how: readonly SampleRow[]): number[] {
  const vocabulary = rows[0]?.length ?? 0;
  using logits = device.tensor("f32", [rows.length, vocabulary]);
  for (const [i, row] of rows.entries()) logits.set(row, i * vocabulary);
  using ways = device.tensor("f32", [rows.length, 3]);
  ways.set(how.flatMap(({ temperature, topP, uniform }) => [temperature, topP, uniform]));
  using tokens = device.tensor("u32", [rows.length]);
  using pass = device.pass();
  kernels.sample(pass, logits, ways, tokens);
  pass.commitAndWait();
  return [...tokens.view()];
}

/** The tokens that may be chosen: that of the formula in float64, and its neighbours where the draw is near a border. */
function expected(logits: Float32Array, { temperature, topP, uniform }: SampleRow): Set<number> {
  const most = Math.max(...logits);
  const weights = Array.from(logits, (value) => Math.exp((value - most) / temperature));
  const total = weights.reduce((a, b) => a + b);
  const order = [...weights.keys()].sort((a, b) => (weights[b] as number) - (weights[a] as number));
  const chosen = new Set<number>();
  for (const slack of [-1e-4, 0, 1e-4]) {
    const kept = new Set<number>();
    let sum = 0;
    for (const token of order) {
      if (sum >= (topP + slack) * total) break;
      kept.add(token);
      sum += weights[token] as number;
    }
    if (kept.size === 0) kept.add(order[0] as number);
    const all = [...kept].reduce((a, token) => a + (weights[token] as number), 0);
    for (const shift of [-1e-4, 0, 1e-4]) {
      let left = Math.min(Math.max(uniform + shift, 0), 1 - 1e-9) * all;
      for (const token of [...kept].sort((a, b) => a - b)) {
        left -= weights[token] as number;
        if (left < 0) {
          chosen.add(token);
          break;
        }
      }
    }
  }
  return chosen;
}

describe.each([1, 31, 300, 1024, 1025, 5000])("a vocabulary of %i", (vocabulary) => {
  test("the most likely token, the first of equals", () => {
    const rows = [1, 2, 3].map((seed) => normalArray(vocabulary, 3, seed));
    const tied = rows[2] as Float32Array;
    const most = Math.max(...tied);
    tied[Math.floor(vocabulary / 2)] = most;
    const how = rows.map(() => ({ temperature: 0, topP: 1, uniform: 0.9 }));
    expect(sampled(rows, how)).toEqual(rows.map((row) => row.indexOf(Math.max(...row))));
  });

  test("a draw of those that top-p takes in", () => {
    const rows: Float32Array[] = [];
    const how: SampleRow[] = [];
    for (const [i, temperature] of [0.3, 1, 2].entries()) {
      for (const [j, topP] of [1e-6, 0.5, 0.9, 1].entries()) {
        const sampler = new Sampler({ temperature, topP, seed: 10 * i + j });
        for (let n = 0; n < 4; n++) {
          rows.push(normalArray(vocabulary, 2, 100 * i + 10 * j + n));
          how.push(sampler.next());
        }
        rows.push(normalArray(vocabulary, 2, j), normalArray(vocabulary, 2, j));
        how.push({ temperature, topP, uniform: 0 }, { temperature, topP, uniform: 1 - 2 ** -23 });
      }
    }
    const tokens = sampled(rows, how);
    for (const [i, token] of tokens.entries()) {
      const allowed = expected(rows[i] as Float32Array, how[i] as SampleRow);
      expect([how[i], allowed.has(token), token, [...allowed]]).toEqual([how[i], true, token, [...allowed]]);
    }
  });
});

test("logits that are not numbers give no token", () => {
  for (const value of [Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]) {
    const rows = [new Float32Array(300).fill(value), new Float32Array(300).fill(value)];
    const [drawn] = sampled(rows, [
      { temperature: 1, topP: 0.9, uniform: 0.5 },
      { temperature: 0, topP: 1, uniform: 0 },
    ]);
    expect(drawn).toBe(0xffff_ffff);
  }
});

test("draws follow the probabilities, and a seed repeats them", () => {
  const logits = Float32Array.from([Math.log(0.5), Math.log(0.3), Math.log(0.2)]);
  const sampler = new Sampler({ temperature: 1, topP: 1, seed: 5 });
  const how = Array.from({ length: 4000 }, () => sampler.next());
  const again = new Sampler({ temperature: 1, topP: 1, seed: 5 });
  expect(how.slice(0, 100)).toEqual(Array.from({ length: 100 }, () => again.next()));
  const counts = [0, 0, 0];
  for (const token of sampled(
    how.map(() => logits),
    how,
  ))
    counts[token] = (counts[token] as number) + 1;
  // Four standard deviations.
  for (const [i, p] of [0.5, 0.3, 0.2].entries()) {
    expect(Math.abs((counts[i] as number) - 4000 * p)).toBeLessThan(4 * Math.sqrt(4000 * p * (1 - p)));
  }
});
