import { homedir, tmpdir } from "node:os";
import { dirname, extname, resolve } from "node:path";
import type { Examination } from "./examine.ts";
import { markdownReport } from "./text.ts";

const packageRoot = resolve(import.meta.dir, "../..");

/** What a report's file ends in. */
export const reportEndings: readonly string[] = [".json", ".md"];

/** Writes an examination without personal paths: JSON, or Markdown where the file ends in `.md`. */
export async function writeReport(file: string, examination: Examination): Promise<void> {
  const clean = withoutPaths(examination, new Scrubber(foldersOf(examination)));
  const text = extname(file) === ".md" ? markdownReport(clean) : `${JSON.stringify(clean, undefined, 2)}\n`;
  await Bun.write(file, text);
}

/** Folders by placeholder: those of the package and the user, and those that settings name. */
function foldersOf({ settings }: Examination): Record<string, string> {
  const paths = Object.entries(settings).filter(([, value]) => value.includes("/"));
  const named = paths.map(([name, value]) => [`<${name}>`, dirname(resolve(value))]);
  return {
    ...Object.fromEntries(named),
    "<package>": packageRoot,
    "<folder>": process.cwd(),
    "<home>": homedir(),
    "<temporary>": tmpdir(),
  };
}

/** Takes folders out of texts, which tell who somebody is and where they keep things. */
export class Scrubber {
  readonly #folders: readonly (readonly [stands: string, folder: RegExp])[];

  /** `folders` by placeholder. */
  constructor(folders: Readonly<Record<string, string>>) {
    const known = Object.entries(folders).filter(([, folder]) => folder.length > 1);
    // The longest first: the package may be in the home folder.
    const sorted = known.sort(([, a], [, b]) => b.length - a.length);
    // Whole names alone: /home/jo is no part of /home/john.
    this.#folders = sorted.map(([stands, folder]) => [
      stands,
      new RegExp(`${RegExp.escape(folder)}(?!\\.?[\\p{L}\\p{N}_-])`, "gu"),
    ]);
  }

  /** The text, with each other path cut down to its last part. */
  clean(text: string): string {
    let result = text;
    for (const [stands, folder] of this.#folders) result = result.replaceAll(folder, stands);
    return result.replace(/(?<![\w.<>-])(?:\/[^\s/:'"`,;()<>]+)+(?=\/)/g, "<path>");
  }
}

/** A copy of a report's value whose texts are cleaned. */
function withoutPaths<T>(value: T, scrubber: Scrubber): T {
  if (typeof value === "string") return scrubber.clean(value) as T;
  if (Array.isArray(value)) return value.map((each) => withoutPaths(each, scrubber)) as T;
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutPaths(each, scrubber)])) as T;
}
