/** What a compiler's time of the first call is spent on: functions of the SIMD group, many in one kernel. */
import { expect } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { testTable } from "../helpers/table.ts";

const uses = 90;

/** A kernel of about a hundred lines that calls `expression` in each of `uses`. */
function manyUses(expression: string): string {
  const lines = Array.from({ length: uses }, (_, k) => `  x = x * ${k + 1}.5f + ${expression};`);
  return `#include <metal_stdlib>
using namespace metal;
kernel void many(device float *out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  float x = out[i];
${lines.join("\n")}
  out[i] = x;
}
`;
}

/** Seconds of processor time from an empty cache to a pipeline for the CPU, in a process of its own. */
function secondsToPipeline(source: string): number {
  const cache = mkdtempSync(join(tmpdir(), "metal-attention-compile-"));
  try {
    const child = Bun.spawnSync([process.execPath, join(import.meta.dir, "compile-child.ts"), source], {
      env: { ...process.env, SOFTMETAL_CACHE_DIR: cache, SOFTMETAL_DEVICE: "cpu" },
    });
    expect(child.stderr.toString()).toBe("");
    expect(child.exitCode).toBe(0);
    return Number(child.resourceUsage.cpuTime.total) / 1e6;
  } finally {
    rmSync(cache, { recursive: true, force: true });
  }
}

/** What a mathematical function of each thread's own takes here and now. */
const ofSines = Math.min(...[1, 2].map(() => secondsToPipeline(manyUses("sin(x)"))));

/** The least of up to `tries` measurements, which end below `bound`: on a busy machine one alone may take twice its time. */
function secondsInOneOf(tries: number, measure: () => number, bound: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let k = 0; k < tries && least >= bound; k++) least = Math.min(least, measure());
  return least;
}

testTable(
  `${uses} in a kernel compile in twice the time of ${uses} sines`,
  [
    "simd_sum(x)",
    "simd_product(x)",
    "simd_max(x)",
    "simd_prefix_exclusive_sum(x)",
    "float(simd_xor(uint(x)))",
    "simd_sum(float4(x)).y",
    "simd_shuffle_xor(x, 1)",
  ].map((expression) => ({ name: expression, expression })),
  ({ expression }) => {
    const source = manyUses(expression);
    const seconds = secondsInOneOf(3, () => secondsToPipeline(source), 2 * ofSines);
    expect(seconds).toBeLessThan(2 * ofSines);
  },
);
