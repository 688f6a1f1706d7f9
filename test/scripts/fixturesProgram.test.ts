/** metal-attention-fixtures as it is called. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { encodeFixture } from "../../scripts/fixtures/file.ts";
import { readFixture, readManifest } from "../../scripts/fixtures/manifest.ts";
import { plainEnvironment } from "../helpers/run.ts";

const program = resolve(import.meta.dir, "../../scripts/metal-attention-fixtures.ts");
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "metal-attention-fixtures-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(...args: string[]): { exitCode: number; stdout: string; stderr: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, program, ...args], { env: plainEnvironment });
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

describe("the program", () => {
  test("has help, of each command too", () => {
    for (const args of [["--help"], ["generate", "--help"], ["verify", "--help"], ["list", "--help"]]) {
      const { exitCode, stdout } = run(...args);
      expect([args, exitCode]).toEqual([args, 0]);
      expect(stdout).toStartWith("usage: metal-attention-fixtures");
    }
  });

  const mistakes: [args: string[], part: string][] = [
    [[], "no command"],
    [["frobnicate"], '"frobnicate"'],
    [["verify"], "expected DIR"],
    [["verify", "a", "b"], "expected DIR"],
    [["generate"], "--out"],
    [["generate", "--out", "/tmp/x", "--seed", "-1"], "--seed"],
    [["generate", "--out", "/tmp/x", "--seed=1.5"], "--seed"],
    [["generate", "--out", "/tmp/x", "--seed", "4294967296"], "--seed"],
    [["generate", "--out", "/tmp/x", "--op", "nothing"], '"nothing"'],
    [["list", "--case", "nothing*"], "no case"],
    [["list", "--frobnicate"], "--frobnicate"],
  ];
  test.each(mistakes)("%p is a mistake in the arguments: status 2", (args, part) => {
    const { exitCode, stderr } = run(...args);
    expect(stderr).toContain(part);
    expect(exitCode).toBe(2);
  });

  /** Changes an expected element in a folder of fixtures, and the manifest's hash with it. */
  function plantMistake(out: string, name: string): { undo(): void } {
    const manifest = readManifest(out);
    const entry = manifest.cases.find((each) => each.name === name);
    if (entry === undefined) throw new Error(`no case ${name}`);
    const fixture = readFixture(out, entry);
    const cache = fixture.expected.get("cache");
    if (cache === undefined) throw new Error(`${name} has no cache`);
    const bytes = cache.bytes.map((byte, i) => (i === 0 ? byte ^ 1 : byte));
    const file = encodeFixture({ ...fixture, expected: new Map([["cache", { ...cache, bytes }]]) });
    const sha256 = new Bun.CryptoHasher("sha256").update(file).digest("hex");
    const changed = manifest.cases.map((each) => (each === entry ? { ...each, sha256 } : each));
    writeFileSync(join(out, entry.file), file);
    writeFileSync(join(out, "manifest.json"), JSON.stringify({ ...manifest, cases: changed }));
    return {
      undo() {
        writeFileSync(join(out, entry.file), encodeFixture(fixture));
        writeFileSync(join(out, "manifest.json"), JSON.stringify(manifest));
      },
    };
  }

  test("shows names out of a hostile manifest without what a terminal obeys", () => {
    const out = join(folder, "hostile");
    expect(run("generate", "--out", out, "--case", "kvCacheCopy.f32-ring").exitCode).toBe(0);
    const path = join(out, "manifest.json");
    const text = readFileSync(path, "utf8");
    writeFileSync(path, text.replace('"name": "kvCacheCopy.f32-ring"', '"name": "a\\u001b[2J\\nright  b"'));
    const named = run("verify", out);
    expect(named.stdout).toStartWith("WRONG  a?[2J\n    right  b: ");
    writeFileSync(path, text.replace('"seed"', '"\\u001b]0;"'));
    expect(run("verify", out).stderr).toMatch(/^[^\p{Cc}]+\n$/u);
  });

  test("generates, lists and verifies; a wrong fixture makes the status 1", () => {
    const out = join(folder, "generated");
    const args = ["--op", "kvCacheCopy", "--op", "buildCausalMask"];
    const made = run("generate", "--out", out, "--seed", "9", ...args);
    expect([made.exitCode, made.stderr]).toEqual([0, ""]);
    expect(made.stdout).toContain("12 fixtures");
    const listed = run("list", ...args).stdout;
    const entries = readManifest(out).cases;
    for (const { name } of entries) expect(listed).toContain(name);
    expect(listed).toContain("12 cases");

    const right = run("verify", out);
    expect([right.exitCode, right.stderr]).toEqual([0, ""]);
    expect(right.stdout).toContain("12 right, 0 wrong");

    const again = run("generate", "--out", out);
    expect(again.exitCode).toBe(1);
    expect(again.stderr).toContain("not empty");

    const [first, second] = entries;
    if (first === undefined || second === undefined) throw new Error("no entries");
    const planted = plantMistake(out, second.name);
    const mistaken = run("verify", out, "--op", "kvCacheCopy");
    expect([mistaken.exitCode, mistaken.stdout]).toEqual([1, expect.stringContaining("5 right, 1 wrong")]);
    expect(mistaken.stdout).toContain(`WRONG  ${second.name}: cache: element 0 is`);
    planted.undo();

    writeFileSync(join(out, first.file), "damaged");
    const wrong = run("verify", out);
    expect(wrong.exitCode).toBe(1);
    expect(wrong.stdout).toContain(`WRONG  ${first.name}: `);
    expect(wrong.stdout).toContain("11 right, 1 wrong");
  }, 60_000);
});
