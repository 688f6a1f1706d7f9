import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import {
  decodeSafetensors,
  floatValues,
  type SafetensorsTensor,
  writeSafetensors,
} from "../../src/safetensors/index.ts";
import { plainEnvironment } from "../helpers/run.ts";

const script = resolve(import.meta.dir, "../../scripts/attention-layer/main.ts");
const folder = mkdtempSync(join(tmpdir(), "metal-attention-demo-"));
const limit = 60_000;
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The layer alone: what the model does has tests of its own. */
function demo(...args: string[]) {
  return whole("--layer", ...args);
}

function whole(...args: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, script, ...args], {
    cwd: folder,
    env: plainEnvironment,
  });
  return { exitCode, stdout: stdout.toString(), stderr: withoutProgress(stderr.toString()) };
}

/** On a busy machine any step may take longer than a second. */
function withoutProgress(text: string): string {
  return text.replace(/^ {4}.*: \d+ s\n/gm, "");
}

function textFile(name: string, length: number): string {
  const path = join(folder, name);
  writeFileSync(
    path,
    Uint8Array.from({ length }, (_, i) => 32 + ((i * i * 7 + i) % 90)),
  );
  return path;
}

function tensor(shape: readonly number[], value = 0.5): SafetensorsTensor {
  const length = shape.reduce((product, extent) => product * extent, 1);
  return { dtype: "F32", shape, bytes: new Uint8Array(new Float32Array(length).fill(value).buffer) };
}

async function inputFile(name: string, tensors: Record<string, SafetensorsTensor>): Promise<string> {
  const path = join(folder, name);
  await writeSafetensors(path, { tensors: new Map(Object.entries(tensors)) });
  return path;
}

/** Cells of the table's rows, by step. */
function table(stdout: string): Map<string, string[]> {
  return new Map(
    stdout.split("\n").flatMap((line) => {
      const cells = line.split(/ {2,}/);
      return cells.length === 6 && cells[0] !== undefined ? [[cells[0], cells.slice(1)] as const] : [];
    }),
  );
}

describe("a run", () => {
  test(
    "a text: the table, the checks, the results in a file that is input again",
    async () => {
      const first = join(folder, "first.safetensors");
      const run = demo(textFile("text", 70), "--output", first);
      expect(run.stderr).toBe("");
      expect(run.exitCode).toBe(0);
      const rows = table(run.stdout);
      expect(rows.get("causal prefill")?.slice(0, 2)).toEqual(["flash_attn_prefill_bf16_d256", "1"]);
      expect(rows.get("K and V into the cache")?.slice(0, 2)).toEqual(["kv_cache_copy_seq_f32_to_f16_kv_dual", "1"]);
      expect(rows.get("32 decode tokens into the ring")?.slice(0, 2)).toEqual([
        "kv_cache_copy_batch_f32_to_f16_kv_dual",
        "32",
      ]);
      expect(run.stdout.match(/: ok$/gm)).toHaveLength(3);

      const kept = decodeSafetensors(await Bun.file(first).bytes());
      expect(
        Object.fromEntries([...kept.tensors].map(([name, { dtype, shape }]) => [name, [dtype, ...shape]])),
      ).toEqual({
        q: ["F32", 1, 8, 70, 256],
        k: ["F32", 1, 4, 70, 256],
        v: ["F32", 1, 4, 70, 256],
        out: ["BF16", 1, 8, 70, 256],
        "cache.k": ["F16", 4, 70, 256],
        "cache.v": ["F16", 4, 70, 256],
        "ring.k": ["F16", 4, 1024, 256],
        "ring.v": ["F16", 4, 1024, 256],
      });
      // The first token attends itself alone, so its output is its value, rounded.
      const values = (name: string) => floatValues(kept.tensors.get(name) as SafetensorsTensor);
      const out = values("out");
      const v = values("v");
      for (let i = 0; i < 256; i++)
        expect(Math.abs((out[i] ?? 0) - (v[i] ?? 1))).toBeLessThanOrEqual(2 ** -8 * Math.abs(v[i] ?? 0));

      const second = join(folder, "second.safetensors");
      const again = demo("--input", first, "--output", second);
      expect(again.stderr).toBe("");
      expect(again.exitCode).toBe(0);
      const keptAgain = decodeSafetensors(await Bun.file(second).bytes());
      for (const name of ["q", "k", "v", "out", "cache.k", "cache.v"]) {
        expect(keptAgain.tensors.get(name)).toEqual(kept.tensors.get(name) as SafetensorsTensor);
      }
    },
    limit,
  );

  test(
    "a text longer than the ring wraps, and one longer than the prompt is cut",
    () => {
      for (const length of [1100, 3000]) {
        const run = demo(textFile("long", length));
        expect(run.exitCode).toBe(0);
        expect(run.stdout).toContain(`${Math.min(length, 2048)} of the ${length} bytes`);
        expect(run.stdout.match(/: ok$/gm)).toHaveLength(3);
      }
    },
    limit,
  );

  test.each([
    [["--dtype", "f16"], "flash_attn_prefill_f16_d256", 3],
    [["--mask", "bool"], "flash_attn_prefill_bf16_d256_boolmask", 3],
    [["--mask", "additive", "--dtype", "f16", "--chunk", "33"], "flash_attn_prefill_f16_d256", 4],
    [["--window", "20", "--chunk", "1"], "flash_attn_prefill_bf16_d256_boolmask", 4],
    [["--window", "2048", "--mask", "additive", "--chunk", "2048"], "flash_attn_prefill_bf16_d256", 4],
    [["--chunk", "64"], "flash_attn_prefill_bf16_d256", 4],
  ] as const)(
    "%p",
    (options, kernel, checks) => {
      const run = demo(textFile("options", 100), ...options);
      expect(run.stderr).toBe("");
      expect(run.exitCode).toBe(0);
      const rows = table(run.stdout);
      expect(rows.get("causal prefill")?.slice(0, 2)).toEqual([kernel, "1"]);
      expect(run.stdout.match(/: ok$/gm)).toHaveLength(checks);
      const chunkAt = (options as readonly string[]).indexOf("--chunk");
      if (chunkAt >= 0) {
        const dispatches = Number(rows.get(`prefill in chunks of ${options[chunkAt + 1]}`)?.[1]);
        const chunks = Math.ceil(100 / Number(options[chunkAt + 1]));
        // A chunk with a mask builds and classifies it first.
        expect(dispatches).toBe(chunks * (rows.has("mask and its tile classes") ? 3 : 1));
        expect(run.stdout).toContain("elements have the bits of the prompt done at once: ok");
      }
    },
    limit,
  );

  test.each([
    ["2", "hadamard_quantize_kv_seq_dense_d256", "hadamard_dequantize_kv_dense_d256", 2 + 1 / 8],
    ["3", "hadamard_quantize_kv_seq_dense_d256", "hadamard_dequantize_kv_dense_d256", 3 + 1 / 8],
    ["4", "hadamard_quantize_kv_seq_fast_d256", "hadamard_dequantize_kv_fast_d256", 4 + 1 / 8],
    ["5", "hadamard_quantize_kv_seq_dense_d256", "hadamard_dequantize_kv_dense_d256", 5 + 1 / 8],
    ["6", "hadamard_quantize_kv_seq_dense_d256", "hadamard_dequantize_kv_dense_d256", 6 + 1 / 8],
    ["8", "hadamard_quantize_kv_seq_hb_d256", "hadamard_dequantize_kv_hb_d256", 8 + 1 / 8],
    ["f16", "kv_cache_copy_seq_f32_to_f16_kv_dual", "-", 16],
    ["f32", "kv_cache_copy_seq_f32_kv_dual", "-", 32],
  ])(
    "--kv %s",
    (format, writing, reading, bitsPerValue) => {
      const run = demo(textFile("kept", 128), "--kv", format, "--mask", "bool");
      expect(run.stderr).toBe("");
      expect(run.exitCode).toBe(0);
      const rows = table(run.stdout);
      const name = format.startsWith("f") ? format : `${format} bits`;
      expect(rows.get(`K and V into ${name}`)?.[0]).toBe(writing);
      expect(rows.get(`${name} read back`)?.[0]).toBe(reading);
      expect(rows.get("prefill over what was read back")?.[0]).toBe("flash_attn_prefill_bf16_d256_boolmask");
      expect(run.stdout.match(/: ok$/gm)).toHaveLength(4);

      // 128 tokens, 4 heads of 256, K and V.
      const bytes = (bitsPerValue / 8) * 128 * 4 * 256 * 2;
      const kibibytes = (count: number) =>
        count < 2 ** 20 ? `${(count / 1024).toFixed(1)} KiB` : `${(count / 2 ** 20).toFixed(1)} MiB`;
      const saved = 2 ** 19 - bytes;
      expect(run.stdout).toContain(`K and V take ${kibibytes(bytes)}, `);
      expect(run.stdout).toContain("in f16 they take 512.0 KiB: ");
      if (saved > 0) expect(run.stdout).toContain(`: ${kibibytes(saved)} saved, `);
      const change = /NMSE of K (\S+), of V (\S+?)(?: \(.*: (\S+)\))?; of the attention output (\S+), at most (\S+) /;
      const [k, v, optimum, output, largest] = (change.exec(run.stdout) ?? []).slice(1).map(Number) as [
        number,
        number,
        number,
        number,
        number,
      ];
      if (format.startsWith("f")) {
        // What bf16 rounds anyway.
        expect(Math.max(k, v)).toBeLessThan(1e-5);
        expect(output).toBeLessThan(1e-5);
      } else {
        // A kept text of few distinct bytes is not quite Gaussian.
        expect(Math.max(k, v)).toBeLessThan(1.2 * optimum + 3e-6);
        expect(output).toBeWithin(0.2 * optimum, 2 * optimum);
        expect(largest).toBeGreaterThan(0);
      }
    },
    limit,
  );

  test(
    "a single byte",
    () => {
      expect(demo(textFile("byte", 1)).exitCode).toBe(0);
    },
    limit,
  );

  test(
    "--help",
    () => {
      const { exitCode, stdout } = demo("--help");
      expect(exitCode).toBe(0);
      for (const part of [
        "usage: metal-attention demo",
        "--input",
        "--output",
        "2,048",
        "1,024",
        "--cache",
        "--questions",
        "--layer",
      ])
        expect(stdout).toContain(part);
    },
    limit,
  );
});

describe("the model", () => {
  const readme = resolve(import.meta.dir, "../../README.md");
  const license = resolve(import.meta.dir, "../../LICENSE");
  const rightOf = (stdout: string) => Number(/^(\d+) of \d+ answers right/m.exec(stdout)?.[1]);

  test.each([
    ["README.md, k8v4", [readme], 8, 7],
    ["a short text, f16", [license, "--cache", "f16"], 8, 7],
    ["more questions than usual, bf16", [license, "--cache", "bf16", "--questions", "16"], 16, 15],
    ["one question", [license, "--questions", "1"], 1, 1],
  ] as const)(
    "finds the facts: %s",
    (_, args, questions, atLeast) => {
      const { exitCode, stdout, stderr } = whole(...args);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
      expect(stdout.match(/^Q {2}.*\?$/gm)).toHaveLength(questions);
      expect(stdout.match(/^A {2}.+ {2}\((right|wrong, it was \w+); \d+ tokens back\)$/gm)).toHaveLength(questions);
      expect(rightOf(stdout)).toBeGreaterThanOrEqual(atLeast);
      // The layer's table follows.
      expect(table(stdout).get("causal prefill")?.[1]).toBe("1");
    },
    60_000,
  );

  test("answers as the README shows", async () => {
    const sample = /Of `scripts\/demo LICENSE`:\n\n```\n(.*?)```/s.exec(await Bun.file(readme).text())?.[1] as string;
    expect(sample).toStartWith("Q  ");
    expect(whole(license).stdout).toContain(sample);
  }, 60_000);

  test("does not find them in a cache that kept too little", () => {
    expect(rightOf(whole(readme, "--cache", "k2v2").stdout)).toBeLessThan(5);
  }, 60_000);

  test("reads bytes of every kind", () => {
    const path = join(folder, "bytes");
    writeFileSync(
      path,
      Uint8Array.from({ length: 3000 }, (_, i) => i % 256),
    );
    for (const file of [path, textFile("one", 1)]) {
      expect(whole(file).stdout).toMatch(/^\d of 8 answers right/m);
    }
  }, 60_000);
});

describe("what it refuses, in one line", () => {
  const q = tensor([8, 5, 256]);
  const k = tensor([4, 5, 256]);
  const files: [what: string, tensors: Record<string, SafetensorsTensor>, ...parts: string[]][] = [
    ["no v", { q, k }, "no tensor v", "k, q"],
    ["another head size", { q: tensor([8, 5, 128]), k, v: k }, "q is [8,5,128]", "256"],
    ["two axes", { q: tensor([5, 256]), k, v: k }, "q is [5,256]", "[heads, tokens, 256]"],
    ["a batch of 2", { q: tensor([2, 8, 5, 256]), k, v: k }, "q is [2,8,5,256]"],
    ["v unlike k", { q, k, v: tensor([2, 5, 256]) }, "v is [2,5,256]", "[4, 5, 256]"],
    ["k shorter than q", { q, k: tensor([4, 3, 256]), v: k }, "k is [4,3,256]", "[4, 5, 256]"],
    ["heads that do not divide", { q, k: tensor([3, 5, 256]), v: tensor([3, 5, 256]) }, "3 heads of k", "8 heads of q"],
    ["too many tokens", { q: tensor([1, 2049, 256]), k, v: k }, "2049", "2048"],
    ["no tokens", { q: tensor([8, 0, 256]), k, v: k }, "[8,0,256]", "1 to 2048"],
    ["integers", { q: { ...q, dtype: "I32" }, k, v: k }, "I32", "BF16"],
    ["a NaN", { q, k, v: tensor([4, 5, 256], Number.NaN) }, "v holds NaN"],
  ];
  test.each(files)(
    "a file with %s",
    async (_, tensors, ...parts) => {
      expectRefusal(["--input", await inputFile("bad.safetensors", tensors)], ...parts, "bad.safetensors");
    },
    limit,
  );

  test(
    "files that are not there, empty or something else",
    () => {
      expectRefusal(["none.txt"], "none.txt");
      expectRefusal(["--input", "none.safetensors"], "none.safetensors");
      expectRefusal([textFile("empty", 0)], "empty");
      expectRefusal([folder], folder.slice(-10));
      expectRefusal(["--input", textFile("text.safetensors", 100)], "text.safetensors");
    },
    limit,
  );

  test(
    "a command line that makes no sense",
    () => {
      expectWrongUsage(["--what"], "--what");
      expectWrongUsage(["--dtype", "f32"], "--dtype", "f32", "bf16, f16");
      expectWrongUsage(["--kv", "7"], "--kv", '"7"', "2, 3, 4, 5, 6, 8, f16, f32");
      expectWrongUsage(["--mask", "causal"], "--mask", "causal", "none, additive, bool");
      expectWrongUsage(["--window", "4", "--mask", "none"], "--window", "--mask bool");
      for (const option of ["--window", "--chunk"]) {
        for (const value of ["0", "1.5", "2049", "x", ""])
          expectWrongUsage([option, value], option, `"${value}"`, "1 to 2048");
      }
      expectWrongUsage(["--cache", "k7v4"], "--cache", "k7v4", "k8v4");
      for (const value of ["0", "17", "x"]) expectWrongUsage(["--questions", value], "--questions", value, "1 to 16");
      expectWrongUsage(["a", "b"], '"b"');
      expectWrongUsage(["a", "--input", "b"], "--input");
      expectWrongUsage(["--output"], "--output");
    },
    limit,
  );

  /** One line on standard error (a file format's reason may take more), no stack, status 1. */
  function expectRefusal(args: readonly string[], ...parts: string[]): void {
    expectStatus(1, args, ...parts);
  }

  /** The same with status 2, and where to read more. */
  function expectWrongUsage(args: readonly string[], ...parts: string[]): void {
    expectStatus(2, args, "See demo --help.", ...parts);
  }

  function expectStatus(status: number, args: readonly string[], ...parts: string[]): void {
    const { exitCode, stdout, stderr } = whole(...args);
    expect(stdout).toBe("");
    expect(stderr).toStartWith("demo: ");
    expect(stderr).not.toMatch(/^\s+at |node:internal|\.ts:\d+/m);
    for (const part of parts) expect(stderr).toContain(part);
    expect(exitCode).toBe(status);
  }
});
