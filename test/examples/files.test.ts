/** The examples to copy: each runs, checks itself, and prints what it shows. */
import { afterAll, expect, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { hasPlatformPackage, libraryFile, platformPackage } from "../../src/ffi/platformPackage.ts";
import { run } from "../helpers/run.ts";

const root = resolve(import.meta.dir, "../..");
const folder = join(root, "examples");
const names = readdirSync(folder)
  .filter((name) => name.endsWith(".ts"))
  .sort();
const scratch = mkdtempSync(join(tmpdir(), "metal-attention-examples-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** What each prints that its own checks are about. */
const shown: Readonly<Record<string, string>> = {
  "decode-loop.ts": "metal-bun.met|al-bun.metal-bun.\n",
  "own-kernel.ts": "row 3: mean square 1.0000\n",
  "profile.ts": "flash_attn_prefill_bf16_d64: ",
  "quantized-cache.ts": "squared error",
  "ragged-batch.ts": "prompt 2, tokens 4 to 8: [ 4, 4.5, 5, 5.5, 6 ]\n",
  "ring.ts": "after 100 tokens: the mean of 96 to 99 is 97.5, ",
  "server.ts": "lab.lab.l|ab.lab.lab.lab.la\n",
  "shared-prefix.ts": "all three: 5 pages, not 11\n",
  "sliding-window.ts": "[ 0, 0.5, 1, 2, 3, 4, 5, 6 ]\n",
  "speculative.ts": "draft 4 behind [0,3]: 15.7143, ",
};

test("there are twelve, of at most 80 lines each, and the page names them", () => {
  expect(names).toEqual([...Object.keys(shown), "compile.ts", "own.test.ts"].sort());
  const lines = names.map((name) => readFileSync(join(folder, name), "utf8").trimEnd().split("\n").length);
  expect(Math.max(...lines)).toBeLessThanOrEqual(80);
  const page = readFileSync(join(root, "docs/examples.md"), "utf8");
  expect(names.filter((name) => !page.includes(`[${name}](../examples/${name})`))).toEqual([]);
});

test("each runs, and prints what it shows", async () => {
  const files = Object.keys(shown).map((name) => join(folder, name));
  const child = [process.execPath, join(import.meta.dir, "run-child.ts"), ...files];
  const { status, output, errors } = await run(child, { cwd: scratch, env: process.env });
  expect({ status, errors }).toEqual({ status: 0, errors: "" });
  const parts = new Map(
    output
      .split(/^== /m)
      .slice(1)
      .map((part) => [part.slice(folder.length + 1, part.indexOf("\n")), part]),
  );
  expect(Object.entries(shown).filter(([name, text]) => !parts.get(name)?.includes(text))).toEqual([]);
}, 120_000);

test("the tests of one's own project run", async () => {
  const { status, errors } = await run([process.execPath, "test", join(folder, "own.test.ts")], {
    cwd: root,
    env: { ...process.env, SOFTMETAL_GUARD: "1" },
  });
  expect({ status, errors }).toEqual({ status: 0, errors: expect.stringContaining(" 2 pass\n 0 fail\n") });
}, 60_000);

test.if(hasPlatformPackage)(
  "the compiled program runs alone",
  async () => {
    // The platform package as scripts/package makes it, but for the kernels compiled ahead.
    const modules = join(scratch, "node_modules");
    const library = join(modules, platformPackage, "lib", libraryFile);
    mkdirSync(join(modules, platformPackage, "lib"), { recursive: true });
    cpSync(join(root, "build/lib", libraryFile), library);
    writeFileSync(
      join(modules, platformPackage, "files.js"),
      `import library from "./lib/${libraryFile}" with { type: "file" };
       export const files = { library: new URL(library, import.meta.url) };`,
    );
    symlinkSync(root, join(modules, "metal-attention"));
    const source = readFileSync(join(folder, "compile.ts"), "utf8");
    writeFileSync(join(scratch, "compile.ts"), source.replace("metal-attention-linux-x64/", `${platformPackage}/`));
    const command = /bun (build .*) && \.\/program$/m.exec(source)?.[1] ?? "";
    const built = await run([process.execPath, ...command.split(" ")], { cwd: scratch, env: process.env });
    expect(built).toMatchObject({ status: 0 });
    rmSync(modules, { recursive: true });
    const { status, output, errors } = await run([join(scratch, "program")], { cwd: scratch, env: process.env });
    expect({ status, errors }).toEqual({ status: 0, errors: "" });
    expect(output).toEndWith(": 0 0 0 0 1 2 3 4 5 6 7 8 0 0 0 0\n");
  },
  60_000,
);
