/** Declarations of the package's modules, for its archive: `bun declarations.ts FOLDER`. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json";

const root = resolve(import.meta.dir, "../..");
const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("usage: declarations.ts FOLDER");
  process.exit(2);
}

const entries = Object.values(manifest.exports).flatMap((entry) => (typeof entry === "string" ? [] : [entry.default]));
const scratch = mkdtempSync(join(tmpdir(), "metal-attention-declarations-"));
const project = join(scratch, "tsconfig.json");
writeFileSync(
  project,
  JSON.stringify({
    extends: join(root, "tsconfig.json"),
    compilerOptions: {
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      stripInternal: true,
      rootDir: root,
      outDir: resolve(folder),
      typeRoots: [join(root, "node_modules")],
    },
    include: [],
    files: entries.map((entry) => join(root, entry)),
  }),
);
const { exitCode, stdout } = Bun.spawnSync([join(root, "node_modules/.bin/tsc"), "--project", project]);
rmSync(scratch, { recursive: true });
if (exitCode !== 0) {
  console.error(stdout.toString());
  process.exit(1);
}

// As JavaScript's, which every way of resolving modules takes; `.ts` needs an option of the reader's.
for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
  const path = join(folder, name);
  if (!statSync(path).isFile()) continue;
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace(/(?<=(?:from |import\()"\.{1,2}\/[^"]*)\.ts(?=")/g, ".js"));
}
