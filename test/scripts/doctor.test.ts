import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { type CaseResult, type Examination, examine } from "../../scripts/doctor/examine.ts";
import { Scrubber } from "../../scripts/doctor/report.ts";
import { formatOutcome } from "../../scripts/doctor/text.ts";
import type { Case } from "../../scripts/fixtures/operation.ts";
import { allCases, casesOfTwoForms } from "../../scripts/fixtures/operations/all.ts";
import { abiVersion } from "../../src/ffi/generated/symbols.ts";
import { checkLayouts, layoutFaults } from "../../src/ffi/layoutCheck.ts";
import { libraryVariable, loadLibrary } from "../../src/ffi/library.ts";
import { type LayoutStruct, nativeLayouts } from "../../src/ffi/nativeLayout.ts";
import { Device } from "../../src/index.ts";
import { compilingEnvironment, plainEnvironment } from "../helpers/run.ts";

const cases = allCases();

const root = resolve(import.meta.dir, "../..");
const program = join(root, "scripts/metal-attention.ts");
const compiler = Bun.which("clang-19") ?? Bun.which("clang") ?? Bun.which("cc");
using probe = Device.open();
const isSoftware = probe.info.backend === "SoftMetal";
let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "metal-attention-doctor-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(args: readonly string[], environment: Record<string, string | undefined> = {}) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, program, ...args], {
    env: { ...plainEnvironment, ...environment },
  });
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

const quiet = { found: () => {}, run: (_: string, action: () => CaseResult) => action() };
const someCases = cases.filter(({ operation }) => operation === "kvCacheCopy" || operation === "buildCausalMask");

describe("doctor on a sound installation", () => {
  const files = () => ({ json: join(folder, "report.json"), markdown: join(folder, "report.md") });
  test("names device, limits and every kernel; status 0", () => {
    const { exitCode, stdout } = run(["doctor", "--report", files().json]);
    using device = Device.open();
    expect(exitCode).toBe(0);
    const count = device.kernelNames.length;
    expect(stdout).toContain(`${count} are built in; ${count} were run and gave the right result`);
    expect(stdout).toContain(device.info.name);
    expect(stdout).toContain("32.0 KiB");
    expect(stdout).toContain("all is well");
    expect(stdout).toMatch(/^ {2}.+ \(.+\): loaded$/m);
    const report = JSON.parse(readFileSync(files().json, "utf8")) as Examination;
    expect(report.kernels.map(({ kernel }) => kernel)).toEqual(device.kernelNames.sort());
    expect(report.kernels.every(({ state }) => state === "right")).toBe(true);
    const others = isSoftware ? casesOfTwoForms(cases).map(({ name }) => `${name} (other form)`) : [];
    expect(report.cases.map(({ name }) => name)).toEqual([...cases.map(({ name }) => name), ...others]);
    expect(report.cases.every(({ seconds }) => seconds > 0)).toBe(true);
    expect(report.versions["Bun"]).toStartWith(Bun.version);
    expect(report.problems).toEqual([]);
  }, 300_000);

  test("writes Markdown too, and no personal path into either", () => {
    const { exitCode } = run(["doctor", "--report", files().markdown]);
    expect(exitCode).toBe(0);
    const texts = [readFileSync(files().json, "utf8"), readFileSync(files().markdown, "utf8")];
    expect(texts[1]).toStartWith("# metal-attention doctor");
    for (const text of texts) {
      for (const path of [root, process.cwd(), homedir(), tmpdir()]) expect(text).not.toContain(`${path}/`);
      expect(text).not.toMatch(new RegExp(`/${userInfo().username}/`));
      // What is left of a path begins with what stands for its folder.
      expect(text).not.toMatch(/(?<![\w.<>-])\/[\w.-]+\/[\w.-]+/);
    }
  }, 300_000);

  test("finds the layouts alike", () => {
    const { faults, structs, abiVersion: found } = checkLayouts(loadLibrary());
    expect({ faults, found }).toEqual({ faults: [], found: abiVersion });
    expect(structs).toBeGreaterThan(10);
  });
});

describe("doctor says what is wrong and how to mend it", () => {
  test("no library", () => {
    const { exitCode, stdout } = run(["doctor"], { [libraryVariable]: join(folder, "nowhere.so") });
    expect(exitCode).toBe(1);
    expect(stdout).toContain(`nowhere.so (${libraryVariable}): no such file`);
    expect(stdout).toContain("(local build): not tried");
    expect(stdout).toContain("none was run");
    expect(stdout).toMatch(/PROBLEM: no usable native library[\s\S]*to mend it: .*scripts\/setup/);
  });

  test("a library of another ABI", async () => {
    if (compiler === null) throw new Error("no C compiler: scripts/setup installs one");
    const library = join(folder, "old.so");
    await Bun.write(`${library}.c`, `int ma_abi_version(void) { return ${abiVersion + 1}; }`);
    expect(Bun.spawnSync([compiler, "-shared", "-fPIC", "-o", library, `${library}.c`]).exitCode).toBe(0);
    const { exitCode, stdout } = run(["doctor"], { [libraryVariable]: library });
    expect(exitCode).toBe(1);
    expect(stdout).toContain(`ABI version ${abiVersion + 1}, this package needs ${abiVersion}`);
    expect(stdout).toContain("(local build): not tried");
    expect(stdout).toContain("to mend it: build the library again");
  });

  test("other layouts", () => {
    const { structs } = nativeLayouts(loadLibrary());
    expect(layoutFaults(structs)).toEqual([]);
    for (const [name, struct] of structs) {
      const others = (changed: LayoutStruct) => layoutFaults(new Map(structs).set(name, changed));
      const { fields } = struct;
      const moved = fields.map((field) => ({ ...field, offset: field.offset + 4 }));
      const changes = [
        { ...struct, size: struct.size + 8 },
        { ...struct, fields: moved },
      ];
      changes.push({ ...struct, fields: fields.slice(1) });
      if (fields.length > 1) changes.push({ ...struct, fields: fields.toReversed() });
      for (const change of changes) expect(others(change)).toEqual([expect.stringContaining(`${name} is "`)]);
      const without = new Map(structs);
      without.delete(name);
      expect(layoutFaults(without)).toEqual([`the library has no struct ${name}`]);
    }
  });

  test("a kernel that gives a wrong result: its name, its case, and the rest right", () => {
    const planted = someCases.map((each): Case => {
      if (each.name !== "kvCacheCopy.f16-ring") return each;
      return {
        ...each,
        make(seed) {
          const fixture = each.make(seed);
          const cache = fixture.expected.get("cache");
          if (cache === undefined) throw new Error("no cache");
          const bytes = cache.bytes.map((byte, i) => (i === 7 ? byte ^ 0x10 : byte));
          return { ...fixture, expected: new Map([["cache", { ...cache, bytes }]]) };
        },
      };
    });
    const { problems, kernels } = examine(() => planted, quiet);
    expect(problems[0]?.what).toContain("1 of 12 cases went wrong\nkvCacheCopy.f16-ring: cache: element 3");
    expect(problems[0]?.mend).toContain("--report");
    const wrong = kernels.filter(({ state }) => state === "wrong");
    expect(wrong).toEqual([{ kernel: "kv_cache_copy_f16", state: "wrong", case: "kvCacheCopy.f16-ring" }]);
    expect(kernels.find(({ kernel }) => kernel === "kv_cache_copy_f32")?.state).toBe("right");
  });

  test("kernels that no case ran", () => {
    const examination = examine(() => someCases, quiet);
    const untried = examination.kernels.filter(({ state }) => state === "untried").length;
    expect(untried).toBeGreaterThan(10);
    expect(examination.problems.map(({ what }) => what)).toEqual([
      expect.stringContaining(`${untried} built-in kernels were not run`),
    ]);
    expect(formatOutcome(examination)).toContain(`and ${untried - 5} more`);
  });

  // An Apple device compiles with Apple's compiler.
  if (isSoftware)
    test("a clang of another version: which is supported, and how kernels run with this one", () => {
      // It says that it is another, and compiles as the real one does.
      const bin = mkdtempSync(join(folder, "bin-"));
      if (compiler === null) throw new Error("no C compiler: scripts/setup installs one");
      const script = `#!/bin/sh
[ "$1" = --version ] && { echo 'clang version 21.1.0'; exit; }
exec ${compiler} "$@"
`;
      writeFileSync(join(bin, "clang"), script, { mode: 0o700 });
      const child = `import { inspectInstallation } from ${JSON.stringify(join(root, "scripts/doctor/installation.ts"))};
import { formatInstallation } from ${JSON.stringify(join(root, "scripts/doctor/text.ts"))};
const { installation, device } = inspectInstallation();
console.log(formatInstallation(installation));
device?.dispose();`;
      const inspect = (environment: Record<string, string>) => {
        const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, "-e", child], {
          env: {
            ...plainEnvironment,
            SOFTMETAL_LANES: undefined,
            SOFTMETAL_CACHE_DIR: join(folder, "cache"),
            ...environment,
          },
        });
        expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
        return stdout.toString();
      };
      const supported =
        /^clang\n {2}19 is supported, since all tests ran with it; another from 18 on is taken, untested, and runs kernels with lanes one thread at a time/m;
      const other = inspect({ SOFTMETAL_CLANG: "clang", PATH: `${bin}:${process.env["PATH"] ?? ""}` });
      expect(other).toMatch(supported);
      expect(other).toMatch(/^ {2}threads \(softmetal-lanes-21\.so.*this is clang 21, and clang 19 is supported\)$/m);
      const own = inspect({});
      expect(own).toMatch(supported);
      expect(own).toMatch(/^ {2}vectors$/m);
    }, 60_000);

  if (isSoftware)
    test("no compiler", () => {
      const environment = {
        ...compilingEnvironment,
        SOFTMETAL_CLANG: join(folder, "no-clang"),
        SOFTMETAL_CACHE_DIR: join(folder, "cache"),
      };
      const { exitCode, stdout } = run(["doctor"], environment);
      expect(exitCode).toBe(1);
      expect(stdout).toContain(`${cases.length} of ${cases.length} cases went wrong`);
      expect(stdout).toContain("to mend it: on Linux, install clang");
    });
});

test("what is personal in a path is cut away", () => {
  const scrubber = new Scrubber({ "<home>": "/home/alice", "<package>": "/home/alice/work/package", "<root>": "/" });
  expect(scrubber.clean("/home/alice/work/package/build/lib/a.so (local build): no such file")).toBe(
    "<package>/build/lib/a.so (local build): no such file",
  );
  expect(scrubber.clean("in '/home/alice/x/y.metal:3:1' and /opt/bob/secret/lib.so.")).toBe(
    "in '<home>/x/y.metal:3:1' and <path>/lib.so.",
  );
  expect(scrubber.clean("/home/alice-2/a.ts, /home/alice.ts, /home/alice: no such folder, /home/alice.")).toBe(
    "<path>/a.ts, <path>/alice.ts, <home>: no such folder, <home>.",
  );
  expect(scrubber.clean("file:///mnt/carol/a.ts, 5 GB/s, and/or a/b/c")).toBe(
    "file://<path>/a.ts, 5 GB/s, and/or a/b/c",
  );
});

describe("metal-attention", () => {
  test("has help; bench hands its arguments on", () => {
    expect(run(["--help"]).stdout).toContain("doctor");
    expect(run(["doctor", "--help"]).stdout).toContain("--report FILE");
    const bench = run(["bench", "--help"]);
    expect([bench.exitCode, bench.stdout]).toEqual([0, expect.stringContaining("--only NAME")]);
    const wrong = run(["bench", "--only", "nothing"]);
    expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining('"nothing"')]);
  });

  test.each([[[]], [["doktor"]], [["doctor", "x"]], [["doctor", "--reprot"]]])("%p: status 2", (args) => {
    expect(run(args).exitCode).toBe(2);
  });
});
