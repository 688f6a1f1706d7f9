/** Which cache format to choose: `bunx metal-attention report [--out DIR]`. */
import { join } from "node:path";
import { cacheFormat } from "../../examples/llama/model/cacheFormat.ts";
import { Device } from "../../src/index.ts";
import { importCharts } from "../lib/charts.ts";
import { parseArguments, runMain, UsageError } from "../lib/command.ts";
import { prepareFolder } from "../lib/output.ts";
import { Progress } from "../lib/progress.ts";
import { formatNumber, formatTable } from "../lib/table.ts";
import { advice, published } from "./advice.ts";
import { distances, type Likeliest, type Measured, measure, writeTexts } from "./measure.ts";

const usage = `usage: metal-attention report [--formats A,B,...] [--texts N] [--out DIR]

Runs the language model of examples/recall over texts with facts in them, its
cache in one format after the other, and prints what each does to the model:
perplexity, agreement with a cache of f32, recall of facts by distance; beside
bits a value and tokens a second. Ends with what follows for the choice.

  --formats  formats in place of all: f32, f16, bf16, or k8v4 and the like with
             bits of 2, 3, 4, 5, 6, 8 for K and V
  --texts N  texts of about 7,200 tokens with 24 questions each; 4 unless given,
             which takes some ten minutes on two cores
  --out DIR  where cache-formats.svg is written; build/report unless given. It
             is drawn by echarts, which a checkout has; a project gets it by
             bun add echarts
  --help     this text
  --version  which version this is`;

const widths = [8, 6, 5, 4, 3, 2] as const;
const allFormats = ["f16", "bf16", ...widths.flatMap((k) => widths.map((v) => `k${k}v${v}`))];
/** What all formats are held to. */
const reference = "f32";

process.exitCode = await runMain("report", process.argv.slice(2), main);

async function main(args: readonly string[]): Promise<number> {
  const { values: options, positionals } = parseArguments(args, {
    formats: { type: "string" },
    texts: { type: "string" },
    out: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  });
  if (options.help) {
    console.log(usage);
    return 0;
  }
  if (positionals.length > 0) throw new UsageError(`expected options alone, got ${positionals.join(" ")}`);
  const formats = formatsOf(options.formats);
  const textCount = Number(options.texts ?? "4");
  if (!Number.isInteger(textCount) || textCount < 1 || textCount > 1000) {
    throw new UsageError(`--texts is ${JSON.stringify(options.texts)}; it is a whole number from 1 to 1000`);
  }
  const charts = await importCharts(() => import("./chart.ts"));
  if (charts === undefined && options.out !== undefined) {
    throw new Error("--out is for the chart, which echarts draws; it is not installed: bun add echarts");
  }
  const folder = options.out ?? "build/report";
  if (charts !== undefined) prepareFolder(folder);

  using device = Device.open();
  using progress = new Progress();
  const texts = writeTexts(textCount);
  const rows: Measured[] = [];
  let likeliest: Likeliest | undefined;
  for (const [i, format] of [reference, ...formats].entries()) {
    const step = `${format}, ${i + 1} of ${formats.length + 1}`;
    const result = await progress.wait(step, () => measure(device, format, texts, likeliest));
    likeliest ??= result.likeliest;
    rows.push(result.measured);
  }
  const tokens = texts.reduce((sum, { bytes }) => sum + bytes.length, 0);
  const questions = texts.reduce((sum, { answers }) => sum + answers.length, 0);
  console.log(`${tokens} tokens in ${textCount} texts, ${questions} questions, on ${device.info.name}\n`);
  console.log(`${table(rows)}\n\n${advice(rows, questions)}\n\n${published}`);
  if (charts === undefined) {
    console.log("\nWithout the chart: echarts, which draws it, is not installed (bun add echarts)");
    return 0;
  }
  const path = join(folder, "cache-formats.svg");
  await Bun.write(path, charts.drawFormats(rows));
  console.log(`\n${path} is written`);
  return 0;
}

function formatsOf(list: string | undefined): string[] {
  if (list === undefined) return allFormats;
  return [...new Set(list.split(","))]
    .map((name) => {
      try {
        return cacheFormat(name.trim()).name;
      } catch (error) {
        throw new UsageError(`--formats: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
      }
    })
    .filter((name) => name !== reference);
}

function table(rows: readonly Measured[]): string {
  const percent = (part: number) => (Number.isNaN(part) ? "-" : `${(100 * part).toFixed(1)} %`);
  const far = distances.slice(1, -1).map((from, i) => `${from} to ${distances[i + 2]}`);
  const header = [
    "cache",
    "bits a value",
    "perplexity",
    "agreement",
    "recall",
    `up to ${distances[1]}`,
    ...far,
    "tokens/s",
  ];
  const cells = rows
    .toSorted((a, b) => b.bitsPerValue - a.bitsPerValue)
    .map(({ format, bitsPerValue, perplexity, agreement, recall, recallOfAll, tokensPerSecond }) => [
      format,
      bitsPerValue.toFixed(2),
      perplexity.toFixed(4),
      percent(agreement),
      percent(recallOfAll),
      ...recall.map(percent),
      formatNumber(tokensPerSecond),
    ]);
  return formatTable(header, cells, header.slice(1));
}
