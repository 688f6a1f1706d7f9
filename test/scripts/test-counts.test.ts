import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTests, failedTests, sumCounts } from "../../scripts/lib/test-counts.ts";

const bunClosing = (pass: number, fail: number, more = "", ran = pass + fail) =>
  `\nx.test.ts:\n(pass) a [0.05ms]\n\n ${pass} pass\n${more} ${fail} fail\n 9 expect() calls\nRan ${ran} tests across 2 files. [12.00ms]\n`;

const xctest = (passed: number, failed: number, executed = passed + failed) =>
  [
    "Test Suite 'All tests' started at 2026-01-01 00:00:00.000",
    ...Array.from({ length: passed }, (_, i) => `Test Case 'Layout.test${i}' passed (0.001 seconds)`),
    ...Array.from({ length: failed }, (_, i) => `Test Case 'Layout.testBad${i}' failed (0.001 seconds)`),
    `\t Executed ${executed} tests, with ${failed * 3} failures (0 unexpected) in 0.102 (0.102) seconds`,
    "",
  ].join("\n");

const swiftTesting = (passed: number, failed: number, total = passed + failed) =>
  [
    "◇ Test run started.",
    "✔ Suite Grid passed after 0.001 seconds.",
    ...Array.from({ length: passed }, (_, i) => `✔ Test fits${i}() passed after 0.001 seconds.`),
    ...Array.from({ length: failed }, (_, i) => `✘ Test bad${i}() failed after 0.001 seconds with 2 issues.`),
    `${failed ? "✘" : "✔"} Test run with ${total} tests ${failed ? "failed" : "passed"} after 0.001 seconds.`,
    "",
  ].join("\n");

describe("bun test", () => {
  test("counts come from the closing lines", () => {
    expect(countTests("bun", bunClosing(12, 0), 0)).toEqual({ passed: 12, failed: 0, problems: [] });
    expect(countTests("bun", bunClosing(10, 2), 1)).toEqual({ passed: 10, failed: 2, problems: [] });
  });

  test("one test is counted", () => {
    const output = " 1 pass\n 0 fail\n 1 expect() calls\nRan 1 test across 1 file. [2.00ms]\n";
    expect(countTests("bun", output, 0)).toEqual({ passed: 1, failed: 0, problems: [] });
  });

  test("a crash before the closing lines is a failure", () => {
    const { passed, failed, problems } = countTests("bun", "bun test v1.4.4\n\nx.test.ts:\n(pass) a\n", 139);
    expect([passed, failed]).toEqual([0, 0]);
    expect(problems).toContain("no closing line: the run did not end");
    expect(problems).toContain("no test was counted");
  });

  test("a skipped test, a test to do, and an error outside the tests are failures", () => {
    expect(countTests("bun", bunClosing(5, 0, " 1 skip\n", 6), 0).problems).toEqual(["1 tests skipped or left to do"]);
    expect(countTests("bun", bunClosing(5, 0, " 2 todo\n", 7), 0).problems).toEqual(["2 tests skipped or left to do"]);
    expect(countTests("bun", `${bunClosing(5, 1)} 1 error\n`, 1).problems).toEqual(["1 errors outside the tests"]);
  });

  test("tests without a result are a failure", () => {
    expect(countTests("bun", bunClosing(5, 0, "", 8), 0).problems).toEqual(["8 tests ran, but 5 have a result"]);
  });

  test("an exit status that contradicts the counts is a failure", () => {
    expect(countTests("bun", bunClosing(5, 0), 1).problems).toEqual(["exit status 1, though no test failed"]);
  });
});

describe("swift test", () => {
  test("XCTest and Swift Testing are added up, tests and not assertions", () => {
    const output = xctest(4, 1) + swiftTesting(6, 2);
    expect(countTests("swift", output, 1)).toEqual({ passed: 10, failed: 3, problems: [] });
  });

  test("either may be absent", () => {
    const none = "\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds\n";
    expect(countTests("swift", none + swiftTesting(6, 0), 0)).toEqual({ passed: 6, failed: 0, problems: [] });
    const noTesting = xctest(3, 0) + swiftTesting(0, 0);
    expect(countTests("swift", noTesting, 0)).toEqual({ passed: 3, failed: 0, problems: [] });
  });

  test("names with spaces, arguments and brackets are counted once", () => {
    const output = [
      "Test Case '-[SoftMetalTests.Grid testEdge]' passed (0.001 seconds).",
      "\t Executed 1 test, with 0 failures (0 unexpected) in 0.1 (0.1) seconds",
      '✔ Test "a pass that failed after commit" passed after 0.001 seconds.',
      "✔ Test rounds(value:to:) with 3 test cases passed after 0.002 seconds.",
      "✔ Test run with 2 tests in 1 suite passed after 0.003 seconds.",
    ].join("\n");
    expect(countTests("swift", output, 0)).toEqual({ passed: 3, failed: 0, problems: [] });
  });

  test("a run that ends early is a failure", () => {
    const cut = xctest(3, 0).split("\t")[0] ?? "";
    expect(countTests("swift", cut, 132).problems).toContain("XCTest has no closing line: the run did not end");
    const started = "◇ Test run started.\n✔ Test a() passed after 0.001 seconds.\n◇ Test b() started.\n";
    expect(countTests("swift", started, 132).problems).toContain(
      "Swift Testing has no closing line: the run did not end",
    );
    expect(countTests("swift", xctest(3, 0, 5), 0).problems).toEqual(["XCTest names 5 tests, but 3 have a result"]);
  });

  test("skipped tests are a failure", () => {
    const output = `${swiftTesting(2, 0, 3)}✘ Test onlyOnMac() skipped.\n`;
    expect(countTests("swift", output, 0).problems).toEqual(["Swift Testing skipped 1 tests"]);
  });

  test("a build that fails, or a package without tests, is a failure", () => {
    expect(countTests("swift", "error: no such module 'SoftMetal'\n", 1).problems).toEqual([
      "no test was counted",
      "exit status 1, though no test failed",
    ]);
    expect(countTests("swift", "", 0).problems).toEqual(["no test was counted"]);
  });
});

test("the tests that failed are named by the runner's own lines, and no others", () => {
  const ofBun =
    "(pass) a > (fail) [1.00ms]\nerror: expected\n(fail) b > c [2.00ms]\n\n1 tests failed:\n(fail) b > c [2.00ms]\n";
  expect(failedTests("bun", ofBun + bunClosing(1, 1))).toEqual(["(fail) b > c [2.00ms]"]);
  expect(failedTests("swift", xctest(2, 1) + swiftTesting(1, 1))).toEqual([
    "Test Case 'Layout.testBad0' failed (0.001 seconds)",
    "✘ Test bad0() failed after 0.001 seconds with 2 issues.",
  ]);
  expect(failedTests("status", ofBun)).toEqual([]);
});

test("a check counts as one case by its exit status", () => {
  expect(countTests("status", "anything", 0)).toEqual({ passed: 1, failed: 0, problems: [] });
  expect(countTests("status", "anything", 2)).toEqual({ passed: 0, failed: 1, problems: [] });
});

test("each problem adds a failure to the sum", () => {
  const all = [countTests("bun", bunClosing(5, 1), 1), countTests("swift", "", 1), countTests("status", "", 0)];
  expect(sumCounts(all)).toEqual({ passed: 6, failed: 3 });
});

test("the closing lines name each runner, also one whose tool is missing", () => {
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-report-"));
  try {
    writeFileSync(join(folder, "runners"), "status tsc 0\nabsent shellcheck shellcheck\nbun bun-test 1\n");
    writeFileSync(join(folder, "tsc.log"), "");
    writeFileSync(join(folder, "bun-test.log"), `(fail) b > c [2.00ms]\n${bunClosing(3, 1)}`);
    const script = join(import.meta.dir, "../../scripts/lib/test-report.ts");
    const { exitCode, stdout } = Bun.spawnSync([process.execPath, script, folder]);
    expect(stdout.toString().trim().split("\n")).toEqual([
      "tsc: 1 passed, 0 failed",
      "shellcheck: not run, shellcheck is not installed",
      "bun-test: 3 passed, 1 failed",
      "  (fail) b > c [2.00ms]",
      "4 passed, 1 failed",
    ]);
    expect(exitCode).toBe(1);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
