#!/usr/bin/env bun
/**
 * Makes the pages of the API from the doc comments, with a search: `bun run docs [FOLDER]`, build/docs unless given. A
 * warning of typedoc is an error.
 */
import { cpSync, existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { shapesTable } from "./shapes.ts";

const root = resolve(import.meta.dir, "../..");
const out = resolve(process.argv[2] ?? join(root, "build/docs"));
const work = join(root, "build/typedoc");

// Typedoc reads programs by TypeScript 6, whose API version 7 has no more: a copy beside that one finds it.
const modules = join(work, "node_modules");
rmSync(work, { recursive: true, force: true });
mkdirSync(modules, { recursive: true });
cpSync(join(root, "node_modules/typedoc"), join(modules, "typedoc"), { recursive: true, dereference: true });
symlinkSync(join(root, "node_modules/typescript-6"), join(modules, "typescript"));

writeFileSync(join(work, "shapes.md"), `---\ntitle: Shapes of every call\n---\n\n${shapesTable(root)}`);
const typedoc = Bun.spawnSync(
  [
    process.execPath,
    join(modules, "typedoc/bin/typedoc"),
    "--options",
    join(import.meta.dir, "typedoc.js"),
    "--out",
    out,
  ],
  { cwd: root, stdio: ["ignore", "inherit", "inherit"] },
);
process.exit(typedoc.exitCode === 0 && existsSync(join(out, "index.html")) ? 0 : 1);
