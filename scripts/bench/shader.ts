import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runChild } from "./child.ts";

const cacheVariable = "SOFTMETAL_CACHE_DIR";

/** Processes that ask for the first pipeline of the largest shader file, with a shader cache of their own. */
export class ShaderStarts {
  readonly #root = mkdtempSync(join(tmpdir(), "metal-attention-bench-"));
  #filled: string | undefined;

  /** Milliseconds with an empty cache. */
  cold(): number {
    const folder = mkdtempSync(join(this.#root, "cache-"));
    const milliseconds = this.#firstPipeline(folder);
    this.#filled = folder;
    return milliseconds;
  }

  /** Milliseconds with a cache that a cold start has filled. */
  warm(): number {
    if (this.#filled === undefined) this.cold();
    return this.#firstPipeline(this.#filled as string);
  }

  dispose(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }

  #firstPipeline(folder: string): number {
    return Number(runChild("child-first-pipeline.ts", { [cacheVariable]: folder }));
  }
}
