/**
 * Kernels whose frames take many pages. LLVM 19 touches these one after another with a register as the counter, and
 * overwrites what is in it where it has computed something before it makes the frame.
 */
import { afterAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clangPath } from "../../scripts/lib/clang.ts";
import { runChecked } from "../helpers/run.ts";

const tool = join(import.meta.dir, "../../build/bin/metal-attention-tool");
const folder = mkdtempSync(join(tmpdir(), "metal-attention-frames-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** 400 words a thread, 50 KiB a SIMD group, and positions that need divisions. */
const source = `#include <metal_stdlib>
using namespace metal;
kernel void large_frame(device uint *out [[buffer(0)]], const device uint *in [[buffer(1)]],
                        uint3 p [[thread_position_in_grid]], uint3 size [[threads_per_grid]]) {
  const uint at = (p.z * size.y + p.y) * size.x + p.x;
  uint a[400];
  for (uint i = 0; i < 400; i++) { a[i] = in[(i * 7 + at) % 64] + i; }
  uint s = 0;
  for (uint i = 0; i < 64; i++) { s += a[(in[i] * 31 + s) % 400]; }
  out[at] = simd_sum(s) + s;
}
`;

if (process.platform === "linux" && process.arch === "x64")
  test("a large frame is made before anything else", async () => {
    const [clang, code, file] = [join(folder, "clang"), join(folder, "code.s"), join(folder, "frame.metal")];
    // The compiler, which leaves the code as text as well.
    const again = `case "$*" in *lowered.cpp*-c) '${clangPath()}' "$@" -S -o '${code}' ;; esac`;
    writeFileSync(clang, `#!/bin/sh\n${again}\nexec '${clangPath()}' "$@"\n`);
    chmodSync(clang, 0o755);
    writeFileSync(file, source);
    const env = { ...process.env, SOFTMETAL_CLANG: clang, SOFTMETAL_CACHE_DIR: join(folder, "cache") };
    await runChecked([tool, "compile", file], { env });
    const bodies = readFileSync(code, "utf8").split(/^(?=\S+\.(?:regular|general)"?:)/m);
    const frames = bodies.filter((body) => /movq\s+%rsp, %r11/.test(body));
    expect(frames.length).toBeGreaterThan(0);
    for (const body of frames) {
      const [before] = body.split(/movq\s+%rsp, %r11/);
      expect(before).not.toMatch(/\bdivl\b|^\s+j\w+\s/m);
    }
  }, 120_000);
