import { formatNumber, formatTable } from "../lib/table.ts";
import type { Benchmark, BenchResult } from "./benchmark.ts";

/** PASS or FAIL against the target; empty where there is none. */
export function verdict({ target }: Benchmark, { value, ratio }: BenchResult): string {
  if (target === undefined) return "";
  return `${target.met(value, ratio) ? "PASS" : "FAIL"}: ${target.text}`;
}

/** The figures as a table, then what each of them is. */
export function formatReport(rows: readonly (readonly [Benchmark, BenchResult])[]): string {
  const header = ["name", "value", "unit", "baseline", "ratio", "rounds", "target"];
  const cells = rows.map(([benchmark, result]) => [
    result.name,
    formatNumber(result.value),
    result.unit,
    formatNumber(result.baseline),
    formatNumber(result.ratio),
    String(result.rounds),
    verdict(benchmark, result),
  ]);
  const notes = rows.map(([{ name, about, baselineAbout }]) => `${name}: ${about}; baseline: ${baselineAbout}.`);
  return `${formatTable(header, cells, ["value", "baseline", "ratio", "rounds"])}\n\n${notes.join("\n")}`;
}
