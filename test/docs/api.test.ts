/** The API's pages: made without a warning, every export on one, no broken link, found by the search, shapes in a table. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { inflateSync } from "node:zlib";
import { run } from "../helpers/run.ts";
import { root } from "./documents.ts";

const out = mkdtempSync(join(tmpdir(), "metal-attention-api-"));
afterAll(() => rmSync(out, { recursive: true, force: true }));
let pages: string[] = [];
const page = (name: string) => readFileSync(join(out, name), "utf8");

beforeAll(async () => {
  const command = [process.execPath, join(root, "scripts/api-pages/main.ts"), out];
  const { status, output, errors } = await run(command, { cwd: root, env: process.env });
  expect({ status, output, errors }).toEqual({ status: 0, output, errors: "" });
  expect(output).not.toContain("[warning]");
  pages = readdirSync(out, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html"));
}, 120_000);

/** The names that a module gives to others, types among them. */
function exportsOf(path: string): string[] {
  const text = readFileSync(join(root, path), "utf8").replace(/\/\*\*.*?\*\//gs, "");
  const lists = [...text.matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, list = ""]) => list.split(","));
  const all = [...text.matchAll(/export \* from "\.\/(.*)"/g)].map(([, file = ""]) => join(dirname(path), file));
  const own = all.flatMap((file) => [
    ...readFileSync(join(root, file), "utf8").matchAll(/(?:@internal[^\n]*\n)?^export (?:async )?(?:\w+) (\w+)/gm),
  ]);
  const names = [...lists, ...own.filter(([whole]) => !whole.includes("@internal")).map(([, name = ""]) => name)];
  return names.map((name) => name.trim().replace(/^type /, "")).filter((name) => name !== "");
}

test.each([
  ["index", "src/index.ts"],
  ["reference", "src/reference/index.ts"],
  ["safetensors", "src/safetensors/index.ts"],
])("every export of %s has a page", (module, path) => {
  const names = exportsOf(path);
  expect(names.length).toBeGreaterThan(5);
  const documented = new Set(pages.map((name) => name.replace(/^\w+\/(.*)\.html$/, "$1")));
  expect(names.filter((name) => !documented.has(`${module}.${name}`))).toEqual([]);
});

test("no link is broken", () => {
  const broken = pages.flatMap((name) => {
    const links = [...page(name).matchAll(/href="(?!https?:|data:|#)([^"#]*)(?:#[^"]*)?"/g)].map(
      ([, link = ""]) => link,
    );
    return links.filter((link) => !existsSync(join(out, dirname(name), link))).map((link) => `${name}: ${link}`);
  });
  expect(broken).toEqual([]);
});

test("the search knows the calls", () => {
  const [, packed = ""] = /"(.*)"/.exec(page("assets/search.js")) ?? [];
  const index = inflateSync(Buffer.from(packed, "base64")).toString();
  expect(["flashAttnDecode", "KvCache", "referenceAttention"].filter((name) => !index.includes(`"${name}"`))).toEqual(
    [],
  );
});

test("shapes at the beginning of a comment are shown, and stand in the table", () => {
  expect(page("interfaces/index.FlashAttnDecodeArgs.html")).toContain("[H]: one extra logit per head");
  const table = page(pages.find((name) => /^documents\/.*[Ss]hapes/.test(name)) ?? "");
  expect(table).toContain("Queries, [B, H, nQ, D], nQ from 1 to 16");
  expect(table.match(/<tr>/g)?.length).toBeGreaterThan(55);
});
