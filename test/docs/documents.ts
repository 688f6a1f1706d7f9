/** The project's documents: what a user reads, and what a contributor does. */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const root = resolve(import.meta.dir, "../..");

/** Paths of what a user reads: the README first, then the pages of `docs/`. */
export const pages = [
  "README.md",
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .sort()
    .map((name) => `docs/${name}`),
];

export const read = (path: string) => readFileSync(join(root, path), "utf8");

/** The names that GitHub gives the headings of a text. */
export function anchors(text: string): Set<string> {
  const headings = [...text.replace(/^```.*?^```/gms, "").matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => heading);
  const slugs = headings.map((heading) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
  return new Set(slugs);
}
