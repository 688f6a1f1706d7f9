import { barChart } from "../../lib/chart.ts";
import type { BenchResult } from "../benchmark.ts";
import { plainC } from "./all.ts";

/** A group of bars for each problem, as SVG. */
export function drawPeers(machine: string, results: readonly BenchResult[]): string {
  const problemOf = ({ name }: BenchResult) => name.replace(/^peers-|-\dt$/g, "");
  const groups = [...new Set(results.map(problemOf))];
  const side = (name: string, threads: string, figure: (result: BenchResult) => number | undefined) => ({
    name: `${name}, ${threads}`,
    values: groups.map((group) => {
      const result = results.find((each) => problemOf(each) === group && each.name.endsWith(threads));
      return result === undefined ? undefined : figure(result);
    }),
  });
  return barChart({
    title: "Attention, 8 heads, 1,024 tokens: bf16 here, f32 in ONNX Runtime and in C",
    subtitle: machine.replace(", device", "\ndevice"),
    yTitle: "GFLOP/s (4 H L L D, half when causal)",
    groups,
    series: [
      ...["1t", "2t"].map((threads) => side("flashAttnPrefill", threads, ({ value }) => value)),
      ...["1t", "2t"].map((threads) => side("onnxruntime-node", threads, ({ baseline }) => baseline)),
      side(plainC, "1t", ({ others }) => others?.[plainC]),
    ],
  });
}
