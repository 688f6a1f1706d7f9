import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Outcome, run, runChecked } from "../helpers/run.ts";

const root = join(import.meta.dir, "../..");
const swift = join(root, "swift");

/** Stub modules in the order in which they import each other. */
const modules = ["ObjectiveC", "Foundation", "Darwin", "Metal"];

/** An edit of a stub's text: a mistake to plant. */
export type Edit = (text: string) => string;

/** Modules with the names of Apple's, compiled from `swift/Stubs` into a folder of their own. */
export class AppleStubs implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "metal-attention-stubs-"));

  /** Compiles the stubs; `edit` changes the text of those of Metal. */
  static async compile(edit: Edit = (text) => text): Promise<AppleStubs> {
    const stubs = new AppleStubs();
    for (const name of modules) {
      const files = [];
      for (const file of readdirSync(join(swift, "Stubs", name))) {
        const text = await Bun.file(join(swift, "Stubs", name, file)).text();
        const path = join(stubs.folder, `${name}-${file}`);
        writeFileSync(path, name === "Metal" ? edit(text) : text);
        files.push(path);
      }
      // As in Apple's modules, an enumeration may get more cases later.
      const library = ["-parse-as-library", "-enable-library-evolution"];
      const output = join(stubs.folder, `${name}.swiftmodule`);
      await runChecked([
        "swiftc",
        "-emit-module",
        ...stubs.options(name),
        ...library,
        "-emit-module-path",
        output,
        ...files,
      ]);
    }
    return stubs;
  }

  /** Type-checks the sources of `MetalAttention` as a Mac's compiler would see them: every warning is an error. */
  async check(): Promise<Outcome> {
    const sources = [...new Bun.Glob("**/*.swift").scanSync(join(swift, "Sources/MetalAttention"))];
    const header = join(swift, "Sources/CMetalAttention/include/metal_attention.h");
    writeFileSync(join(this.folder, "module.modulemap"), `module CMetalAttention { header "${header}" export * }\n`);
    // What the build plugin writes.
    const resources = join(this.folder, "EmbeddedTexts.swift");
    writeFileSync(
      resources,
      "enum EmbeddedTexts {\n  static let files: [(name: String, text: StaticString)] = []\n}\n",
    );
    const files = sources.map((file) => join(swift, "Sources/MetalAttention", file));
    return run([
      "swiftc",
      "-typecheck",
      "-whole-module-optimization",
      ...this.options("MetalAttention"),
      "-warnings-as-errors",
      ...files,
      resources,
    ]);
  }

  private options(module: string): string[] {
    return ["-swift-version", "5", "-package-name", "metal-attention", "-module-name", module, "-I", this.folder];
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Where the release build has its compiled Swift modules. */
export async function builtModules(): Promise<string> {
  const command = ["swift", "build", "-c", "release", "--package-path", swift, "--show-bin-path"];
  return (await runChecked(command)).trim();
}
