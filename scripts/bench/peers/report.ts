import { barChart, lineChart } from "../../lib/chart.ts";
import { formatMarkdownTable, formatNumber } from "../../lib/table.ts";
import type { BenchResult } from "../benchmark.ts";
import { plainC } from "./all.ts";
import { formats, lengthName, lengths } from "./lengths.ts";

const threadCounts = ["1", "2"];

/** What a result is of: `D = 64, causal`, on `1` thread. */
function problemOf({ name }: BenchResult): { problem: string; threads: string } {
  const [, headDim, causal = "", threads = ""] = /^peers-d(\d+)(-causal)?-(\d)t$/.exec(name) ?? [];
  return { problem: `D = ${headDim}${causal === "" ? "" : ", causal"}`, threads };
}

/** A row for each problem and number of threads, in Markdown; GFLOP/s, and the ratio of ours to each. */
export function tabulatePeers(results: readonly BenchResult[]): string {
  const header = ["problem", "threads", "`flashAttnPrefill`", "onnxruntime-node", "ratio", plainC, "ratio"];
  const rows = results.map((result) => {
    const { problem, threads } = problemOf(result);
    const { value, baseline, ratio, others = {} } = result;
    const inC = others[plainC];
    return [
      problem,
      threads,
      ...[value, baseline, ratio].map(formatNumber),
      ...(inC === undefined ? ["", ""] : [inC, value / inC].map(formatNumber)),
    ];
  });
  return formatMarkdownTable(header, rows);
}

/** A group of bars for each problem, as SVG. */
export function drawPeers(machine: string, results: readonly BenchResult[]): string {
  const groups = [...new Set(results.map((result) => problemOf(result).problem))];
  const side = (name: string, threads: string, figure: (result: BenchResult) => number | undefined) => ({
    name: `${name}, ${threads === "1" ? "1 thread" : `${threads} threads`}`,
    values: groups.map((group) => {
      const result = results.find((each) => Bun.deepEquals(problemOf(each), { problem: group, threads }));
      return result === undefined ? undefined : figure(result);
    }),
  });
  return barChart({
    title: "Attention, 8 heads, 1,024 tokens: bf16 here, f32 in ONNX Runtime and in C",
    subtitle: machine.replace(", device", "\ndevice"),
    yTitle: "GFLOP/s (4 H L L D, half when causal)",
    groups,
    series: [
      ...threadCounts.map((threads) => side("flashAttnPrefill", threads, ({ value }) => value)),
      ...threadCounts.map((threads) => side("onnxruntime-node", threads, ({ baseline }) => baseline)),
      side(plainC, "1", ({ others }) => others?.[plainC]),
    ],
  });
}

/** Time a token against keys, a line a format, as SVG. */
export function drawLengths(machine: string, results: readonly BenchResult[]): string {
  const line = (name: string, format: string, figure: (result: BenchResult) => number) => ({
    name,
    kind: "line" as const,
    points: lengths.flatMap((keys) => {
      const result = results.find((each) => each.name === lengthName(format, keys));
      return result === undefined ? [] : [[keys, figure(result)] as const];
    }),
  });
  return lineChart({
    title: "flashAttnDecode: a token over 32 / 8 heads, D = 128, one thread",
    subtitle: machine.replace(", device", "\ndevice"),
    xTitle: "keys",
    yTitle: "us a token",
    logarithmic: true,
    series: [
      line("f16", "f32", ({ baseline }) => baseline),
      ...formats.map(({ name }) => line(name, name, ({ value }) => value)),
    ],
  });
}
