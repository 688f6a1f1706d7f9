/**
 * `bun test/sanitize/device.ts [TOOL...] [--jobs N] [--only PATTERN] [--part I/N]`: the tools of NVIDIA's
 * compute-sanitizer over every operation on an NVIDIA GPU. First all cases run without a tool, which compiles their
 * kernels; then under each tool they have to be clean, as the kernels of mistakes.ts without their mistakes, and with one
 * its tool has to report it. A line a case, `TOOL CASE: ok` or what was found. `--part 2/3` takes every third case from
 * the second on, and part 1 the mistakes, for a machine that is lent for less time than all of it takes. Needs the built
 * library, Bun, clang and compute-sanitizer.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { cleanCases, plantedName } from "./cases.ts";
import { type Mistake, mistakes, type Tool, tools } from "./mistakes.ts";

const { values, positionals } = parseArgs({
  options: {
    device: { type: "string", default: "nvidia" },
    jobs: { type: "string", default: String(Math.min(16, availableParallelism())) },
    only: { type: "string", default: "" },
    part: { type: "string", default: "1/1" },
  },
  allowPositionals: true,
});

const chosen = tools.filter((tool) => positionals.length === 0 || positionals.includes(tool));
const unknown = positionals.filter((name) => !(tools as readonly string[]).includes(name));
if (unknown.length > 0) stop(`no tool ${unknown[0]}; there are ${tools.join(", ")}`);
const jobs = Number(values.jobs);
if (!Number.isInteger(jobs) || jobs < 1) stop(`--jobs is ${values.jobs}; expected a number from 1`);
const [, part = 0, parts = 0] = (/^(\d+)\/(\d+)$/.exec(values.part) ?? []).map(Number);
if (part < 1 || part > parts) stop(`--part is ${values.part}; expected I/N, I from 1 to N`);
const sanitizer =
  Bun.which("compute-sanitizer") ??
  stop("compute-sanitizer is not on the PATH; it comes with the CUDA toolkit, in its bin folder");

/** Seconds that one process may take. */
const processLimit = 240;

const help = await new Response(Bun.spawn([sanitizer, "--help"], { stdout: "pipe", stderr: "ignore" }).stdout).text();

/** The command line of a tool, to be followed by the program's. */
function commandOf(tool: Tool): string[] {
  // The compilers of kernels are other processes. Frames of Bun's say nothing.
  const common = ["--tool", tool, "--target-processes", "application-only", "--show-backtrace", "no"];
  if (tool !== "memcheck") return [sanitizer, ...common, "--print-limit", "20"];
  // The library looks at each status of the driver's itself. Neighbouring buffers are kept apart.
  const padding = help.includes("--padding") ? ["--padding", "512"] : [];
  return [sanitizer, ...common, "--print-limit", "20", "--report-api-errors", "no", ...padding];
}

/** What became of a process with some cases. */
interface Ran {
  /** By case: what the program itself says is wrong, or undefined where it says ok; those that did not end are absent. */
  readonly ended: ReadonlyMap<string, string | undefined>;
  /** What the tool reports, or why it says nothing; undefined where it found nothing. */
  readonly report: string | undefined;
  /** Whether its time was over first. */
  readonly isLate: boolean;
}

let free = jobs;
const waiting: (() => void)[] = [];

/** Runs cases in one process, under a tool or without; waits until there is room for a process. */
async function run(tool: Tool | "plain", names: readonly string[]): Promise<Ran> {
  if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
  else free -= 1;
  try {
    const program = [process.execPath, `${import.meta.dir}/operations.ts`, "--device", values.device, ...names];
    // It ends the tool and the program as one.
    const limited = ["timeout", "--signal=KILL", String(processLimit)];
    const child = Bun.spawn([...limited, ...(tool === "plain" ? [] : commandOf(tool)), ...program], {
      env: {
        ...process.env,
        // Under a tool kernels are many times slower.
        SOFTMETAL_TIME_LIMIT: "120",
        // All that is ever written is written by a case.
        SOFTMETAL_UNWRITTEN: tool === "initcheck" ? "1" : "0",
        // Else synccheck does not see that some lanes leave one out.
        SOFTMETAL_ALIGNED_BARRIERS: "1",
        // The driver's, for the kernels of all cases.
        CUDA_CACHE_MAXSIZE: String(2 ** 32),
      },
      stdout: "pipe",
      stderr: "pipe",
    });
    const began = performance.now();
    const [output, errors] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    const ended = new Map<string, string | undefined>();
    for (const [, name = "", fault] of output.matchAll(/^(\S+): (?:ok|wrong: (.*))$/gm)) ended.set(name, fault);
    if (performance.now() - began >= processLimit * 1000) {
      return { ended, report: `did not end within ${processLimit} s`, isLate: true };
    }
    return { ended, report: tool === "plain" ? undefined : reportOf(`${output}\n${errors}`), isLate: false };
  } finally {
    const next = waiting.shift();
    if (next === undefined) free += 1;
    else next();
  }
}

/** What a tool's output reports: its own lines. */
function reportOf(text: string): string | undefined {
  const summary = /(?:ERROR|RACECHECK) SUMMARY: (\d+)/.exec(text);
  if (summary?.[1] === "0") return undefined;
  const lines = text.split("\n").filter((line) => line.startsWith("========="));
  const said = (summary === null ? text.trim().split("\n").slice(-8) : lines).map((line) => `    ${line}`);
  return `${summary === null ? "no summary" : summary[0]}\n${said.slice(0, 24).join("\n")}`;
}

let passed = 0;
let failed = 0;

function conclude(tool: string, name: string, fault: string | undefined): void {
  if (fault === undefined) passed += 1;
  else failed += 1;
  console.log(`${tool} ${name}: ${fault ?? "ok"}`);
}

/** Cases that took too long by themselves, while others ran: tools stand still at times where many run. */
const late: (readonly [tool: Tool | "plain", name: string])[] = [];

/**
 * Runs cases that have to be clean. Where a tool finds something in several, each runs again by itself, to tell which; so
 * does each where several took too long, and in the end, with nothing beside it, one that did so by itself.
 */
async function runClean(tool: Tool | "plain", names: readonly string[], isLast = false): Promise<void> {
  const { ended, report, isLate } = await run(tool, names);
  const isWhole = report === undefined && names.every((name) => ended.has(name));
  if (isLate && !isLast && names.length === 1) {
    late.push(...names.map((name) => [tool, name] as const));
    return;
  }
  if (names.length === 1 || isWhole) {
    for (const name of names) {
      const wrong = ended.has(name) ? ended.get(name) : "the process ended before it";
      const faults = [report, wrong && `wrong: ${wrong}`].filter((fault) => fault !== undefined && fault !== "");
      conclude(tool, name, faults.length === 0 ? undefined : faults.join("\n    "));
    }
    return;
  }
  const before = failed;
  await Promise.all(names.map((name) => runClean(tool, [name])));
  const isAllRight = [...ended.values()].every((fault) => fault === undefined);
  if (failed === before && !(isLate && isAllRight)) {
    conclude(tool, `${names[0]}..${names.at(-1)}`, `only beside each other: ${report ?? "the process ended early"}`);
  }
}

async function runMistake(mistake: Mistake): Promise<void> {
  const name = plantedName(mistake, true);
  const { report } = await run(mistake.tool, [name]);
  if (report === undefined) conclude(mistake.tool, name, "the mistake went unseen");
  else conclude(mistake.tool, name, mistake.says.test(report) ? undefined : `${mistake.says} is not in: ${report}`);
}

/** The names in so many lists, neighbours in different ones, since they take about as long. */
function split(names: readonly string[], lists: number): string[][] {
  const count = Math.min(lists, names.length);
  return Array.from({ length: count }, (_, i) => names.filter((_, j) => j % count === i));
}

function stop(message: string): never {
  console.error(message);
  process.exit(2);
}

const only = new RegExp(values.only);
const names = cleanCases()
  .map(({ name }) => name)
  .filter((name, i) => only.test(name) && i % parts === part - 1);
const seconds = () => (performance.now() / 1000).toFixed(0);
await Promise.all(split(names, jobs).map((list) => runClean("plain", list)));
console.log(`# ${seconds()} s: all cases without a tool`);
await Promise.all(
  chosen.flatMap((tool) => {
    const own = mistakes.filter((mistake) => mistake.tool === tool && part === 1);
    return [
      ...own.map(runMistake),
      ...split(
        own.map((mistake) => plantedName(mistake, false)),
        1,
      ).map((list) => runClean(tool, list)),
      ...split(names, 2 * jobs).map((list) => runClean(tool, list)),
    ];
  }),
);
for (const [tool, name] of late) await runClean(tool, [name], true);
console.log(`# ${seconds()} s: all`);
// As `bun test` closes, whose lines scripts/test counts.
console.log(` ${passed} pass\n ${failed} fail\nRan ${passed + failed} tests across 1 file.`);
process.exitCode = failed === 0 ? 0 : 1;
