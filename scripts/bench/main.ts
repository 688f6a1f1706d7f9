/** Benchmarks: `bun run bench [--json FILE] [--only NAME] [--quick]`. */
import { parseArgs } from "node:util";
import { Progress } from "../lib/progress.ts";
import { benchmarks } from "./all.ts";
import { type Benchmark, type BenchResult, runBenchmark } from "./benchmark.ts";
import { describeMachine } from "./environment.ts";
import { formatReport } from "./report.ts";

const usage = `usage: bun run bench [--json FILE] [--only NAME] [--quick]

Medians of interleaved rounds, each figure beside a baseline from the same rounds.

  --json FILE  keeps the figures: a list of { name, value, unit, baseline, ratio, rounds }
  --only NAME  runs one benchmark, or several when given several times:
               ${benchmarks.map(({ name }) => name).join("\n               ")}
  --quick      fewer rounds of the cold shader compile; at most 40 s in all
  --help       this text`;

try {
  await main();
} catch (error) {
  console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
}

async function main(): Promise<void> {
  const { values: options } = parseArgs({
    options: {
      json: { type: "string" },
      only: { type: "string", multiple: true },
      quick: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (options.help) {
    console.log(usage);
    return;
  }
  const chosen = choose(options.only);
  console.log(`${describeMachine()}\n`);
  using progress = new Progress();
  const rows: [Benchmark, BenchResult][] = [];
  for (const benchmark of chosen) {
    const result = await progress.wait(benchmark.name, () => runBenchmark(benchmark, { quick: options.quick }));
    rows.push([benchmark, result]);
  }
  console.log(formatReport(rows));
  if (options.json !== undefined) {
    const results = rows.map(([, result]) => result);
    await Bun.write(options.json, `${JSON.stringify(results, undefined, 2)}\n`);
  }
}

function choose(names: readonly string[] | undefined): readonly Benchmark[] {
  if (names === undefined) return benchmarks;
  return names.map((name) => {
    const found = benchmarks.find((benchmark) => benchmark.name === name);
    if (found === undefined) {
      throw new Error(
        `no benchmark ${JSON.stringify(name)}; there are ${benchmarks.map((each) => each.name).join(", ")}`,
      );
    }
    return found;
  });
}
