/**
 * Counts tests from what the test runners themselves print.
 *
 * A runner's results are compared with the total that it gives at its end.
 * Where they differ, or the total is missing (a crash), or tests were skipped,
 * the runner as a whole counts as a failure.
 */

/** What one runner did. `problems` are failures of the runner as a whole. */
export interface Counts {
  passed: number;
  failed: number;
  problems: string[];
}

/** How a runner's output is read. `status`: one case, passed when the exit status is 0. */
export type Kind = "bun" | "swift" | "status";

/** Reads the output of a runner that ended with exit status `status`. */
export function countTests(kind: Kind, output: string, status: number): Counts {
  if (kind === "status") return { passed: status === 0 ? 1 : 0, failed: status === 0 ? 0 : 1, problems: [] };
  const counts = kind === "bun" ? countBun(output) : countSwift(output);
  if (counts.passed + counts.failed === 0) counts.problems.push("no test was counted");
  if (status !== 0 && counts.failed === 0) counts.problems.push(`exit status ${status}, though no test failed`);
  return counts;
}

/** The runner's own lines that name the tests that failed, each once: Bun repeats them at its end. */
export function failedTests(kind: Kind, output: string): string[] {
  const pattern = {
    bun: /^\(fail\) .+$/gm,
    swift: /^(?:Test Case '.*' failed \(.*|\S+ +Test (?!run with \d).+ failed after \d.*)$/gm,
    status: undefined,
  }[kind];
  return pattern === undefined ? [] : [...new Set([...output.matchAll(pattern)].map(([line]) => line))];
}

/** The totals of several runners; each problem is one more failure. */
export function sumCounts(all: readonly Counts[]): { passed: number; failed: number } {
  let passed = 0;
  let failed = 0;
  for (const counts of all) {
    passed += counts.passed;
    failed += counts.failed + counts.problems.length;
  }
  return { passed, failed };
}

/** `bun test` ends with " 12 pass", " 0 fail" and "Ran 12 tests across 3 files." */
function countBun(output: string): Counts {
  const total = (word: string) => lastNumber(output, new RegExp(`^ *(\\d+) ${word}s?$`, "gm")) ?? 0;
  const passed = total("pass");
  const failed = total("fail");
  const unrun = total("skip") + total("todo");
  const errors = total("error");
  const ran = lastNumber(output, /^Ran (\d+) tests? across/gm);

  const problems: string[] = [];
  if (ran === undefined) problems.push("no closing line: the run did not end");
  else if (ran !== passed + failed + unrun)
    problems.push(`${ran} tests ran, but ${passed + failed + unrun} have a result`);
  if (unrun > 0) problems.push(`${unrun} tests skipped or left to do`);
  if (errors > 0) problems.push(`${errors} errors outside the tests`);
  return { passed, failed, problems };
}

/** `swift test` runs XCTest, then Swift Testing; a package may use either or both. */
function countSwift(output: string): Counts {
  const xctest = countLines(output, /^Test Case '.*' (passed|failed|skipped) \(/gm);
  const xctestTotal = lastNumber(output, /^\s*Executed (\d+) tests?, with /gm);
  const testing = countLines(output, /^\S+ +Test (?!run with \d).+ (passed after \d|failed after \d|skipped[.:])/gm);
  const testingTotal = lastNumber(
    output,
    /^\S+ +Test run with (\d+) tests? (?:in \d+ suites? )?(?:passed|failed) after/gm,
  );

  const problems: string[] = [];
  for (const [name, seen, total] of [
    ["XCTest", xctest, xctestTotal],
    ["Swift Testing", testing, testingTotal],
  ] as const) {
    const results = seen.passed + seen.failed + seen.skipped;
    if (total === undefined && results > 0) problems.push(`${name} has no closing line: the run did not end`);
    if (total !== undefined && total !== results) {
      problems.push(`${name} names ${total} tests, but ${results} have a result`);
    }
    if (seen.skipped > 0) problems.push(`${name} skipped ${seen.skipped} tests`);
  }
  return { passed: xctest.passed + testing.passed, failed: xctest.failed + testing.failed, problems };
}

/** Lines by the word that `pattern` captures. */
function countLines(output: string, pattern: RegExp) {
  const counts = { passed: 0, failed: 0, skipped: 0 };
  for (const [, word] of output.matchAll(pattern)) {
    if (word?.startsWith("passed")) counts.passed += 1;
    else if (word?.startsWith("failed")) counts.failed += 1;
    else counts.skipped += 1;
  }
  return counts;
}

/** The number that `pattern` captures where it matches last. */
function lastNumber(output: string, pattern: RegExp): number | undefined {
  const last = [...output.matchAll(pattern)].at(-1)?.[1];
  return last === undefined ? undefined : Number(last);
}
