/** Programs made by `bun build`: in one executable file, and as a bundle beside its assets. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import manifest from "../../package.json";
import { hasPlatformPackage, platformPackage } from "../../src/ffi/platformPackage.ts";
import { type Outcome, run, runChecked } from "../helpers/run.ts";
import { makePackages, packageTimeout } from "./packages.ts";

const root = resolve(import.meta.dir, "../..");
const scratch = mkdtempSync(join(tmpdir(), "metal-attention-bundle-"));
const project = join(scratch, "project");
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** A program that runs two built-in kernels; `opening` imports and opens its device. */
const program = (opening: string) => `
${opening}
import { kvCacheCopy } from "metal-attention";
using src = device.tensor("f32", [1, 4]).set([1, 2, 3, 4]);
using cache = device.tensor("f32", [2, 4]);
using pass = device.pass();
kvCacheCopy(pass, { src, cache, writePos: 1 });
await pass.commit();
console.log([...cache.view()].join(" "));
`;

/** Where a program is, and nothing else of this test: no project, no clang, no cache. */
function runIn(folder: string, command: readonly string[]): Promise<Outcome> {
  const home = join(scratch, "home");
  mkdirSync(home, { recursive: true });
  const env = { HOME: home, PATH: join(scratch, "bin"), SOFTMETAL_CLANG: "clang-that-nobody-has" };
  return run(command, { cwd: folder, env });
}

async function build(name: string, source: string, ...options: string[]): Promise<void> {
  writeFileSync(join(project, `${name}.ts`), source);
  await runChecked([process.execPath, "build", `${name}.ts`, ...options], { cwd: project, env: process.env });
}

beforeAll(async () => {
  await makePackages();
  mkdirSync(join(scratch, "bin"));
  symlinkSync(process.execPath, join(scratch, "bin/bun"));
  const modules = join(project, "node_modules");
  for (const name of ["metal-attention", platformPackage]) {
    const archive = join(root, "build/packages", `${name}-${manifest.version}.tgz`);
    mkdirSync(join(modules, name), { recursive: true });
    await runChecked(["tar", "-xzf", archive, "-C", join(modules, name), "--strip-components=1"]);
  }
  cpSync(join(root, "node_modules/zod"), join(modules, "zod"), { recursive: true });
  // The lines that the page on bundling shows.
  const page = readFileSync(join(root, "docs/bundling.md"), "utf8");
  const shown = /^```js\n(.*?)^```$/ms.exec(page)?.[1] ?? "";
  const carrying = program(shown.replaceAll(/metal-attention-(linux-x64|darwin-arm64)/g, platformPackage));
  const bare = program('import { Device } from "metal-attention";\nconst device = Device.open();');
  await build("carrying", carrying, "--compile", "--outfile", join(scratch, "alone/program"));
  await build("carrying", carrying, "--target=bun", "--outdir", join(scratch, "bundle"));
  await build("bare", bare, "--compile", "--outfile", join(scratch, "bare/program"));
  await build("bare", bare, "--target=bun", "--outdir", join(scratch, "bare-bundle"));
  // From here on there is nothing but what was built.
  renameSync(project, join(scratch, "gone"));
  rmSync(join(scratch, "gone"), { recursive: true });
}, packageTimeout);

describe.if(hasPlatformPackage)("a program that carries the library and its kernels", () => {
  test("runs as one file, alone in its folder", async () => {
    const folder = join(scratch, "alone");
    expect(readdirSync(folder)).toEqual(["program"]);
    const outcome = await runIn(folder, [join(folder, "program")]);
    expect(outcome).toEqual({ status: 0, output: "0 0 0 0 1 2 3 4\n", errors: "" });
    // Nothing was compiled.
    expect(existsSync(join(scratch, "home/.cache/metal-attention"))).toBe(false);
  }, 60_000);

  test("runs as a bundle beside its assets, from any folder", async () => {
    const outcome = await runIn(scratch, ["bun", join(scratch, "bundle/carrying.js")]);
    expect(outcome).toEqual({ status: 0, output: "0 0 0 0 1 2 3 4\n", errors: "" });
  }, 60_000);
});

describe("a program that carries no library", () => {
  test.each([
    ["compiled", "bare/program"],
    ["bundled", "bare-bundle/bare.js"],
  ])(
    "says how to carry it, and names no file that is not there: %s",
    async (_, path) => {
      const file = join(scratch, path);
      const { status, errors } = await runIn(scratch, path.endsWith(".js") ? ["bun", file] : [file]);
      expect(status).toBe(1);
      const message = /MetalAttentionError: ([\s\S]*?)\n\s*(?:code:|\n)/.exec(errors)?.[1] ?? errors;
      expect(message).toContain(`import { files } from "${platformPackage}/files.js"`);
      expect(message).toContain("METAL_ATTENTION_LIBRARY");
      const named = [...message.matchAll(/(?<![\w.-])\/[\w$./-]+/g)].map(([name]) => name.replace(/[.:]$/, ""));
      expect(named.filter((name) => !existsSync(name))).toEqual([]);
    },
    60_000,
  );
});
