import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { randomModels } from "./architectures.ts";
import { folderOf, folderWith } from "./models.ts";

const root = resolve(import.meta.dir, "../../..");
const [name = ""] = Object.keys(randomModels);
const command = (...args: string[]) => [process.execPath, "examples/llama", ...args];

function run(...args: string[]): { status: number; out: string; log: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(command(...args), { cwd: root });
  return { status: exitCode, out: stdout.toString(), log: stderr.toString() };
}

test("continues a text, says how fast and with how much memory, and writes a trace", () => {
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-trace-"));
  try {
    const trace = join(folder, "trace.json");
    const model = folderWith(name, { eos_token_id: null });
    const usual = [model, "the end of the line", "--max-tokens", "30", "--temperature", "0.8", "--top-p", "0.9"];
    const { status, out, log } = run(...usual, "--seed", "3", "--profile", trace);
    expect([status, log]).toEqual([0, log]);
    expect(out.length).toBeGreaterThan(10);
    for (const part of ["weights [####", "prompt  [####", "tokens/s", "cache (k8v4)", "activations"]) {
      expect(log).toContain(part);
    }
    expect(existsSync(trace)).toBeTrue();
    expect(run(...usual, "--seed", "3").out).toBe(out);
    expect(run(...usual, "--seed", "4").out).not.toBe(out);
    expect(run(...usual, "--seed", "3", "--cache", "f16", "--window", "20").status).toBe(0);
    expect(run(...usual, "--chat").status).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("says what is wrong, and with what status", () => {
  const folder = folderOf(name);
  const cases: [args: string[], status: number, part: string][] = [
    [["--help"], 0, ""],
    [[], 2, "MODEL_DIR"],
    [[folder, "a", "b"], 2, "3 arguments"],
    [[folder, "a", "--temperature", "-1"], 2, "--temperature"],
    [[folder, "a", "--top-p", "0"], 2, "--top-p"],
    [[folder, "a", "--max-tokens", "1.5"], 2, "--max-tokens"],
    [[folder, "a", "--cache", "k9v9"], 2, "k8v4"],
    [[folder, "a", "--unheard"], 2, "unheard"],
    [[folder, ""], 2, "no tokens"],
    [[folder, "a b c d e f", "--context", "5"], 2, "--context is 5"],
    [[folderWith(name, { architectures: ["Unheard"] }), "a"], 1, "Unheard"],
    [[join(folder, "missing"), "a"], 1, "missing"],
  ];
  for (const [args, expected, part] of cases) {
    const { status, log } = run(...args);
    expect([args.slice(1), status]).toEqual([args.slice(1), expected]);
    expect(log).toContain(part);
    expect(log).not.toContain("    at ");
  }
});

test("Ctrl-C ends the text where it is, with status 130", async () => {
  const model = folderWith(name, { eos_token_id: null, max_position_embeddings: 100_000 });
  const child = Bun.spawn(command(model, "the", "--max-tokens", "90000", "--context", "100000"), {
    cwd: root,
    stdout: "pipe",
    stderr: "pipe",
  });
  const reader = child.stdout.getReader();
  await reader.read();
  child.kill("SIGINT");
  while (!(await reader.read()).done);
  expect(await child.exited).toBe(130);
  expect(await new Response(child.stderr).text()).toContain("tokens/s");
});
