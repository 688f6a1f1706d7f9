/** The package's programs, as they are in an installed package: nothing but its own files, zod and the library. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { libraryVariable } from "../../src/ffi/library.ts";
import { libraryFile } from "../../src/ffi/platformPackage.ts";

const root = resolve(import.meta.dir, "../..");
const library = process.env[libraryVariable] ?? join(root, "build/lib", libraryFile);
let project = "";

function run(command: readonly string[], cwd: string) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([...command], {
    cwd,
    // A program begins with `#!/usr/bin/env bun`, so Bun is on the PATH of whoever runs it.
    env: { ...process.env, PATH: `${project}:${process.env["PATH"]}`, [libraryVariable]: library },
  });
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), "metal-attention-programs-"));
  const modules = join(project, "node_modules");
  symlinkSync(process.execPath, join(project, "bun"));
  mkdirSync(join(modules, ".bin"), { recursive: true });
  const packed = run([process.execPath, "pm", "pack", "--destination", project, "--ignore-scripts", "--quiet"], root);
  expect(packed.exitCode).toBe(0);
  const archive = packed.stdout.trim().split("\n").at(-1) ?? "";
  expect(run(["tar", "-xzf", archive, "-C", modules], project).exitCode).toBe(0);
  expect(run(["mv", "package", "metal-attention"], modules).exitCode).toBe(0);
  symlinkSync(join(root, "node_modules/zod"), join(modules, "zod"));
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** Links a program as an installer does, and runs it as `bunx NAME` does where the package is installed. */
async function program(name: string, ...args: string[]) {
  const installed = join(project, "node_modules/metal-attention");
  const { bin } = (await Bun.file(join(installed, "package.json")).json()) as { bin: Record<string, string> };
  const link = join(project, "node_modules/.bin", name);
  if (!existsSync(link)) symlinkSync(join("../metal-attention", bin[name] ?? "missing"), link);
  expect(readlinkSync(link)).toStartWith("../metal-attention/");
  return run([process.execPath, "x", "--no-install", name, ...args], project);
}

test("metal-attention-fixtures writes fixtures and verifies them", async () => {
  const made = await program("metal-attention-fixtures", "generate", "--out", "fixtures", "--op", "kvCacheCopySeq");
  expect(made).toEqual({ exitCode: 0, stdout: expect.stringContaining("manifest.json in fixtures"), stderr: "" });
  const verified = await program("metal-attention-fixtures", "verify", "fixtures");
  expect(verified).toEqual({ exitCode: 0, stdout: expect.stringContaining("0 wrong"), stderr: "" });
}, 60_000);

test("metal-attention doctor finds all well", async () => {
  const { exitCode, stdout } = await program("metal-attention", "doctor", "--report", "doctor.json");
  expect(stdout).toContain("all is well");
  expect(exitCode).toBe(0);
  expect(await Bun.file(join(project, "doctor.json")).text()).not.toContain(project);
}, 300_000);

test("metal-attention bench runs a benchmark", async () => {
  const ended = await program("metal-attention", "bench", "--quick", "--only", "op-host-cost");
  // With what it said where it failed.
  expect(ended).toEqual({ exitCode: 0, stdout: expect.stringContaining("op-host-cost"), stderr: expect.any(String) });
}, 120_000);

test("metal-attention bench --peers says what it lacks before it measures anything", async () => {
  const { exitCode, stdout, stderr } = await program("metal-attention", "bench", "--peers");
  expect([exitCode, stdout]).toEqual([1, ""]);
  expect(stderr).toContain("needs the development dependencies onnxruntime-node and echarts");
});
