/**
 * The packages as a user gets them: packed, and installed into an empty project
 * on a machine that has neither compiler.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import manifest from "../../package.json";
import { hasPlatformPackage, libraryFile, platformPackage } from "../../src/ffi/platformPackage.ts";
import { pages, read } from "../docs/documents.ts";
import { compilingEnvironment, plainEnvironment, runChecked } from "../helpers/run.ts";
import { isWhole, makePackages, packageTimeout } from "./packages.ts";
import { Project } from "./project.ts";
import { type Archive, Registry } from "./registry.ts";

const root = join(import.meta.dir, "../..");
const packages = join(root, "build/packages");
const archive = `metal-attention-${manifest.version}.tgz`;
const isLinux = process.platform === "linux";
const example = /^```ts\n(.*?)^```$/ms.exec(read("README.md"))?.[1] ?? "";

const scratch = mkdtempSync(join(tmpdir(), "metal-attention-archives-"));
let zod: Archive;
/** Not set where there is no such package. */
let platform: Archive;

/** A project with the package in it: its own archive, those `beside` it, and what a registry has. */
async function install(published: readonly Archive[], beside: readonly Archive[] = []): Promise<Project> {
  using registry = new Registry([zod, ...published]);
  const project = new Project(registry);
  const added = [archive, ...beside.map(({ path }) => basename(path))];
  for (const name of added) cpSync(join(packages, name), join(project.folder, name));
  const { status, errors } = await project.bun(["add", ...added.map((name) => `./${name}`)]);
  expect({ status, errors }).toEqual({ status: 0, errors });
  return project;
}

/** Every file below a folder, as paths from it. */
function files(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(folder, name)).isFile(),
  );
}

beforeAll(async () => {
  await makePackages();

  const folder = join(root, "node_modules/zod");
  const packed = Bun.spawnSync(
    [process.execPath, "pm", "pack", "--destination", scratch, "--ignore-scripts", "--quiet"],
    { cwd: folder },
  );
  zod = { manifest: await Bun.file(join(folder, "package.json")).json(), path: packed.stdout.toString().trim() };
  if (!hasPlatformPackage) return;
  platform = {
    manifest: await Bun.file(join(packages, platformPackage, "package.json")).json(),
    path: join(packages, `${platformPackage}-${manifest.version}.tgz`),
  };
}, packageTimeout);
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

describe.if(hasPlatformPackage)("the archives", () => {
  test("are of one version, which the package asks for exactly", () => {
    expect(platform.manifest.version).toBe(manifest.version);
    const asked: Record<string, string> = manifest.optionalDependencies;
    expect(Object.keys(asked)).toEqual(["metal-attention-darwin-arm64", "metal-attention-linux-x64"]);
    expect(new Set(Object.values(asked))).toEqual(new Set([manifest.version]));
    expect(platform.manifest).toMatchObject({ os: [process.platform], cpu: [process.arch], license: "MIT" });
    // Else a sample might be published.
    expect(platform.manifest.private).toBe(isWhole ? undefined : true);
  });

  test("publint finds nothing to improve", () => {
    const publint = join(root, "node_modules/.bin/publint");
    for (const { path } of [platform, { path: join(packages, archive) }]) {
      // It colours its words where CI is set, even into a pipe.
      const { stdout } = Bun.spawnSync([process.execPath, "--bun", publint, "run", path], {
        env: plainEnvironment,
      });
      expect(stdout.toString()).toEndWith("All good!\n");
    }
  });
});

describe.if(hasPlatformPackage)("installed beside its platform package", () => {
  let project: Project;
  beforeAll(async () => {
    project = await install([platform]);
  }, 60_000);
  afterAll(() => project[Symbol.dispose]());

  test("brings the package of this platform and zod, and nothing else", () => {
    const names = readdirSync(join(project.folder, "node_modules")).filter((name) => !name.startsWith("."));
    expect(names.toSorted()).toEqual(["metal-attention", platformPackage, "zod"].toSorted());
  });

  test("runs the README's first example", async () => {
    writeFileSync(join(project.folder, "example.ts"), example);
    const { status, errors, output } = await project.bun(["example.ts"]);
    expect({ status, errors }).toEqual({ status: 0, errors: "" });
    expect(output).toBe("[ 1, 1.5, 2, 2.5, 3 ]\n");
  }, 60_000);

  test("its programs run every built-in kernel and find all in order", async () => {
    const doctor = await project.bun(["x", "--no-install", "metal-attention", "doctor"]);
    expect(doctor).toEqual({ status: 0, output: doctor.output, errors: "" });
    const fixtures = await project.bun([
      "x",
      "--no-install",
      "metal-attention-fixtures",
      "list",
      "--op",
      "kvCacheCopy",
    ]);
    expect(fixtures).toEqual({ status: 0, output: fixtures.output, errors: "" });
  }, 120_000);

  test("every command that the pages name for the archives runs", async () => {
    const commands = [
      ...pages
        .map(read)
        .join("\n")
        .matchAll(/^(bunx .*?)(?: +#.*)?$/gm),
    ].map(([, line = ""]) => line);
    expect(commands.length).toBeGreaterThanOrEqual(7);
    for (const command of commands) {
      const [, ...words] = command.replaceAll("'", "").split(/ +/);
      // All benchmarks take too long here, and some need a compiler.
      if (words[1] === "bench") words.push("--only", "op-host-cost");
      const { status, errors, output } = await project.bun(["x", "--no-install", ...words]);
      if (words[1] === "demo" && isLinux) expect(output).toContain("The language model is left out");
      // Its model has kernels of its own, and there is no compiler here.
      const isRefused = words[1] === "report" && isLinux;
      expect({ command, status, errors }).toEqual({ command, status: isRefused ? 1 : 0, errors });
      if (isRefused) expect(errors).toContain("needs clang");
    }
  }, 300_000);

  test("the pages are there, and every path that they name, or it is named as a checkout's", () => {
    expect(pages.filter((page) => !existsSync(join(project.installed, page)))).toEqual([]);
    // Paragraphs, list entries, rows and blocks of code; not what was done to check the package, nor comments.
    const shown = pages.filter((page) => page !== "docs/verification.md");
    const text = shown
      .map(read)
      .join("\n\n")
      .replace(/<!--.*?-->/g, "");
    const missing = text.split(/\n{2,}|\n(?=[-|])/).flatMap((part) => {
      if (part.includes("checkout")) return [];
      const names = [...part.matchAll(/(?<![\w./-])(?:scripts|src|test|swift|shaders|build)\/[\w./-]*\w/g)];
      return names.map(([name]) => name).filter((name) => !existsSync(join(project.installed, name)));
    });
    expect(missing).toEqual([]);
  });

  test("the environment's library goes first, then the platform package, then the local build", async () => {
    const library = join(project.folder, "node_modules", platformPackage, "lib", libraryFile);
    const build = join(project.installed, "build/lib");
    const other = join(project.folder, libraryFile);
    mkdirSync(build, { recursive: true });
    for (const copy of [join(build, libraryFile), other]) cpSync(library, copy);
    const search = join(project.installed, "src/ffi/library.ts");
    writeFileSync(
      join(project.folder, "search.ts"),
      `import { searchLibrary } from "${search}"; console.log(searchLibrary().places.join("\\n"));`,
    );
    const places = async (variables = {}) => {
      const { output } = await project.bun(["search.ts"], variables);
      return output
        .trim()
        .split("\n")
        .map((line) => line.replace(/^.*\((.*)\): /, "$1: "));
    };
    expect(await places({ METAL_ATTENTION_LIBRARY: other })).toEqual([
      "METAL_ATTENTION_LIBRARY: loaded",
      "platform package: not tried, because of METAL_ATTENTION_LIBRARY",
      "local build: not tried, because of METAL_ATTENTION_LIBRARY",
    ]);
    expect(await places()).toEqual(["platform package: loaded", "local build: not tried, because of platform package"]);
    renameSync(library, `${library}.away`);
    expect(await places()).toEqual(["platform package: no such file", "local build: loaded"]);
    renameSync(`${library}.away`, library);
    rmSync(join(project.installed, "build"), { recursive: true });
  });

  if (isLinux) {
    type Outputs = { hashes: Record<string, string>; untried: string[]; missing: string[] };
    const child = join(import.meta.dir, "outputs-child.ts");
    const outputs = async (): Promise<Outputs> => {
      const { status, errors, output } = await project.bun([child, project.installed]);
      expect({ status, errors }).toEqual({ status: 0, errors: "" });
      return JSON.parse(output);
    };
    const compiledHere = async (stride: number): Promise<Outputs> =>
      JSON.parse(await runChecked([process.execPath, child, root, `${stride}`], { env: compilingEnvironment }));
    /** That more than `least` outputs are there, and that they are those of `all`. */
    const expectAmong = ({ hashes }: Outputs, all: Outputs, least: number) => {
      const names = Object.keys(hashes);
      expect(names.length).toBeGreaterThan(least);
      expect(hashes).toEqual(Object.fromEntries(names.map((name) => [name, all.hashes[name] ?? ""])));
    };

    test(
      "every level of kernels gives the bits that this machine's own compile gives",
      async () => {
        const shipped = await outputs();
        expect({ untried: shipped.untried, missing: shipped.missing }).toEqual({ untried: [], missing: [] });
        if (isWhole) expect(await compiledHere(1)).toEqual(shipped);
        else {
          const some = await compiledHere(16);
          expect(some.missing).toEqual([]);
          expectAmong(some, shipped, 20);
        }
        const kernels = join(project.folder, "node_modules", platformPackage, "lib/kernels.tar");
        const names = (await runChecked(["tar", "-tf", kernels])).trim().split("\n");
        expect(names.filter((name) => name.endsWith("/"))).toEqual(["nvptx/", "x86-64-v3/", "x86-64-v4/"]);
        // Without the higher level the lower one serves.
        const whole = join(project.folder, "whole.tar");
        renameSync(kernels, whole);
        cpSync(whole, kernels);
        await runChecked(["tar", "--delete", "-f", kernels, "x86-64-v4"]);
        const lower = await outputs();
        if (isWhole) expect(lower).toEqual(shipped);
        else expectAmong(lower, shipped, 100);
        rmSync(kernels);
        renameSync(whole, kernels);
      },
      packageTimeout,
    );

    test("no kernel is so large that clang takes long for it, at any level", async () => {
      const kernels = join(project.folder, "node_modules", platformPackage, "lib/kernels.tar");
      const listed = (await runChecked(["tar", "-tvf", kernels])).trim().split("\n");
      const ofProcessors = listed.filter((line) => !line.includes(" nvptx/"));
      const sizes = ofProcessors.map((line) => Number(line.trim().split(/\s+/)[2]));
      expect(sizes.length).toBeGreaterThan(isWhole ? 500 : 280);
      // The quantizers of runs in two packings have three bodies; a branch made for each lane comes to more, and takes
      // clang minutes. Of all others few are large.
      expect(Math.max(...sizes)).toBeLessThan(1300 << 10);
      expect(sizes.filter((size) => size > 640 << 10).length / sizes.length).toBeLessThan(0.03);
    });

    test("makes no cache, since nothing was compiled", () => {
      expect(existsSync(join(project.folder, "../home/.cache/metal-attention"))).toBe(false);
    });

    test("a kernel of the user's own without clang: a typed error that says what to install", async () => {
      const child = join(import.meta.dir, "user-kernel-child.ts");
      const { status, output, errors } = await project.bun([child, project.installed]);
      expect({ status, errors }).toEqual({ status: 0, errors: "" });
      const { code, message } = JSON.parse(output) as { code: string; message: string };
      expect(code).toBe("device-unavailable");
      expect(message).toMatch(/own\.metal: .*install clang.*SOFTMETAL_CLANG/);
    });

    test("a kernel of the user's own with clang: the package has the pass that makes its lanes vectors", async () => {
      const child = join(import.meta.dir, "user-kernel-child.ts");
      const variables = { SOFTMETAL_CLANG: Bun.which("clang-19") ?? "clang-19", PATH: process.env["PATH"] ?? "" };
      const { status, errors, output } = await project.bun([child, project.installed], variables);
      expect({ status, errors, output }).toEqual({ status: 0, errors: "", output: '{"executor":"vectors"}\n' });
    });
  }
});

test.if(hasPlatformPackage)(
  "both archives in one command serve without a registry that knows the platform package",
  async () => {
    using project = await install([], [platform]);
    writeFileSync(join(project.folder, "example.ts"), example);
    const { status, errors } = await project.bun(["example.ts"]);
    expect({ status, errors }).toEqual({ status: 0, errors: "" });
  },
  60_000,
);

describe("installed without a platform package", () => {
  let project: Project;
  beforeAll(async () => {
    project = await install([]);
  }, 60_000);
  afterAll(() => project[Symbol.dispose]());

  test("says where it looked and how to build the library", async () => {
    writeFileSync(join(project.folder, "example.ts"), example);
    const { status, errors } = await project.bun(["example.ts"]);
    expect(status).toBe(1);
    const parts = [
      "library-not-found",
      `${join(platformPackage, "lib", libraryFile)} (platform package): `,
      `${join(project.installed, "build/lib", libraryFile)} (local build): no such file`,
      `Build it with ${join(project.installed, "scripts/setup")}`,
      "METAL_ATTENTION_LIBRARY",
    ];
    expect(parts.filter((part) => !errors.includes(part))).toEqual([]);
    expect(existsSync(join(project.installed, "scripts/setup"))).toBe(true);
  });

  test("holds what the build needs, and no tests", () => {
    for (const folder of ["src", "shaders", "swift/Sources", "swift/Plugins"])
      expect(files(join(project.installed, folder)).toSorted()).toEqual(files(join(root, folder)).toSorted());
    expect(existsSync(join(project.installed, "swift/Package.swift"))).toBe(true);
    for (const name of ["test", "swift/Tests", "scripts/test", "bun.lock"])
      expect(existsSync(join(project.installed, name))).toBe(false);
  });
});
