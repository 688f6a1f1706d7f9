/** What the report on cache formats advises, and its command. */
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { advice } from "../../scripts/report/advice.ts";
import type { Measured } from "../../scripts/report/measure.ts";
import { run } from "../helpers/run.ts";

const row = (
  format: string,
  bitsPerValue: number,
  perplexity: number,
  agreement: number,
  recallOfAll: number,
): Measured => ({
  format,
  bitsPerValue,
  perplexity,
  agreement,
  recallOfAll,
  recall: [],
  tokensPerSecond: 1,
});

describe("advice", () => {
  const advised = (...rows: Measured[]) =>
    [...advice(rows, 1000).matchAll(/: (\w+) \(([\d.]+) bits a value, ([\d.]+) times smaller/g)].map(
      ([, ...parts]) => parts,
    );
  const wide = row("f16", 16, 2, 1, 0.99);

  test("the fewest bits among those that lose next to nothing; fewer yet among those that recall as much", () => {
    const good = row("k8v4", 6.5, 2.01, 0.99, 0.985);
    const alike = row("k8v8", 8.5, 2, 1, 0.99);
    const finds = row("k4v4", 4.5, 2.2, 0.95, 0.981);
    const loses = row("k2v2", 2.5, 2, 1, 0.97);
    expect(advised(wide, loses, finds, good, alike)).toEqual([
      ["k8v4", "6.50", "2.46"],
      ["k4v4", "4.50", "3.56"],
    ]);
  });

  test.each([
    ["perplexity", row("k8v4", 6.5, 2.03, 0.99, 0.99)],
    ["agreement", row("k8v4", 6.5, 2, 0.97, 0.99)],
    ["recall", row("k8v4", 6.5, 2, 0.99, 0.97)],
  ])("a format that loses by %s alone is not called safe", (_, bad) => {
    expect(advised(wide, bad)[0]?.[0]).toBe("f16");
  });
});

describe("the command", () => {
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-report-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  const report = (...args: string[]) =>
    run([process.execPath, resolve(import.meta.dir, "../../scripts/report/main.ts"), ...args]);

  test("prints a row for each format, what follows, and draws it", async () => {
    const { status, output } = await report("--formats", "k4v4,f16,k4v4", "--texts", "1", "--out", folder);
    expect(status).toBe(0);
    expect([...output.matchAll(/^(\w+) +\d+\.\d\d +\d\.\d{4} +/gm)].map(([, format]) => format)).toEqual([
      "f32",
      "f16",
      "k4v4",
    ]);
    expect(output).toContain("24 questions");
    expect(output).toContain("The smallest cache that changes next to nothing");
    expect(output).toContain("Published figures");
    const chart = readFileSync(join(folder, "cache-formats.svg"), "utf8");
    for (const name of ["facts recalled", "same next byte as with f32"]) expect(chart).toContain(`>${name}</text>`);
  }, 120_000);

  test.each([
    [["--formats", "k9v9"], "k9v9"],
    [["--formats", ""], '""'],
    [["--texts", "0"], "--texts"],
    [["--texts", "1.5"], "--texts"],
    [["a"], "options alone"],
  ])("%p is refused", async (args, part) => {
    const { status, output, errors } = await report(...args);
    expect({ status, output }).toEqual({ status: 2, output: "" });
    expect(errors).toContain(part);
  });
});
