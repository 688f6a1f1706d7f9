import { dlopen, type FFIFunction } from "bun:ffi";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clangPath } from "../lib/clang.ts";

/** As the software device compiles shaders, as far as it matters here: no fast math, no fused multiplications. */
const options = ["-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=off", "-fPIC", "-shared"];

/** Functions in C that kernels are measured beside, compiled by the software device's compiler. */
export function compileC<Symbols extends Record<string, FFIFunction>>(source: string, symbols: Symbols) {
  const folder = mkdtempSync(join(tmpdir(), "metal-attention-bench-"));
  try {
    const input = join(folder, "plain.c");
    const output = join(folder, "plain.so");
    writeFileSync(input, source);
    const clang = clangPath();
    const { exitCode, stderr } = Bun.spawnSync([clang, ...options, input, "-o", output, "-lm"]);
    if (exitCode !== 0) throw new Error(`${clang} failed: ${stderr.toString()}`);
    return dlopen(output, symbols);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
