/** Which clang is supported, and what another means: set-up and the library say the same. `doctor` has its own test. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { needsClang } from "../../scripts/lib/clang.ts";
import { run } from "../helpers/run.ts";

const root = resolve(import.meta.dir, "../..");
const folder = mkdtempSync(join(tmpdir(), "metal-attention-clang-"));
afterAll(() => rmSync(folder, { recursive: true }));

const source = (path: string) => readFileSync(join(root, path), "utf8");
const number = (text: string, pattern: RegExp) => Number(pattern.exec(text)?.[1]);

test("the versions are the same wherever they stand", () => {
  const library = source("swift/Sources/SoftMetal/FrontEnd/Compile/Clang.swift");
  const setup = source("scripts/lib/swift.sh");
  const tested = number(library, /testedVersion = (\d+)/);
  const oldest = number(library, /minimumVersion = (\d+)/);
  expect([tested, oldest]).toEqual([number(setup, /clang_tested=(\d+)/), number(setup, /clang_minimum=(\d+)/)]);
  expect([tested, oldest]).toEqual([19, 18]);
});

test("the library says what scripts look for where it finds none", () => {
  expect(source("swift/Sources/SoftMetal/FrontEnd/Compile/Clang.swift")).toContain(needsClang);
});

test("they are looked for in one order wherever that is done", () => {
  const order = (path: string, pattern: RegExp) => pattern.exec(source(path))?.[1]?.split(/, ?/).map(Number);
  const library = order("swift/Sources/SoftMetal/FrontEnd/Compile/Clang.swift", /for version in \[([\d, ]+)\]/);
  expect(library?.[0]).toBe(19);
  expect(order("scripts/lib/clang.ts", /versions = \[([\d, ]+)\]/)).toEqual(library);
  expect(order("scripts/lib/swift.sh", /clang-\{([\d,]+)\}/)).toEqual(library);
});

/** What set-up says where `clang-19` is missing and `name` says that it is `version`. */
async function setup(name: string, version: string) {
  const bin = join(folder, `${name}-${version}`);
  mkdirSync(bin, { recursive: true });
  for (const tool of ["dirname", "uname"]) {
    writeFileSync(join(bin, tool), `#!/bin/sh\nexec ${Bun.which(tool)} "$@"\n`, { mode: 0o755 });
  }
  writeFileSync(join(bin, name), `#!/bin/sh\necho ${version}\n`, { mode: 0o755 });
  const script = `. scripts/lib/common.sh; . scripts/lib/swift.sh; PATH=${bin}; have_clang && say_clang || echo none`;
  const { output, errors, status } = await run([Bun.which("bash") ?? "bash", "-c", script], { cwd: root });
  expect({ errors, status }).toEqual({ errors: "", status: 0 });
  return output;
}

test.each([
  ["clang-20", "20.1.8"],
  ["clang-18", "18.1.3"],
  ["clang", "24.0.0"],
])("set-up says that %s (%s) is taken untested, and what that costs", async (name, version) => {
  const said = await setup(name, version);
  expect(said).toContain(`clang ${version}: supported is clang 19`);
  expect(said).toContain("one thread at a time");
});

test("set-up says nothing of the supported one, and takes none that is too old", async () => {
  expect(await setup("clang-19", "19.1.7")).toBe("");
  expect(await setup("clang", "17.0.6")).toBe("none\n");
});
