import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Outcome, run } from "../helpers/run.ts";
import type { Registry } from "./registry.ts";

/** An empty project of a user without Swift, without clang, and with nothing in any cache. */
export class Project implements Disposable {
  readonly folder: string;
  /** Where the package is once it is installed. */
  readonly installed: string;
  readonly #home: string;
  readonly #programs: string;

  constructor(registry: Registry) {
    const parent = mkdtempSync(join(tmpdir(), "metal-attention-package-"));
    this.folder = join(parent, "project");
    this.installed = join(this.folder, "node_modules/metal-attention");
    this.#home = join(parent, "home");
    this.#programs = join(parent, "bin");
    for (const folder of [this.folder, this.#home, this.#programs]) mkdirSync(folder);
    symlinkSync(process.execPath, join(this.#programs, "bun"));
    writeFileSync(join(this.folder, "package.json"), JSON.stringify({ name: "project", type: "module" }));
    writeFileSync(join(this.folder, "bunfig.toml"), `[install]\nregistry = "${registry.url}"\n`);
  }

  /** Runs Bun in the project's folder, with these arguments and variables and no others of the caller's. */
  bun(args: readonly string[], variables: Record<string, string> = {}): Promise<Outcome> {
    return run([join(this.#programs, "bun"), ...args], {
      cwd: this.folder,
      env: {
        HOME: this.#home,
        PATH: this.#programs,
        // The search goes beyond the PATH, to where distributions install clang.
        SOFTMETAL_CLANG: "clang-that-nobody-has",
        ...variables,
      },
    });
  }

  [Symbol.dispose](): void {
    rmSync(join(this.folder, ".."), { recursive: true, force: true });
  }
}
