/** What all programs do alike: `--version`, the status of wrong usage, and folders that results go to. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json";
import { abiVersion } from "../../src/ffi/generated/symbols.ts";
import { run } from "../helpers/run.ts";

const root = resolve(import.meta.dir, "../..");
const folder = mkdtempSync(join(tmpdir(), "metal-attention-programs-"));
afterAll(() => rmSync(folder, { recursive: true }));

const bun = (path: string, ...args: string[]) => [process.execPath, join(root, path), ...args];
const programs: [name: string, command: string[]][] = [
  ["metal-attention", bun("scripts/metal-attention.ts")],
  ["metal-attention-fixtures", bun("scripts/metal-attention-fixtures.ts")],
  ["bench", bun("scripts/metal-attention.ts", "bench")],
  ["demo", bun("scripts/metal-attention.ts", "demo")],
  ["report", bun("scripts/metal-attention.ts", "report")],
  ["quantization", bun("scripts/metal-attention.ts", "quantization")],
  ["metal-attention-tool", [join(root, "build/bin/metal-attention-tool")]],
];

describe.each(programs)("%s", (name, command) => {
  test("--version", async () => {
    const { status, output, errors } = await run([...command, "--version"]);
    const abi = name === "metal-attention-tool" ? ` (ABI version ${abiVersion})` : "";
    expect({ status, output, errors }).toEqual({
      status: 0,
      output: `${name} ${manifest.version}${abi}\n`,
      errors: "",
    });
  });

  test("an option that does not exist: status 2, nothing on standard output", async () => {
    const { status, output, errors } = await run([...command, "--frobnicate"]);
    expect({ status, output }).toEqual({ status: 2, output: "" });
    expect(errors).toContain("frobnicate");
  });
});

test.each([
  ["metal-attention.ts doctor", "metal-attention"],
  ["metal-attention.ts bench --quick", "bench"],
  ["metal-attention-fixtures.ts list", "metal-attention-fixtures"],
  ["metal-attention-fixtures.ts verify x", "metal-attention-fixtures"],
])("%s --version", async (command, name) => {
  const { status, output, errors } = await run(bun(...(`scripts/${command} --version`.split(" ") as [string])));
  expect({ status, output, errors }).toEqual({ status: 0, output: `${name} ${manifest.version}\n`, errors: "" });
});

test.each(["setup", "test", "package"])("scripts/%s refuses what it does not know with status 2", async (name) => {
  const { status, output, errors } = await run([join(root, "scripts", name), "--frobnicate"]);
  expect({ status, output }).toEqual({ status: 2, output: "" });
  expect(errors).toStartWith("usage: ");
});

describe("a report", () => {
  test.each(["x.txt", "x", "x.json.txt"])("of no known format is refused before the work: %s", async (file) => {
    const { status, output, errors } = await run(
      bun("scripts/metal-attention.ts", "doctor", "--report", join(folder, file)),
    );
    expect({ status, output }).toEqual({ status: 2, output: "" });
    expect(errors).toContain(".json or .md");
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("a folder that is missing is made, with a word", () => {
  const outputs: [what: string, path: string, command: (path: string) => string[]][] = [
    [
      "fixtures",
      "a/b",
      (path) => ["metal-attention-fixtures.ts", "generate", "--case", "kvCacheCopy.f32-ring", "--out", path],
    ],
    ["demo", "c/d/out.safetensors", (path) => ["metal-attention.ts", "demo", "--layer", "--output", path]],
    [
      "bench",
      "e/f/out.json",
      (path) => ["metal-attention.ts", "bench", "--quick", "--only", "op-host-cost", "--json", path],
    ],
    ["doctor", "g/h/report.md", (path) => ["metal-attention.ts", "doctor", "--report", path]],
    ["report", "i/j", (path) => ["metal-attention.ts", "report", "--formats", "k8v4", "--texts", "1", "--out", path]],
    ["quantization", "k/l", (path) => ["metal-attention.ts", "quantization", "--out", path]],
  ];
  test.each(outputs)(
    "%s",
    async (_, path, command) => {
      const target = join(folder, path);
      const [script = "", ...args] = command(target);
      const { status, output } = await run(bun(`scripts/${script}`, ...args));
      const made = /^the folder (.*) is made$/m.exec(output)?.[1];
      expect({ status, made }).toEqual({ status: 0, made: path.includes(".") ? join(target, "..") : target });
      expect(existsSync(target)).toBe(true);
    },
    300_000,
  );

  test.each([
    ["metal-attention-fixtures.ts", "generate", "--out"],
    ["metal-attention.ts", "doctor", "--report"],
    ["metal-attention.ts", "bench", "--json"],
    ["metal-attention.ts", "demo", "--output"],
  ])("%s %s: an empty name is refused before the work", async (script, command, option) => {
    const { status, output, errors } = await run(bun(`scripts/${script}`, command, option, ""));
    expect({ status, output }).toEqual({ status: 2, output: "" });
    expect(errors).toContain(option);
  });

  test("a file where the folder of fixtures should go is refused", async () => {
    const file = join(folder, "in-the-way");
    writeFileSync(file, "");
    for (const out of [file, join(file, "below")]) {
      const { status, output, errors } = await run(
        bun("scripts/metal-attention-fixtures.ts", "generate", "--out", out),
      );
      expect({ status, output }).toEqual({ status: 1, output: "" });
      expect(errors).toContain("in-the-way");
    }
  });

  test("a folder where a file should go is refused before the work", async () => {
    for (const args of [
      ["demo", "--output", folder],
      ["bench", "--json", folder],
    ]) {
      const { status, output, errors } = await run(bun("scripts/metal-attention.ts", ...args));
      expect({ status, output }).toEqual({ status: 2, output: "" });
      expect(errors).toContain("is a folder; name a file");
    }
  });
});
