#!/usr/bin/env bun
/** What the package's own program does: looks after an installation, shows what it can do, and measures. */
import { extname, join } from "node:path";
import { examine } from "./doctor/examine.ts";
import { reportEndings, writeReport } from "./doctor/report.ts";
import { formatInstallation, formatOutcome } from "./doctor/text.ts";
import { allCases } from "./fixtures/operations/all.ts";
import { type Command, command, runProgram, UsageError } from "./lib/command.ts";
import { prepareFile } from "./lib/output.ts";
import { Progress } from "./lib/progress.ts";

const doctor = command({
  name: "doctor",
  summary: "Finds the library, compares layouts, runs every built-in kernel; says what is wrong and how to mend it.",
  options: {
    report: {
      type: "string",
      value: "FILE",
      help: "also writes all of it, without personal paths: JSON in a .json, Markdown in a .md",
    },
  },
  async run({ report }) {
    if (report !== undefined) {
      if (!reportEndings.includes(extname(report))) {
        throw new UsageError(`--report is ${JSON.stringify(report)}; it ends in ${reportEndings.join(" or ")}`);
      }
      prepareFile(report, "--report");
    }
    using progress = new Progress();
    const examination = examine(allCases, {
      // Before a kernel runs: whatever happens then, this is known.
      found: (installation) => console.log(formatInstallation(installation)),
      run: (name, action) => progress.run(name, action),
    });
    console.log(formatOutcome(examination));
    if (report !== undefined) {
      await writeReport(report, examination);
      console.log(`the report is in ${report}`);
    }
    return examination.problems.length === 0 ? 0 : 1;
  },
});

/** A command that is a script of its own. */
function script(name: string, summary: string, path: string): Command {
  return {
    name,
    summary,
    help: `  ${name}\n      ${summary} ${name} --help lists the options.`,
    async run(args) {
      const file = join(import.meta.dir, path);
      const child = Bun.spawn([process.execPath, file, ...args], { stdio: ["inherit", "inherit", "inherit"] });
      return await child.exited;
    },
  };
}

process.exitCode = await runProgram(
  {
    name: "metal-attention",
    summary: "Looks after an installation of metal-attention.",
    commands: [
      doctor,
      script("demo", "Has a small language model answer questions about a text.", "attention-layer/main.ts"),
      script("report", "Measures what each cache format does to a language model.", "report/main.ts"),
      script("quantization", "Measures the error of the quantized cache.", "quantization/main.ts"),
      script("bench", "Runs the benchmarks.", "bench/main.ts"),
    ],
  },
  process.argv.slice(2),
);
