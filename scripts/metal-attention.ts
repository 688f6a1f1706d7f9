#!/usr/bin/env bun
/** What the package's own program does: looks after an installation, and measures. */
import { join } from "node:path";
import { examine } from "./doctor/examine.ts";
import { writeReport } from "./doctor/report.ts";
import { formatInstallation, formatOutcome } from "./doctor/text.ts";
import { allCases } from "./fixtures/operations/all.ts";
import { type Command, command, runProgram } from "./lib/command.ts";
import { Progress } from "./lib/progress.ts";

const doctor = command({
  name: "doctor",
  summary: "Finds the library, compares layouts, runs every built-in kernel; says what is wrong and how to mend it.",
  options: {
    report: {
      type: "string",
      value: "FILE",
      help: "also writes all of it, without personal paths: JSON, or Markdown for .md",
    },
  },
  async run({ report }) {
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

const bench: Command = {
  name: "bench",
  summary: "Runs the benchmarks.",
  help: "  bench\n      Runs the benchmarks; bench --help lists them and their options.",
  async run(args) {
    const script = join(import.meta.dir, "bench/main.ts");
    const child = Bun.spawn([process.execPath, script, ...args], { stdio: ["inherit", "inherit", "inherit"] });
    return await child.exited;
  },
};

process.exitCode = await runProgram(
  {
    name: "metal-attention",
    summary: "Looks after an installation of metal-attention.",
    commands: [doctor, bench],
  },
  process.argv.slice(2),
);
