import { barChart, lineChart } from "../../lib/chart.ts";
import { formatMarkdownTable, formatNumber } from "../../lib/table.ts";
import type { BenchResult } from "../benchmark.ts";
import { plainC } from "./all.ts";
import { formats, keysOf } from "./lengths.ts";

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
  const figureOf = ({ value, baseline, others = {} }: BenchResult, format: string) =>
    format === "k8v4" ? value : format === "f16" ? baseline : others[format];
  return lineChart({
    title: "flashAttnDecode: a token over 32 / 8 heads, D = 128, one thread",
    subtitle: machine.replace(", device", "\ndevice"),
    xTitle: "keys",
    yTitle: "us a token",
    logarithmic: true,
    doubling: true,
    series: formats.map((format) => ({
      name: format,
      kind: "line",
      points: results.flatMap((result) => {
        const figure = figureOf(result, format);
        return figure === undefined ? [] : [[keysOf(result), figure] as const];
      }),
    })),
  });
}
