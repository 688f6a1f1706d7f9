/**
 * The closing lines of scripts/test. `bun test-report.ts FOLDER` reads
 * FOLDER/runners (a line a runner: kind, name, exit status; or `absent`, name, the
 * tool that is missing) and FOLDER/NAME.log, prints one line a runner, the tests of
 * it that failed, and `N passed, N failed`, and exits with 1 on any failure.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Counts, countTests, failedTests, type Kind, sumCounts } from "./test-counts.ts";

function isKind(text: string | undefined): text is Kind {
  return text === "bun" || text === "swift" || text === "status";
}

const folder = process.argv[2] ?? ".";
const all: Counts[] = [];
console.log();
for (const line of readFileSync(join(folder, "runners"), "utf8").trim().split("\n")) {
  const [kind, name, status] = line.split(" ");
  if (kind === "absent") {
    console.log(`${name}: not run, ${status} is not installed`);
    continue;
  }
  if (!isKind(kind) || name === undefined) throw new Error(`${folder}/runners: "${line}" is not "KIND NAME STATUS"`);
  const output = Bun.stripANSI(readFileSync(join(folder, `${name}.log`), "utf8"));
  const counts = countTests(kind, output, Number(status));
  console.log(`${name}: ${counts.passed} passed, ${counts.failed} failed`);
  for (const test of failedTests(kind, output)) console.log(`  ${test}`);
  for (const problem of counts.problems) console.log(`  failure of the run: ${problem}`);
  all.push(counts);
}
const { passed, failed } = sumCounts(all);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 && passed > 0 ? 0 : 1);
