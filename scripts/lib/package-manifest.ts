/** Points the package.json of an unpacked archive at its declarations: `bun package-manifest.ts FOLDER`. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [folder = "."] = process.argv.slice(2);
const path = join(folder, "package.json");
const manifest = JSON.parse(readFileSync(path, "utf8")) as {
  files: string[];
  exports: Record<string, string | { types: string; default: string }>;
};
for (const entry of Object.values(manifest.exports)) {
  if (typeof entry === "string") continue;
  entry.types = entry.default.replace(/^\.\/(.*)\.ts$/, "./types/$1.d.ts");
  if (!existsSync(join(folder, entry.types))) throw new Error(`${entry.types} is not there`);
}
manifest.files = ["types", ...manifest.files];
writeFileSync(path, `${JSON.stringify(manifest, undefined, 2)}\n`);
