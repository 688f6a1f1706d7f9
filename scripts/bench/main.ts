/** Benchmarks: `bun run bench [--device NAME] [--peers] [--out DIR] [--json FILE] [--only NAME] [--quick]`. */
import { join } from "node:path";
import { parseArguments, runMain, UsageError } from "../lib/command.ts";
import { prepareFile, prepareFolder } from "../lib/output.ts";
import { Progress } from "../lib/progress.ts";
import { benchmarks } from "./all.ts";
import { type Benchmark, runBenchmark } from "./benchmark.ts";
import { deviceRows, formatDeviceTable, measureDevice, openNamed } from "./device/table.ts";
import { describeMachine } from "./environment.ts";
import { peerBenchmarks } from "./peers/all.ts";
import { decodePeerBenchmarks } from "./peers/decode.ts";
import { lengthBenchmarks } from "./peers/lengths.ts";
import { type BenchRow, formatMarkdown, formatReport } from "./report.ts";

const allBenchmarks = [...benchmarks, ...decodePeerBenchmarks, ...lengthBenchmarks, ...peerBenchmarks];

/** Where `--peers` writes unless told, from the current folder. */
const defaultFolder = "build/bench";

const usage = `usage: metal-attention bench [--device NAME] [--peers] [--out DIR] [--json FILE] [--only NAME] [--quick]
       (in a checkout: bun run bench)

Medians of interleaved rounds, each figure beside a baseline from the same rounds.

  --device NAME  the kernels on a device, nvidia, cpu or its index, by its own clock, in its own memory:
               GB/s, TFLOP/s, tokens/s, the share of its copy, and torch's attention where Python
               has it. --only takes ${deviceRows
                 .map(({ name }) => name)
                 .join(", ")
                 .replaceAll(/(.{1,60}), /g, "$1,\n               ")
                 .trim()}
  --peers      also runs attention on onnxruntime-node and as plain C, and decode
               over several lengths and formats; writes bench.md (all figures),
               peers.svg and decode.svg (charts of these)
  --out DIR    where to; build/bench unless given
  --json FILE  keeps the figures: a list of { name, value, unit, baseline, ratio, rounds, others? }
  --only NAME  runs one benchmark, or several when given several times:
               ${allBenchmarks.map(({ name }) => name).join("\n               ")}
  --quick      fewer rounds where one takes long; at most 40 s in all without --peers
  --help       this text
  --version    which version this is`;

process.exitCode = await runMain("bench", process.argv.slice(2), main);

async function main(args: readonly string[]): Promise<number> {
  const { values: options, positionals } = parseArguments(args, {
    device: { type: "string" },
    peers: { type: "boolean", default: false },
    out: { type: "string", default: defaultFolder },
    json: { type: "string" },
    only: { type: "string", multiple: true },
    quick: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  });
  if (options.help) {
    console.log(usage);
    return 0;
  }
  if (positionals.length > 0) throw new UsageError(`expected options alone, got ${positionals.join(" ")}`);
  if (options.device !== undefined) return runDevice(options.device, options);
  const chosen = options.only?.map(find) ?? (options.peers ? allBenchmarks : benchmarks);
  const report = options.peers ? await importPeerReport() : undefined;
  if (options.json !== undefined) prepareFile(options.json, "--json");
  if (options.peers) prepareFolder(options.out);
  const machine = describeMachine();
  console.log(`${machine}\n`);
  using progress = new Progress();
  const rows: BenchRow[] = [];
  for (const benchmark of chosen) {
    try {
      const result = await progress.wait(benchmark.name, () => runBenchmark(benchmark, { quick: options.quick }));
      rows.push([benchmark, result]);
    } catch (error) {
      // For example for want of a compiler: the others are measured all the same.
      console.error(`${benchmark.name} is not measured: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  console.log(formatReport(rows));
  if (options.json !== undefined) {
    const results = rows.map(([, result]) => result);
    await Bun.write(options.json, `${JSON.stringify(results, undefined, 2)}\n`);
  }
  if (report !== undefined) await writePeers(report, options.out, machine, rows);
  return rows.length === chosen.length ? 0 : 1;
}

/** The table of one device. */
async function runDevice(
  name: string,
  { peers, only, json, quick }: { peers: boolean; only?: string[]; json?: string; quick: boolean },
): Promise<number> {
  if (peers) throw new UsageError("--peers runs on the CPU; leave it out beside --device");
  const unknown = only?.find((each) => !deviceRows.some((row) => row.name === each));
  if (unknown !== undefined) {
    const known = deviceRows.map((row) => row.name).join(", ");
    throw new UsageError(`no row ${JSON.stringify(unknown)} of a device; there are ${known}`);
  }
  const { device, about } = openNamed(name);
  using _ = device;
  if (json !== undefined) prepareFile(json, "--json");
  console.log(`${about}\n`);
  using progress = new Progress();
  const figures = measureDevice(device, { quick, names: only }, (row, action) => progress.run(row, action));
  console.log(formatDeviceTable(figures));
  if (json !== undefined) await Bun.write(json, `${JSON.stringify(figures, undefined, 2)}\n`);
  return 0;
}

/** Needs development dependencies, which an installed package lacks: asked for before minutes of figures. */
async function importPeerReport() {
  try {
    await import("onnxruntime-node");
    return await import("./peers/report.ts");
  } catch (cause) {
    throw new Error(
      `--peers needs the development dependencies onnxruntime-node and echarts, as a checkout has them after scripts/setup (${cause})`,
      { cause },
    );
  }
}

async function writePeers(
  { drawPeers, tabulatePeers, drawLengths }: Awaited<ReturnType<typeof importPeerReport>>,
  folder: string,
  machine: string,
  rows: readonly BenchRow[],
): Promise<void> {
  const isPeer = ([benchmark]: BenchRow) => peerBenchmarks.includes(benchmark);
  const compared = rows.filter(isPeer).map(([, result]) => result);
  const figures = rows.filter((row) => !isPeer(row));
  const overLengths = rows.filter(([benchmark]) => lengthBenchmarks.includes(benchmark)).map(([, result]) => result);
  const sections = [
    `# Figures\n\n${machine}. Medians of interleaved rounds.`,
    ...(figures.length === 0 ? [] : [formatMarkdown(figures)]),
    "## Attention beside others\n\n8 heads, 1,024 tokens, GFLOP/s; bf16 here, f32 elsewhere.",
    tabulatePeers(compared),
    "![Attention beside others](peers.svg)",
    "## Decode over lengths and formats",
    "![Time a token against keys](decode.svg)",
  ];
  await Bun.write(join(folder, "peers.svg"), drawPeers(machine, compared));
  await Bun.write(join(folder, "decode.svg"), drawLengths(machine, overLengths));
  await Bun.write(join(folder, "bench.md"), `${sections.join("\n\n")}\n`);
  console.log(`\n${["bench.md", "peers.svg", "decode.svg"].map((name) => join(folder, name)).join(", ")} are written`);
}

function find(name: string): Benchmark {
  const found = allBenchmarks.find((benchmark) => benchmark.name === name);
  if (found !== undefined) return found;
  throw new UsageError(
    `no benchmark ${JSON.stringify(name)}; there are ${allBenchmarks.map((each) => each.name).join(", ")}`,
  );
}
