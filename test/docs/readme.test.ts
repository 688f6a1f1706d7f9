import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import manifest from "../../package.json";
import { shapesPicture } from "../../scripts/shapes-picture.ts";
import { libraryVariable } from "../../src/ffi/library.ts";
import * as api from "../../src/index.ts";
import { anchors, pages, read, root } from "./documents.ts";

const documents = [...pages, "CONTRIBUTING.md", "CHANGELOG.md"];
const texts = pages.map(read).join("\n");
const blocks = pages.flatMap((page) =>
  [...read(page).matchAll(/^```ts\n(.*?)^```$/gms)].map((match, index) => ({
    name: `${page}, block ${index + 1}`,
    file: `${basename(page, ".md")}-${index + 1}.ts`,
    text: match[1] ?? "",
  })),
);

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

describe("TypeScript of the documents", () => {
  /** A user's project: the package is a folder of its node_modules. */
  let project = "";
  beforeAll(() => {
    project = mkdtempSync(join(tmpdir(), "metal-attention-docs-"));
    mkdirSync(join(project, "node_modules"));
    for (const name of ["bun-types", "zod", "@types", "undici-types"]) {
      const installed = join(root, "node_modules", name);
      if (existsSync(installed)) symlinkSync(installed, join(project, "node_modules", name));
    }
    symlinkSync(root, join(project, "node_modules/metal-attention"));
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: bunInitOptions }));
    for (const { file, text } of blocks) writeFileSync(join(project, file), text);
  });
  afterAll(() => rmSync(project, { recursive: true, force: true }));

  test("is there", () => {
    expect(blocks.length).toBeGreaterThanOrEqual(16);
    expect(blocks[0]?.file).toBe("README-1.ts");
  });

  test("type-checks in a project made by bun init", () => {
    const { exitCode, stdout } = Bun.spawnSync([join(root, "node_modules/.bin/tsc"), "--project", project]);
    expect(stdout.toString()).toBe("");
    expect(exitCode).toBe(0);
  }, 60_000);

  for (const { name, file } of blocks) {
    test(`${name} runs`, () => {
      // What a block writes goes into the project.
      const { exitCode, stderr, stdout } = Bun.spawnSync([process.execPath, join(project, file)], { cwd: project });
      expect(stderr.toString()).toBe("");
      expect(exitCode).toBe(0);
      if (file === "README-1.ts") expect(stdout.toString()).toBe("[ 1, 1.5, 2, 2.5, 3 ]\n");
    }, 60_000);
  }

  test("no code hides in a block of another language", () => {
    const languages = pages.flatMap((page) =>
      [...read(page).matchAll(/^```(.*)\n(?:.*\n)*?```$/gm)].map(([, name]) => name),
    );
    expect(new Set(languages)).toEqual(new Set(["ts", "sh", "js", ""]));
  });
});

describe("the documents and the code name the same things", () => {
  test.each(documents)("links of %s lead somewhere", (name) => {
    const links = [...read(name).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)];
    const broken = links.filter(([, path = "", anchor]) => {
      const target = path === "" ? name : join(dirname(name), path);
      return !existsSync(join(root, target)) || (anchor !== undefined && !anchors(read(target)).has(anchor));
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });

  test("the README leads to every page, and every picture is on one", () => {
    const readme = read("README.md");
    expect(pages.slice(1).filter((page) => !readme.includes(`](${page}`))).toEqual([]);
    const pictures = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".svg"));
    expect(pictures.filter((name) => !new RegExp(`!\\[[^\\]]+\\]\\((?:docs/)?${name}\\)`).test(texts))).toEqual([]);
  });

  test("the version is one, wherever it stands", () => {
    const { version } = manifest;
    const archives = [...read("README.md").matchAll(/-(\d+\.\d+\.\d+)\.tgz/g)].map(([, named]) => named);
    expect(archives).toEqual([version, version]);
    expect(/^## ([\d.]+)(?:, \d+ \w+ \d{4}| \(unreleased\))$/m.exec(read("CHANGELOG.md"))?.[1]).toBe(version);
    expect(read("swift/Sources/metal-attention-tool/MetalAttentionTool.swift")).toContain(
      `packageVersion = "${version}"`,
    );
    expect(new Set(Object.values(manifest.optionalDependencies))).toEqual(new Set([version]));
  });

  test("the README has at most 10 KB", () => {
    expect(Buffer.byteLength(read("README.md"))).toBeLessThanOrEqual(10_000);
  });

  test("the picture of shapes is what its script draws", () => {
    expect(read("docs/shapes.svg")).toBe(shapesPicture());
  });

  test("paths of the map exist", () => {
    const map = read("CONTRIBUTING.md");
    const paths = [...map.matchAll(/`((?:src|swift|shaders|scripts|test)\/[\w./-]*)`/g)].map((match) => match[1] ?? "");
    expect(paths.length).toBeGreaterThan(20);
    const template = /NAME|FAMILY/;
    expect(paths.filter((path) => !template.test(path) && !existsSync(join(root, path)))).toEqual([]);
  });

  test("the map names every folder", () => {
    const map = read("CONTRIBUTING.md").split("## How a change is made")[0] ?? "";
    const parents = ["src", "shaders", "scripts", "test", "swift/Sources", "swift/Sources/MetalAttention"];
    const folders = parents.flatMap((parent) =>
      readdirSync(join(root, parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => name),
    );
    expect(folders.length).toBeGreaterThan(40);
    expect(folders.filter((name) => !new RegExp(`\\b${name}\\b`).test(map))).toEqual([]);
  });

  test("each operation has a row of its files, and each shader is in one", () => {
    const [, section = ""] = read("CONTRIBUTING.md").split("## An operation's files\n");
    const lines = [...section.replace(/^## .*/ms, "").matchAll(/^\| (`.*|operation .*) \|$/gm)];
    const [head = [], ...rows] = lines.map(([, line = ""]) =>
      line.split(" | ").map((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name)),
    );
    const calls = [...read("docs/calls.md").matchAll(/^\| `(\w+)\(pass, /gm)].map(([, name = ""]) => name);
    expect(calls.length).toBeGreaterThanOrEqual(15);
    expect(rows.flatMap(([operation = []]) => operation).sort()).toEqual(calls.sort());

    const files = rows.map((cells) => cells.map((names, i) => names.map((name) => `${head[i]?.[0] ?? ""}${name}`)));
    const missing = files.flatMap(([, ...cells]) => cells.flat()).filter((file) => !existsSync(join(root, file)));
    expect(missing).toEqual([]);
    const elsewhere = files.filter(
      ([operation, call]) => !read(`${call?.[0]}`).includes(`function ${operation?.[0]}(`),
    );
    expect(elsewhere).toEqual([]);
    const shaders = readdirSync(join(root, "shaders")).filter((name) => name.endsWith(".metal"));
    const listed = new Set(rows.flatMap(([, , , names = []]) => names));
    expect(shaders.filter((name) => !listed.has(name))).toEqual(["copy.metal"]); // of pass.copy
  });

  test("the pages name every operation, class and error code", () => {
    const exported = Object.keys(api).filter((name) =>
      /^(?:flash|kvCache|hadamard|dequantize|build|classify|Device|MetalAttentionError)/.test(name),
    );
    expect(exported.length).toBeGreaterThanOrEqual(14);
    const codes = [...read("src/errors.ts").matchAll(/^ {2}\| "([\w-]+)"/gm)].map((match) => match[1] ?? "");
    expect(codes.length).toBeGreaterThanOrEqual(14);
    expect(
      [...exported, ...codes].filter((name) => !texts.includes(`\`${name}`) && !texts.includes(`${name}(`)),
    ).toEqual([]);
  });

  test("the table of environment variables has those that the library reads, and no other", async () => {
    const variables = new Set([libraryVariable]);
    for await (const path of new Bun.Glob("swift/Sources/{SoftMetal,MetalAttention}/**/*.swift").scan(root)) {
      const text = await Bun.file(join(root, path)).text();
      for (const [, name = ""] of text.matchAll(/\b(?:environment|flag)\("((?:SOFTMETAL|METAL_ATTENTION)_\w+)"/g)) {
        variables.add(name);
      }
    }
    const rows = [...read("docs/environment.md").matchAll(/^\| `([A-Z_]+)` \|/gm)].map(([, name = ""]) => name);
    expect(rows.sort()).toEqual([...variables].sort());
  });
});
