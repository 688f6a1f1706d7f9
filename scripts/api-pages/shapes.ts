import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Every tensor that a call takes, with dtype and shape, as a table in Markdown: from the doc comments of `src`. */
export function shapesTable(root: string): string {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((file) =>
    /^(?:ops|cache)\/.*\.ts$/.test(file),
  );
  const exported = new Set(readFileSync(join(root, "src/index.ts"), "utf8").match(/\w+/g));
  const rows = files.sort().flatMap((file) => rowsOf(readFileSync(join(root, "src", file), "utf8"), exported));
  const head = ["| arguments | tensor | type | shape and meaning |", "| --- | --- | --- | --- |"];
  return `# Shapes of every call\n\n${[...head, ...rows].join("\n")}\n`;
}

function rowsOf(text: string, exported: ReadonlySet<string>): string[] {
  const types = text.matchAll(
    /export (?:interface (\w+)(?: extends ([^{]*))?|type (\w+) = ([^{;]*)) ?\{\n(.*?)^ *\}/gms,
  );
  return [...types].flatMap(([, named, parents, alias, parts, body = ""]) => {
    const name = named ?? alias ?? "";
    const others = (parents ?? parts ?? "").replace(/[&\s]+/g, " ").trim();
    const link = `${exported.has(name) ? `{@link index.${name} | ${name}}` : name}${others && `, and ${others}`}`;
    const fields = body.matchAll(/\/\*\*((?:(?!\*\/).)*)\*\/\n\s*readonly (\w+)(\??): ([^;]*);/gs);
    return [...fields].flatMap(([, comment = "", field, mark, type = ""]) => {
      if (!/Tensor|DecodeCache|DecodeStream/.test(type)) return [];
      const cells = [comment.replace(/\n\s*\*/g, " ").replace(/\{@link (\w+)\}/g, "$1"), type];
      const [meaning = "", plain = ""] = cells.map((cell) => cell.replace(/\s+/g, " ").trim().replaceAll("|", "\\|"));
      return [`| ${link} | \`${field}${mark}\` | \`${plain.replaceAll("\\|", "or")}\` | ${meaning} |`];
    });
  });
}
