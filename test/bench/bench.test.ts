import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { benchmarks } from "../../scripts/bench/all.ts";
import { type Benchmark, median, runBenchmark } from "../../scripts/bench/benchmark.ts";
import { verdict } from "../../scripts/bench/report.ts";
import { plainEnvironment } from "../helpers/run.ts";

const script = resolve(import.meta.dir, "../../scripts/bench/main.ts");

function bench(...args: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, script, ...args], { env: plainEnvironment });
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

describe("rounds", () => {
  test("the median of odd and even counts", () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
    expect(median([7])).toBe(7);
    expect(() => median([])).toThrow(RangeError);
  });

  test("both sides in every round, taking turns at being first, after one that does not count", async () => {
    const calls: string[] = [];
    let disposed = 0;
    const benchmark: Benchmark = {
      name: "x",
      unit: "ms",
      about: "",
      baselineAbout: "",
      target: { text: "at most 5", met: (value) => value <= 5 },
      rounds: () => 3,
      warmUp: true,
      prepare: () => ({
        measure: () => calls.push("m"),
        baseline: async () => calls.push("b"),
        dispose: () => disposed++,
      }),
    };
    const result = await runBenchmark(benchmark, { quick: false });
    expect(calls.join("")).toBe("bm" + "bm" + "mb" + "bm");
    // Each side gives the number of calls so far.
    expect(result).toEqual({ name: "x", value: 5, unit: "ms", baseline: 6, ratio: 5 / 6, rounds: 3 });
    expect(disposed).toBe(1);
    expect(verdict(benchmark, result)).toBe("PASS: at most 5");
    expect(verdict(benchmark, { ...result, value: Number.NaN })).toBe("FAIL: at most 5");
  });

  test("more sides than two: all in every round, turned round from one to the next", async () => {
    const calls: string[] = [];
    const side = (name: string) => () => calls.push(name);
    const result = await runBenchmark(
      {
        name: "x",
        unit: "ms",
        about: "",
        baselineAbout: "",
        rounds: () => 3,
        warmUp: false,
        prepare: async () => ({
          measure: side("m"),
          baseline: side("b"),
          others: { c: side("c"), d: side("d") },
          dispose: () => {},
        }),
      },
      { quick: false },
    );
    expect(calls.join("")).toBe("bmcd" + "dcmb" + "bmcd");
    // Calls 1, 8, 9 are the baseline's, 2, 7, 10 the measured side's.
    expect(result).toEqual({
      name: "x",
      value: 7,
      unit: "ms",
      baseline: 8,
      ratio: 7 / 8,
      rounds: 3,
      others: { c: 6, d: 5 },
    });
  });

  test("names are those that were asked for; nine rounds but in a quick run", () => {
    expect(benchmarks.map(({ name }) => name)).toEqual([
      "op-host-cost",
      "dispatch-host-cost-500",
      "dispatch-host-cost-4096",
      "recorded-step",
      "recorded-step-parameter",
      "recorded-decode",
      "cache-step",
      ...[0.1, 1, 4].map((milliseconds) => `await-latency-${milliseconds}ms`),
      "await-processor",
      "copy-f32",
      "copy-seq-f32-f16",
      "quantize-4bit-d128",
      "quantize-4bit-d256",
      "dequantize-4bit-d128",
      "rope",
      "rope-8192",
      "append-f32-plain",
      "append-f32",
      "append-bf16-plain",
      "append-bf16",
      "append-k8v4",
      "append-k8v4-f16",
      "prefill-bf16-d256-causal-1t",
      "prefill-bf16-d256-causal-2t",
      ...[64, 128, 256, 512].flatMap((headDim) => [`prefill-bf16-d${headDim}-1t`, `prefill-bf16-d${headDim}-2t`]),
      "prefill-window-tile-classes",
      "prefill-window",
      "prefill-k8v4",
      "prefill-k8v4-rows",
      "prefill-k8v4-chunk",
      "prefill-k8v4-tail",
      ...["f16-d128", "f16-d128-alone", "f16-d64", "f16-d256", "bf16-d128", "f32-d128", "k8v4", "k4v4", "k3v3"].map(
        (name) => `decode-${name}`,
      ),
      ...["f16", "k8v4", "k4v4", "k3v3"].map((name) => `decode-${name}-2t`),
      "decode-batch",
      "decode-host-cost",
      "decode-host-cost-k8v4",
      "decode-host-cost-2",
      "shader-cold",
      "shader-warm",
      "shader-1920-kernels",
      "shader-690-kernels",
      "load-to-first-result",
      "barrier-256",
      "simd-sum",
      "mma-matrix-style",
      "mma-element-style",
      "gemv-simdgroup-f32",
      "gemv-simdgroup-bf16",
      "decode-loop",
      "row-reduce",
      "plain-loop",
      ...[2, 11, 430].flatMap((threadgroups) => [
        `tiny-dispatch-${threadgroups}`,
        `tiny-dispatch-${threadgroups}-busy`,
      ]),
    ]);
    for (const { rounds } of benchmarks) expect(rounds({ quick: false })).toBeGreaterThanOrEqual(9);
  });
});

describe("the command", () => {
  test("one benchmark into a JSON file", () => {
    const folder = mkdtempSync(join(tmpdir(), "metal-attention-bench-test-"));
    try {
      const path = join(folder, "figures.json");
      const { exitCode, stdout, stderr } = bench("--quick", "--only", "load-to-first-result", "--json", path);
      expect({ exitCode, errors: stderr.replace(/^ {4}load-to-first-result: \d+ s\n/gm, "") }).toEqual({
        exitCode: 0,
        errors: "",
      });
      expect(stdout).toContain("load-to-first-result");
      const figures = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>[];
      expect(figures).toHaveLength(1);
      const [figure = {}] = figures;
      expect(Object.keys(figure)).toEqual(["name", "value", "unit", "baseline", "ratio", "rounds"]);
      expect(figure["rounds"]).toBe(9);
      expect(figure["value"]).toBeGreaterThan(0);
      expect(figure["ratio"]).toBeCloseTo(Number(figure["value"]) / Number(figure["baseline"]), 9);
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 60_000);

  test("an unknown name lists those there are", () => {
    const { exitCode, stderr } = bench("--only", "copy");
    expect(exitCode).toBe(2);
    expect(stderr).toContain('no benchmark "copy"');
    expect(stderr).toContain("copy-seq-f32-f16");
    expect(stderr).not.toMatch(/\.ts:\d+/);
  }, 60_000);
});
