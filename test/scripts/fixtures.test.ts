import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Draw } from "../../scripts/fixtures/draw.ts";
import { makeFiles, readFixture, readManifest } from "../../scripts/fixtures/manifest.ts";
import { allCases, casesOfTwoForms, operations } from "../../scripts/fixtures/operations/all.ts";
import { runFixture } from "../../scripts/fixtures/run.ts";
import { openWith } from "../../scripts/lib/open-device.ts";
import * as api from "../../src/index.ts";
import { nmse } from "../../src/reference/index.ts";
import { isOtherGpu } from "../helpers/otherGpu.ts";
import { testTable } from "../helpers/table.ts";

const cases = allCases();

const device = api.Device.open();
afterAll(() => device.dispose());

const folder = join(import.meta.dir, "../fixtures");
const manifest = readManifest(folder);
const names = (list: readonly { readonly name: string }[]) => list.map(({ name }) => name);

describe("the committed fixtures", () => {
  test("take less than 2 MB, and the manifest names every file", () => {
    const files = readdirSync(folder).sort();
    expect(files).toEqual([...manifest.cases.map(({ file }) => file), "manifest.json"].sort());
    const bytes = files.reduce((sum, file) => sum + readFileSync(join(folder, file)).length, 0);
    expect(bytes).toBeLessThan(2_000_000);
  });

  test("have cases of every operation", () => {
    expect([...new Set(manifest.cases.map(({ operation }) => operation))].sort()).toEqual(names(operations).sort());
  });

  test("are made again byte for byte from their seed", () => {
    const out = mkdtempSync(join(tmpdir(), "metal-attention-fixtures-"));
    try {
      const program = join(import.meta.dir, "../../scripts/metal-attention-fixtures.ts");
      const { exitCode } = Bun.spawnSync([process.execPath, program, "generate", "--like", folder, "--out", out]);
      expect(exitCode).toBe(0);
      expect(readdirSync(out).sort()).toEqual(readdirSync(folder).sort());
      for (const name of readdirSync(folder)) {
        expect([name, Buffer.compare(readFileSync(join(out, name)), readFileSync(join(folder, name)))]).toEqual([
          name,
          0,
        ]);
      }
    } finally {
      rmSync(out, { recursive: true, force: true });
    }
  }, 60_000);
});

testTable("committed fixtures on the device", manifest.cases, (entry) => {
  expect(runFixture(device, readFixture(folder, entry)).fault).toBeUndefined();
});

const ran = new Set<string>();
testTable("every case that can be generated, of another seed", cases, (entry) => {
  const { fault, kernels } = runFixture(device, entry.make(0xdead_beef));
  expect(fault).toBeUndefined();
  expect(kernels.length).toBeGreaterThan(0);
  for (const kernel of kernels) ran.add(kernel);
});

// The form that the device does not take by itself: a GPU of NVIDIA's has units for matrices.
const otherDevice = openWith({ SOFTMETAL_MATRIX_UNITS: isOtherGpu ? "0" : "1" });
afterAll(() => otherDevice.dispose());
testTable("those of two forms by the other one", casesOfTwoForms(cases), (entry) => {
  const { fault, kernels } = runFixture(otherDevice, entry.make(0xdead_beef));
  expect(fault).toBeUndefined();
  for (const kernel of kernels) ran.add(kernel);
});

describe("what the cases reach", () => {
  test("every built-in kernel", () => {
    expect(device.kernelNames.filter((kernel) => !ran.has(kernel))).toEqual([]);
  });

  test("every function of the package that takes a pass, and a pass's own copies", () => {
    const takesPass = Object.entries(api).filter(([, value]) => {
      // The first thing that an operation checks is its pass.
      if (typeof value !== "function" || !/^[a-z]/.test(value.name)) return false;
      try {
        (value as (pass: unknown, args: unknown) => unknown)(undefined, {});
      } catch (error) {
        return error instanceof api.MetalAttentionError && error.argument === "pass";
      }
      return false;
    });
    expect([...takesPass.map(([name]) => name), "copy"].sort()).toEqual(names(operations).sort());
  });

  test("case names are file names, unlike each other in any case of letters", () => {
    expect(new Set(names(cases).map((name) => name.toLowerCase())).size).toBe(cases.length);
    for (const { name } of cases) expect(name).toMatch(/^[A-Za-z][A-Za-z0-9.-]*$/);
  });
});

describe("the generator", () => {
  test("gives a seed's bytes again, and other bytes for another seed or another case", () => {
    const some = cases.filter(({ operation }) => operation === "kvCacheCopy");
    expect(makeFiles(some, 7)).toEqual(makeFiles(some, 7));
    const hashes = [7, 8].flatMap((seed) => makeFiles(some, seed).map(({ bytes }) => Bun.hash(bytes)));
    expect(new Set(hashes).size).toBe(hashes.length);
  });

  test("a case does not depend on those around it", () => {
    const all = makeFiles(cases.slice(0, 8), 3);
    const [alone] = makeFiles(cases.slice(5, 6), 3);
    expect(all.find(({ name }) => name === alone?.name)?.bytes).toEqual(alone?.bytes as Uint8Array<ArrayBuffer>);
  });

  test("numbers are multiples of 2^-19 in [-3, 3), of mean 0 and variance 1", () => {
    const values = new Draw(5, "numbers").normals(100_000);
    expect(values.every((value) => Number.isInteger(value * 2 ** 19) && value >= -3 && value < 3)).toBe(true);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    expect(Math.abs(mean)).toBeLessThan(0.02);
    expect(Math.abs(nmse(values, new Float32Array(values.length).fill(1)) - 2)).toBeLessThan(0.05);
  });

  test("begins as its description says", () => {
    // FNV-1a of "5/numbers", and the first three integers of mulberry32 from there.
    let hash = 0x811c9dc5n;
    for (const byte of Buffer.from("5/numbers")) hash = ((hash ^ BigInt(byte)) * 0x01000193n) & 0xffff_ffffn;
    const draw = new Draw(5, "numbers");
    const mask = 0xffff_ffffn;
    for (let i = 1n; i <= 3n; i++) {
      const state = (hash + i * 0x6d2b79f5n) & mask;
      let mixed = ((state ^ (state >> 15n)) * (state | 1n)) & mask;
      mixed ^= (mixed + (mixed ^ (mixed >> 7n)) * (mixed | 61n)) & mask;
      expect(draw.bits()).toBe(Number((mixed ^ (mixed >> 14n)) & mask));
    }
  });
});
