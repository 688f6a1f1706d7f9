import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import * as api from "../../src/index.ts";

const root = resolve(import.meta.dir, "../..");
const documents = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"];
const readme = readFileSync(join(root, "README.md"), "utf8");
const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map((match) => match[1] ?? "");

/** What `bun init` writes into tsconfig.json, with the types that are installed here. */
const bunInitOptions = {
  lib: ["ESNext"],
  target: "ESNext",
  module: "Preserve",
  moduleDetection: "force",
  jsx: "react-jsx",
  allowJs: true,
  types: ["bun-types"],
  moduleResolution: "bundler",
  allowImportingTsExtensions: true,
  verbatimModuleSyntax: true,
  noEmit: true,
  strict: true,
  skipLibCheck: true,
  noFallthroughCasesInSwitch: true,
  noUncheckedIndexedAccess: true,
  noImplicitOverride: true,
};

describe("TypeScript of the README", () => {
  /** A user's project: the package is a folder of its node_modules. */
  let project = "";
  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "metal-attention-readme-"));
    mkdirSync(join(project, "node_modules"));
    for (const name of ["bun-types", "zod", "@types", "undici-types"]) {
      const installed = join(root, "node_modules", name);
      if (existsSync(installed)) symlinkSync(installed, join(project, "node_modules", name));
    }
    symlinkSync(root, join(project, "node_modules/metal-attention"));
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: bunInitOptions }));
    for (const [index, block] of blocks.entries()) writeFileSync(join(project, `block-${index}.ts`), block);
  });
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  test("is there", () => {
    expect(blocks.length).toBeGreaterThanOrEqual(4);
  });

  test("type-checks in a project made by bun init", () => {
    const { exitCode, stdout } = Bun.spawnSync([join(root, "node_modules/.bin/tsc"), "--project", project]);
    expect(stdout.toString()).toBe("");
    expect(exitCode).toBe(0);
  }, 60_000);

  for (const index of blocks.keys()) {
    test(`block ${index + 1} runs`, () => {
      // What a block writes goes into the project.
      const { exitCode, stderr } = Bun.spawnSync([process.execPath, join(project, `block-${index}.ts`)], {
        cwd: project,
      });
      expect(stderr.toString()).toBe("");
      expect(exitCode).toBe(0);
    }, 60_000);
  }
});

describe("the documents and the code name the same things", () => {
  test.each(documents)("links of %s lead somewhere", (name) => {
    const text = readFileSync(join(root, name), "utf8");
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].map((match) => match[1] ?? "");
    expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([]);
  });

  test("paths of the map exist", () => {
    const map = readFileSync(join(root, "CONTRIBUTING.md"), "utf8");
    const paths = [...map.matchAll(/`((?:src|swift|shaders|scripts|test)\/[\w./-]*)`/g)].map((match) => match[1] ?? "");
    expect(paths.length).toBeGreaterThan(20);
    const template = /NAME|FAMILY/;
    expect(paths.filter((path) => !template.test(path) && !existsSync(join(root, path)))).toEqual([]);
  });

  test("the map names every folder", () => {
    const map = readFileSync(join(root, "CONTRIBUTING.md"), "utf8").split("## How a change is made")[0] ?? "";
    const parents = ["src", "shaders", "scripts", "test", "swift/Sources", "swift/Sources/MetalAttention"];
    const folders = parents.flatMap((parent) =>
      readdirSync(join(root, parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name),
    );
    expect(folders.length).toBeGreaterThan(40);
    expect(folders.filter((name) => !new RegExp(`\\b${name}\\b`).test(map))).toEqual([]);
  });

  test("the README names every operation, class and error code", () => {
    const exported = Object.keys(api).filter((name) =>
      /^(?:flash|kvCache|hadamard|dequantize|build|classify|Device|MetalAttentionError)/.test(name),
    );
    expect(exported.length).toBeGreaterThanOrEqual(14);
    const codes = [...readFileSync(join(root, "src/errors.ts"), "utf8").matchAll(/^ {2}\| "([\w-]+)"/gm)].map(
      (match) => match[1] ?? "",
    );
    expect(codes.length).toBeGreaterThanOrEqual(14);
    expect(
      [...exported, ...codes].filter((name) => !readme.includes(`\`${name}`) && !readme.includes(`${name}(`)),
    ).toEqual([]);
  });

  test("the README names every environment variable that the library reads", async () => {
    const read = new Set<string>();
    for await (const path of new Bun.Glob("swift/Sources/{SoftMetal,MetalAttention}/**/*.swift").scan(root)) {
      const text = await Bun.file(join(root, path)).text();
      for (const match of text.matchAll(/environment\("((?:SOFTMETAL|METAL_ATTENTION)_\w+)"\)/g))
        read.add(match[1] ?? "");
    }
    expect(read.size).toBeGreaterThanOrEqual(5);
    expect([...read].filter((name) => !readme.includes(name))).toEqual([]);
  });
});
