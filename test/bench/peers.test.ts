import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { BenchResult } from "../../scripts/bench/benchmark.ts";
import { compareOutputs, peerBenchmarks } from "../../scripts/bench/peers/all.ts";
import { prepareOnnxRuntime } from "../../scripts/bench/peers/onnxruntime.ts";
import { prepareOurs } from "../../scripts/bench/peers/ours.ts";
import { preparePlainC } from "../../scripts/bench/peers/plain-c.ts";
import { makeProblem, type Peer, type Problem } from "../../scripts/bench/peers/problem.ts";
import { drawLengths, drawPeers, tabulatePeers } from "../../scripts/bench/peers/report.ts";
import { nmse, offsetOf, referenceAttention, sequenceMajorStrides } from "../../src/reference/index.ts";
import { plainEnvironment } from "../helpers/run.ts";

const extents = { tokens: 48, heads: 3, headDim: 64 };

/** Output of the float64 oracle, sequence-major as the peers have it. */
function expected({ tokens, heads, headDim, causal, q, k, v }: Problem): Float64Array {
  const strides = sequenceMajorStrides(heads, tokens, headDim);
  const headMajor = referenceAttention({
    batch: 1,
    heads,
    kvHeads: heads,
    seqLenQ: tokens,
    seqLenK: tokens,
    headDim,
    scale: headDim ** -0.5,
    causal,
    q: { values: q, strides },
    k: { values: k, strides },
    v: { values: v, strides },
  });
  const values = new Float64Array(headMajor.length);
  for (let head = 0; head < heads; head++) {
    for (let token = 0; token < tokens; token++) {
      const from = (head * tokens + token) * headDim;
      values.set(headMajor.subarray(from, from + headDim), offsetOf(strides, 0, head, token));
    }
  }
  return values;
}

describe.each([false, true])("every peer computes attention (causal: %p)", (causal) => {
  const problem = makeProblem({ ...extents, causal });
  const oracle = expected(problem);
  const peers: [name: string, bound: number, prepare: () => Peer | Promise<Peer>][] = [
    ["this library", 1e-5, () => prepareOurs(problem, 1)],
    ["this library on two threads", 1e-5, () => prepareOurs(problem, 2)],
    ["onnxruntime-node", 1e-11, () => prepareOnnxRuntime(problem, 1)],
    ["onnxruntime-node on two threads", 1e-11, () => prepareOnnxRuntime(problem, 2)],
    ["plain C", 1e-11, () => preparePlainC(problem)],
  ];
  test.each(peers)("%s", async (_, bound, prepare) => {
    const peer = await prepare();
    try {
      await peer.run();
      expect(nmse(peer.output(), oracle)).toBeLessThan(bound);
    } finally {
      peer.dispose();
    }
  });
});

test("peers that differ are not timed", async () => {
  const gives = (...values: number[]): Peer => ({
    run: () => {},
    output: () => Float32Array.from(values),
    dispose: () => {},
  });
  const compute = (causal: boolean) => preparePlainC(makeProblem({ ...extents, causal }));
  await compareOutputs({ a: gives(1, 2), b: gives(1, 2.001) });
  await compareOutputs({ a: compute(true), b: compute(true) });
  const different: [right: Peer, wrong: Peer][] = [
    [gives(1, 2), gives(1, 2.1)],
    [gives(1, 2), gives(Number.NaN, 2)],
    [compute(true), compute(false)],
  ];
  for (const [right, wrong] of different) {
    await expect(compareOutputs({ right, wrong })).rejects.toThrow(/^wrong and right differ: NMSE/);
  }
});

test("names", () => {
  expect(peerBenchmarks.map(({ name }) => name)).toEqual(
    ["d64", "d64-causal", "d128", "d128-causal", "d256", "d256-causal"].flatMap((problem) => [
      `peers-${problem}-1t`,
      `peers-${problem}-2t`,
    ]),
  );
  for (const { rounds } of peerBenchmarks) expect(rounds({ quick: false })).toBeGreaterThanOrEqual(9);
});

describe("figures", () => {
  const result = (name: string, value: number, baseline: number, others?: Record<string, number>): BenchResult => ({
    name,
    value,
    unit: "GFLOP/s",
    baseline,
    ratio: value / baseline,
    rounds: 9,
    ...(others === undefined ? {} : { others }),
  });
  const results = [
    result("peers-d64-1t", 11, 12, { "plain C": 1.3 }),
    result("peers-d64-2t", 21, 22),
    result("peers-d128-causal-1t", 31, 32, { "plain C": 3.3 }),
  ];

  test("the table has a row for each, with the ratio to each side", () => {
    expect(tabulatePeers(results).split("\n").slice(2)).toEqual([
      "| D = 64 | 1 | 11.0 | 12.0 | 0.92 | 1.30 | 8.46 |",
      "| D = 64 | 2 | 21.0 | 22.0 | 0.95 |  |  |",
      "| D = 128, causal | 1 | 31.0 | 32.0 | 0.97 | 3.30 | 9.39 |",
    ]);
  });

  test("the chart of decode has a line for each format, through each length", () => {
    const svg = drawLengths("a machine", [
      result("decode-length-256", 90, 110, { f32: 200 }),
      result("decode-length-4096", 600, 1100, { f32: 2000 }),
    ]);
    const texts = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
    for (const text of ["f16", "f32", "k8v4", "keys", "us a token", "a machine"]) expect(texts).toContain(text);
    // A line from length to length, for f16 as well; none for the formats without figures.
    const line = /<path d="M[\d. ]+L[\d. ]+" fill="none"[^>]*stroke="(#\w+)" stroke-width="1.5"/g;
    const lines = [...svg.matchAll(line)];
    expect(lines.map(([, colour]) => colour)).toEqual(["#0072b2", "#56b4e9", "#d55e00"]);
  });

  test("the chart has a bar for each", () => {
    const svg = drawPeers("a machine & its device", results);
    const texts = [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, text]) => text);
    for (const text of ["D = 64", "D = 128, causal", "a machine &amp; its device", "onnxruntime-node, 2 threads"]) {
      expect(texts).toContain(text);
    }
    const labels = texts.filter((text) => ["11", "12", "1.3", "21", "22", "31", "32", "3.3"].includes(text ?? ""));
    expect(labels).toHaveLength(8);
  });
});

describe("the command", () => {
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-peers-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  test("writes Markdown and the chart", () => {
    const script = resolve(import.meta.dir, "../../scripts/bench/main.ts");
    const args = ["--quick", "--peers", "--only", "peers-d64-causal-1t", "--out", folder];
    const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, script, ...args], { env: plainEnvironment });
    expect({ exitCode, errors: stderr.toString().replace(/^ {4}.*: \d+ s\n/gm, "") }).toEqual({
      exitCode: 0,
      errors: "",
    });
    expect(stdout.toString()).toContain("plain C");
    const markdown = readFileSync(join(folder, "bench.md"), "utf8");
    const row = /^\| D = 64, causal \| 1 \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| [\d.]+ \| [\d.]+ \|$/m.exec(markdown);
    const [value, baseline, ratio] = (row ?? []).slice(1).map(Number) as [number, number, number];
    expect(Math.abs(ratio - value / baseline)).toBeLessThan(0.02 * ratio + 0.01);
    expect(markdown).toContain("](peers.svg)");
    for (const chart of ["peers.svg", "decode.svg"]) {
      expect(readFileSync(join(folder, chart), "utf8")).toStartWith("<svg ");
    }
  }, 60_000);
});
