/** Which executor kernels have, and that a kernel says so. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device } from "../../src/index.ts";
import { run } from "../helpers/run.ts";

const isLinux = process.platform === "linux";
/** Of every built-in kernel. */
const constants = [
  ...[0, 1, 200, 201, 300, 301, 303, 304, 400, 401, 402].map(
    (index) => ({ index, dtype: "bool", value: false }) as const,
  ),
  ...[420, 421].map((index) => ({ index, dtype: "u32", value: 1 }) as const),
];

if (isLinux && process.env["SOFTMETAL_EXECUTOR"] !== "fibres")
  test("every built-in kernel runs as vectors or as a loop", () => {
    using device = Device.open();
    const others = device.kernelNames.flatMap((kernel) => {
      using pipeline = device.pipeline(kernel, { constants });
      return ["vectors", "loop"].includes(pipeline.executor) ? [] : [`${kernel}: ${pipeline.executor}`];
    });
    expect(others).toEqual([]);
  }, 300_000);

const sum = `
#include <metal_stdlib>
using namespace metal;
kernel void lanes(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = simd_sum(x[i]); }
kernel void plain(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2.0f; }
`;

/** The executors of both kernels under other settings, in a process of its own. */
async function executors(environment: Record<string, string>): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "executors-"));
  try {
    const script = `
      import { Device } from ${JSON.stringify(join(import.meta.dir, "../../src/index.ts"))};
      using device = Device.open();
      device.registerSource("sum.metal", ${JSON.stringify(sum)});
      using memory = device.tensor("f32", [32]).set(new Float32Array(32).fill(1));
      const executors = ["lanes", "plain"].map((name) => {
        using pipeline = device.pipeline(name);
        using pass = device.pass();
        pass.dispatch(pipeline, { buffers: [memory], grid: 32, threads: 32 });
        pass.commitAndWait();
        return [pipeline.executor, pass.describe()[0].executor];
      });
      console.log(JSON.stringify([executors.flat(), memory.toFloat32Array()[0]]));`;
    const env = { ...process.env, SOFTMETAL_EXECUTOR: undefined, ...environment, SOFTMETAL_CACHE_DIR: folder };
    const { output, errors } = await run([process.execPath, "-e", script], { env });
    const [names, result] = JSON.parse(output || JSON.stringify([[errors], 0])) as [string[], number];
    expect(result).toBe(64);
    return names;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (isLinux)
  test.each([
    ["vectors where the pass is at hand", {}, /^vectors$/],
    ["fibres where they are asked for", { SOFTMETAL_EXECUTOR: "fibres" }, /^fibres \(SOFTMETAL_EXECUTOR is fibres\)$/],
    [
      "fibres where clang cannot load the pass",
      { SOFTMETAL_LANES: import.meta.path },
      /^fibres \(.*unable to load plugin/,
    ],
  ])("%s", async (_, environment, expected) => {
    const [lanes, described, ...loops] = await executors(environment);
    expect(lanes).toMatch(expected);
    expect(described).toBe(lanes as string);
    expect(loops).toEqual(["loop", "loop"]);
  });
