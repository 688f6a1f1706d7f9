import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type DeviceFigure, deviceRows, formatDeviceTable, measureDevice } from "../../scripts/bench/device/table.ts";
import { Device } from "../../src/index.ts";
import { plainEnvironment } from "../helpers/run.ts";

const script = resolve(import.meta.dir, "../../scripts/bench/main.ts");

function bench(...args: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, script, ...args], { env: plainEnvironment });
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

describe("the table of a device", () => {
  const device = Device.open({ device: "cpu" });
  for (const { name } of deviceRows) {
    test(`${name} is measured`, () => {
      const before = device.info.currentAllocatedSize;
      const [figure] = measureDevice(device, { quick: true, names: [name] }, (_, action) => action());
      const { time = 0, value, moved, share, ofMatrices, rounds } = figure ?? ({} as Partial<DeviceFigure>);
      expect(time).toBeGreaterThan(0);
      expect(time).toBeLessThan(30);
      for (const each of [value, moved, share]) expect(each).toBeGreaterThan(0);
      expect(ofMatrices !== undefined).toBe(name.startsWith("prefill-"));
      expect(ofMatrices ?? 1).toBeGreaterThan(0);
      expect(rounds).toBe(11);
      // What decode attention keeps for its splits stays.
      expect(device.info.currentAllocatedSize - device.info.scratchLength - before).toBeLessThan(2 ** 20);
    }, 60_000);
  }

  test("figures follow from the bytes and the time", () => {
    const figure = {
      name: "copy-rows-f32",
      time: 2e-3,
      value: 500,
      unit: "GB/s of source",
      moved: 1000,
      share: 0.5,
      rounds: 11,
    };
    const others = [
      { ...figure, name: "token-f16-b1", torch: 1e-3 },
      { ...figure, name: "prefill-d64", ofMatrices: 0.25, torch: 1e-3 },
    ];
    const lines = formatDeviceTable([figure, ...others]).split("\n");
    expect(lines[2]?.split(/ {2,}/)).toEqual(["copy-rows-f32", "2.00 ms", "500", "GB/s of source", "1000", "0.50"]);
    expect(lines[3]?.split(/ {2,}/).slice(4)).toEqual(["1000", "0.50", "1.00 ms", "0.50"]);
    expect(lines[4]?.split(/ {2,}/).slice(4)).toEqual(["1000", "0.50", "0.25", "1.00 ms", "0.50"]);
    expect(lines.slice(6)).toEqual([
      "copy-rows-f32: kvCacheCopy of rows of 1,024 elements, f32.",
      "prefill-d64: flashAttnPrefill in bf16, causal, 16 heads, D = 64.",
      "token-f16-b1: flashAttnDecode of a token of a sequence, 32 / 8 heads, D = 128, f16.",
    ]);
  });
});

describe("bench --device", () => {
  test("names the device, prints the rows that were asked for and keeps them as JSON", () => {
    const folder = mkdtempSync(join(tmpdir(), "metal-attention-device-bench-test-"));
    try {
      const path = join(folder, "figures.json");
      const args = ["--device", "cpu", "--quick", "--only", "rope-bf16", "--only", "copy-rows-f32", "--json", path];
      const { exitCode, stdout } = bench(...args);
      expect(exitCode).toBe(0);
      expect(stdout).toContain("tensors in private storage, medians of 11 rounds by the device's clock");
      const figures = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>[];
      expect(figures.map(({ name }) => name)).toEqual(["copy-rows-f32", "rope-bf16"]);
      for (const figure of figures) {
        expect(Object.keys(figure)).toEqual(["name", "time", "value", "unit", "moved", "share", "rounds"]);
      }
    } finally {
      rmSync(folder, { recursive: true });
    }
  }, 60_000);

  test.each([
    [["--device", "cpu", "--only", "rope"], 2, 'no row "rope" of a device; there are copy-rows-f32'],
    [["--device", "cpu", "--peers"], 2, "--peers runs on the CPU"],
    [["--device", "gpu"], 2, '--device is "gpu"'],
    [["--device", ""], 2, "--device"],
    [["--device", "99"], 1, "no device that can run kernels"],
  ])("%j is refused", (args, code, text) => {
    const { exitCode, stderr } = bench(...args);
    expect(exitCode).toBe(code);
    expect(stderr).toContain(text);
    expect(stderr).not.toMatch(/\.ts:\d+/);
  });
});
