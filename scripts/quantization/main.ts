/** Error of the quantized KV cache: `bunx metal-attention quantization [--out DIR]`. */
import { join } from "node:path";
import { Device } from "../../src/index.ts";
import { importCharts } from "../lib/charts.ts";
import { parseArguments, runMain, UsageError } from "../lib/command.ts";
import { prepareFolder } from "../lib/output.ts";
import { Progress } from "../lib/progress.ts";
import { formatTable } from "../lib/table.ts";
import { dataSets } from "./data.ts";
import { compareSigns, formats, type RoundTrip, roundTrip, type SignsComparison } from "./measure.ts";

const usage = `usage: metal-attention quantization [--out DIR]      (in a checkout: bun run report:quantization)

Writes vectors into a quantized cache, reads them back, and prints the error of
every format on Gaussian data, data with a channel of outliers, and keys and
values of the demo's text; then what the transform's random signs are for.

  --out DIR  where quantization-error.svg and quantization-signs.svg are
             written; build/report unless given. They are drawn by echarts,
             which a checkout has; a project gets it by bun add echarts
  --help     this text
  --version  which version this is`;

/** Head size of the vectors on which signs are compared, and the width that is drawn. */
const signsHeadDim = 128;
const drawnBits = 4;

const oneHotNote = `A one-hot vector becomes flat, every coordinate 1 or -1, and signs do not change that. A channel that
outweighs all others comes close to it: coordinates gather around 1 and -1, so that the error is
the one of the codes there, and not the mean over N(0, 1).`;

process.exitCode = await runMain("quantization", process.argv.slice(2), main);

async function main(args: readonly string[]): Promise<number> {
  const { values: options, positionals } = parseArguments(args, {
    out: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  });
  if (options.help) {
    console.log(usage);
    return 0;
  }
  if (positionals.length > 0) throw new UsageError(`expected options alone, got ${positionals.join(" ")}`);
  const charts = await importCharts(() => import("./charts.ts"));
  if (charts === undefined && options.out !== undefined) {
    throw new Error("--out is for the charts, which echarts draws; it is not installed: bun add echarts");
  }
  const folder = options.out ?? "build/report";
  if (charts !== undefined) prepareFolder(folder);
  using device = Device.open();
  using progress = new Progress();
  const data = await progress.wait("data", () => dataSets(join(import.meta.dir, "../../README.md")));
  const trips = data.flatMap((set) =>
    formats.map((format) => progress.run(`${set.name}, ${format.bits} bits`, () => roundTrip(device, set, format))),
  );
  const comparisons = compareSigns(signsHeadDim, [2, drawnBits, 8]);

  console.log(`Round trip on ${device.info.name}: squared error over squared length\n`);
  console.log(`${errorTable(trips)}\n`);
  console.log(`Signs of the transform, D = ${signsHeadDim}, float64 oracle\n`);
  console.log(`${signsTable(comparisons)}\n`);
  console.log(`${oneHotNote}\n`);

  if (charts === undefined) {
    console.log("Without charts: echarts, which draws them, is not installed (bun add echarts)");
    return 0;
  }
  const drawn = {
    "quantization-error.svg": charts.drawErrors(trips),
    "quantization-signs.svg": charts.drawSigns(
      comparisons.filter(({ bits }) => bits === drawnBits),
      signsHeadDim,
    ),
  };
  for (const [name, svg] of Object.entries(drawn)) {
    const path = join(folder, name);
    await Bun.write(path, svg);
    console.log(`${path} is written`);
  }
  return 0;
}

function errorTable(trips: readonly RoundTrip[]): string {
  const header = ["data", "bits", "packing", "bits per value", "error", "error / optimum"];
  const rows = trips.map(({ data, format, bitsPerValue, error, toOptimum }) => [
    data,
    String(format.bits),
    format.packing,
    bitsPerValue.toFixed(3),
    error.toPrecision(4),
    toOptimum.toFixed(4),
  ]);
  return formatTable(header, rows, ["bits", "bits per value", "error", "error / optimum"]);
}

function signsTable(comparisons: readonly SignsComparison[]): string {
  const header = ["vector", "bits", "error with signs", "without", "times worse"];
  const rows = comparisons.map(({ data, bits, withSigns, without }) => [
    data,
    String(bits),
    withSigns.toPrecision(3),
    without.toPrecision(3),
    (without / withSigns).toFixed(2),
  ]);
  return formatTable(header, rows, header.slice(1));
}
