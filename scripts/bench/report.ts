import { formatMarkdownTable, formatNumber, formatTable } from "../lib/table.ts";
import type { Benchmark, BenchResult } from "./benchmark.ts";

/** What was run, and what came of it. */
export type BenchRow = readonly [Benchmark, BenchResult];

/** PASS or FAIL against the target; empty where there is none. */
export function verdict({ target }: Benchmark, { value, ratio }: BenchResult): string {
  if (target === undefined) return "";
  return `${target.met(value, ratio) ? "PASS" : "FAIL"}: ${target.text}`;
}

/** The figures as a table, then what each of them is. */
export function formatReport(rows: readonly BenchRow[]): string {
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
  const others = otherSides(rows);
  const notes = rows.map(([{ name, about, baselineAbout }]) => `${name}: ${about}; baseline: ${baselineAbout}.`);
  return [
    formatTable(header, cells, ["value", "baseline", "ratio", "rounds"]),
    ...(others.length === 0 ? [] : [formatTable(othersHeader, others, ["value", "its value", "ratio"])]),
    notes.join("\n"),
  ].join("\n\n");
}

/** The figures as a table in Markdown. */
export function formatMarkdown(rows: readonly BenchRow[]): string {
  const cells = rows.map(([{ about, baselineAbout, target }, { name, value, unit, baseline, ratio, others = {} }]) => [
    `\`${name}\``,
    about,
    `${formatNumber(value)} ${unit}`,
    `${baselineAbout}: ${formatNumber(baseline)} ${unit}`,
    formatNumber(ratio),
    Object.entries(others)
      .map(([other, figure]) => `${other}: ${formatNumber(figure)} ${unit}, ratio ${formatNumber(value / figure)}`)
      .join("; "),
    target?.text ?? "",
  ]);
  return formatMarkdownTable(["name", "what", "median", "baseline", "ratio", "also beside", "target"], cells);
}

const othersHeader = ["name", "value", "beside", "its value", "unit", "ratio"];

/** A row for each further side: the ratio is the benchmark's value to that side's. */
function otherSides(rows: readonly BenchRow[]): string[][] {
  return rows.flatMap(([, { name, value, unit, others = {} }]) =>
    Object.entries(others).map(([other, figure]) => [
      name,
      formatNumber(value),
      other,
      formatNumber(figure),
      unit,
      formatNumber(value / figure),
    ]),
  );
}
