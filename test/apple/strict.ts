import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clangPath } from "../../scripts/lib/clang.ts";
import { libraryVariable } from "../../src/ffi/library.ts";
import type { PipelineOptions } from "../../src/index.ts";
import { runChecked } from "../helpers/run.ts";

/** What to compile: kernels by name, with their constants; `source` is registered first. */
export interface Job {
  readonly kernels: readonly string[];
  readonly constants: NonNullable<PipelineOptions["constants"]>;
  readonly source?: string;
}

const flags = [
  ...["-Wall", "-Wextra", "-Wshadow", "-Wsign-compare", "-Wdouble-promotion", "-Werror"],
  // No extension of clang, and nothing of C++17: MSL 3.1 is C++14.
  ...["-Wpedantic", "-Wpre-c++17-compat"],
  "-Wno-c11-extensions", // what SoftMetal itself makes of an assignment
  "-Wno-gnu-line-marker", // and of macros with kernels in them
  "-Wno-unknown-warning-option", // an older clang lacks the next
  "-Wno-invalid-feature-combination", // about the processor, not about the shader
];

/** Compiles with every warning an error, in a process of its own; what came of each kernel. */
export async function compileStrictly(job: Job): Promise<Record<string, string>> {
  const clang = clangPath();
  const work = mkdtempSync(join(tmpdir(), "metal-attention-strict-"));
  try {
    const strict = join(work, "clang");
    writeFileSync(strict, `#!/bin/sh\nexec '${clang}' "$@" ${flags.join(" ")}\n`);
    chmodSync(strict, 0o755);
    const command = [process.execPath, join(import.meta.dir, "strict-child.ts"), JSON.stringify(job)];
    return JSON.parse(
      await runChecked(command, {
        env: {
          ...process.env,
          // The checkout's library: another may have kernels that were compiled before, and not strictly.
          [libraryVariable]: undefined,
          SOFTMETAL_CLANG: strict,
          SOFTMETAL_CACHE_DIR: join(work, "cache"),
        },
      }),
    );
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
