import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { abiVersion } from "../../src/ffi/generated/symbols.ts";
import { libraryVariable, loadLibrary } from "../../src/ffi/library.ts";
import { Device } from "../../src/index.ts";
import { thrownBy } from "../helpers/errors.ts";

const extension = process.platform === "darwin" ? "dylib" : "so";
const localBuild = join(import.meta.dir, `../../build/lib/libMetalAttention.${extension}`);
const compiler = Bun.which("clang-19") ?? Bun.which("clang") ?? Bun.which("cc");
const environment = process.env[libraryVariable];
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "metal-attention-ffi-"));
});
afterEach(() => {
  if (environment === undefined) delete process.env[libraryVariable];
  else process.env[libraryVariable] = environment;
});
afterAll(() => rm(folder, { recursive: true }));

/** A shared library made of `source`. */
async function compile(name: string, source: string): Promise<string> {
  if (compiler === null) throw new Error("no C compiler: scripts/setup installs one");
  const path = join(folder, `${name}.${extension}`);
  await Bun.write(`${path}.c`, source);
  const { exitCode, stderr } = Bun.spawnSync([compiler, "-shared", "-fPIC", "-o", path, `${path}.c`]);
  if (exitCode !== 0) throw new Error(stderr.toString());
  return path;
}

describe("a library file that cannot be used", () => {
  test("named by the environment and missing: every place is listed, and no other file takes its place", () => {
    const path = join(folder, "missing.so");
    process.env[libraryVariable] = path;
    const error = thrownBy(() => Device.open());
    expect(error.code).toBe("library-not-found");
    expect(error.message).toContain(`${path} (${libraryVariable}): no such file`);
    expect(error.message).toContain(localBuild);
    expect(error.message).toContain("scripts/setup");
  });

  test("named by the option and missing", () => {
    process.env[libraryVariable] = join(folder, "other.so");
    const path = join(folder, "missing.so");
    const error = thrownBy(() => Device.open({ library: path }));
    expect(error.code).toBe("library-not-found");
    const places = [path, join(folder, "other.so"), "(platform package)", localBuild];
    const found = places.map((place) => error.message.indexOf(place));
    expect(found).not.toContain(-1);
    expect(found).toEqual(found.toSorted((a, b) => a - b));
  });

  test("no shared library at all, or a folder", async () => {
    const text = join(folder, "text.so");
    await Bun.write(text, "not a library");
    const directory = join(folder, "directory.so");
    await mkdir(directory);
    for (const path of [text, directory]) {
      process.env[libraryVariable] = path;
      const error = thrownBy(() => Device.open());
      expect(error.code).toBe("library-not-found");
      expect(error.message).toContain(path);
    }
  });

  test("a shared library of something else: the missing function is named", async () => {
    const path = await compile("other", "int other(void) { return 1; }");
    const error = thrownBy(() => Device.open({ library: path }));
    expect(error.code).toBe("library-not-found");
    expect(error.message).toContain(path);
    expect(error.message).toContain("ma_abi_version");
  });

  test("of this version, but without its functions", async () => {
    const path = await compile("hollow", `int ma_abi_version(void) { return ${abiVersion}; }`);
    const error = thrownBy(() => Device.open({ library: path }));
    expect(error.code).toBe("library-not-found");
    expect(error.message).toContain(path);
    expect(error.message).toMatch(/ma_\w+/);
  });

  test("of another ABI version: both numbers, and no other function is looked up", async () => {
    const path = await compile("newer", "int ma_abi_version(void) { return 4711; }");
    process.env[libraryVariable] = path;
    const error = thrownBy(() => Device.open());
    expect(error.code).toBe("abi-mismatch");
    expect(error.message).toContain(path);
    expect(error.message).toContain("4711");
    expect(error.message).toContain(`needs ${abiVersion}`);
  });
});

describe("a library file that can be used", () => {
  test("is found without help, and loaded once", () => {
    process.env[libraryVariable] = "";
    expect(loadLibrary()).toBe(loadLibrary());
    expect(loadLibrary(localBuild)).toBe(loadLibrary());
  });

  test("is found through the environment, by a path relative to the working directory too", () => {
    delete process.env[libraryVariable];
    const native = loadLibrary();
    process.env[libraryVariable] = localBuild;
    expect(loadLibrary()).toBe(native);
  });

  test("works after failed attempts", () => {
    thrownBy(() => Device.open({ library: join(folder, "missing.so") }));
    using device = Device.open();
    expect(device.info.name.length).toBeGreaterThan(0);
  });
});
