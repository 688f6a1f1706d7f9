/** Which executor kernels have, and that a kernel says so. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device } from "../../src/index.ts";
import { run } from "../helpers/run.ts";

const root = join(import.meta.dir, "../..");
const isLinux = process.platform === "linux";
/** Of every built-in kernel. */
const constants = [
  ...[
    0, 1, 2, 3, 4, 5, 200, 201, 300, 301, 303, 304, 305, 306, 307, 400, 401, 402, 403, 404, 422, 500, 501, 502, 503,
    504, 505, 506, 600,
  ].map((index) => ({ index, dtype: "bool", value: false }) as const),
  ...[6, 7, 8, 420, 421, 430].map((index) => ({ index, dtype: "u32", value: 1 }) as const),
];

if (isLinux && process.env["SOFTMETAL_EXECUTOR"] !== "threads")
  test("every built-in kernel runs as vectors or as a loop", () => {
    using device = Device.open();
    const others = device.kernelNames.flatMap((kernel) => {
      using pipeline = device.pipeline(kernel, { constants });
      return ["vectors", "loop"].includes(pipeline.executor) ? [] : [`${kernel}: ${pipeline.executor}`];
    });
    expect(others).toEqual([]);
    // Where none lies compiled, a second or two for each.
  }, 900_000);

const sum = `
#include <metal_stdlib>
using namespace metal;
kernel void lanes(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = simd_sum(x[i]); }
kernel void plain(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= 2.0f; }
`;

if (isLinux && process.env["SOFTMETAL_EXECUTOR"] !== "threads")
  test("a kernel that the pass declines leaves those beside it as they are", () => {
    using device = Device.open();
    // What a SIMD group has in private arrays lies on one stack: 80 KiB a thread do not fit.
    const large = `
kernel void large(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  uint all[20480];
  for (uint j = 0; j < 20480; j++) all[j] = j * uint(x[0]);
  x[i] = simd_sum(all[uint(x[i])]);
}`;
    device.registerSource("several.metal", sum + large);
    const executors = ["lanes", "plain", "large"].map((kernel) => {
      using pipeline = device.pipeline(kernel);
      return pipeline.executor.replace(/: .*/, "");
    });
    expect(executors).toEqual(["vectors", "loop", "threads (kernel 'large' cannot run as vectors"]);
    using x = device.tensor("f32", [32]).set(new Float32Array(32).fill(3));
    using pass = device.pass();
    for (const kernel of ["lanes", "plain"]) {
      using pipeline = device.pipeline(kernel);
      pass.dispatch(pipeline, { buffers: [x], grid: 32, threads: 32 });
    }
    pass.commitAndWait();
    expect(x.toFloat32Array()).toEqual(new Float32Array(32).fill(192));
  });

/** By name: a program that says it is clang 18, for which there is no pass, and one that a signal ends with the pass. */
const otherClangs: Readonly<Record<string, string>> = {
  another: 'if [ "$1" = --version ]; then echo "Debian clang version 18.1.8"; else exec clang-19 "$@"; fi',
  dying: 'for word; do case $word in -fpass-plugin=*) kill -11 $$ ;; esac; done; exec clang-19 "$@"',
};
function otherClang(folder: string, name: string): string {
  const path = join(folder, "clang");
  writeFileSync(path, `#!/bin/sh\n${otherClangs[name]}\n`, { mode: 0o755 });
  return path;
}

/** The executors of both kernels under other settings, in a process of its own, then what `doctor` says. */
async function executors(environment: Record<string, string>): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "executors-"));
  try {
    const { SOFTMETAL_CLANG: clang } = environment;
    if (clang !== undefined) environment = { SOFTMETAL_CLANG: otherClang(folder, clang) };
    const script = `
      import { inspectInstallation } from ${JSON.stringify(join(root, "scripts/doctor/installation.ts"))};
      import { Device } from ${JSON.stringify(join(root, "src/index.ts"))};
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
      const { installation, device: opened } = inspectInstallation();
      opened?.dispose();
      executors.push(installation.executor);
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
    [
      "threads where they are asked for",
      { SOFTMETAL_EXECUTOR: "threads" },
      /^threads \(SOFTMETAL_EXECUTOR is threads\)$/,
    ],
    [
      "threads with a clang that the pass was not built for",
      { SOFTMETAL_CLANG: "another" },
      /^threads \(softmetal-lanes-18\.so, the compiler pass .* is not beside .*; this is clang 18, and clang 19 is /,
    ],
    [
      "threads where clang dies with the pass",
      { SOFTMETAL_CLANG: "dying" },
      /^threads \(.*the compiler, .*clang, ended with signal 11 while it compiled/,
    ],
    [
      "threads where clang cannot load the pass",
      { SOFTMETAL_LANES: import.meta.path },
      /^threads \(.*unable to load plugin/,
    ],
  ])("%s, and doctor says so", async (_, environment, expected) => {
    const [lanes, described, loop, describedLoop, ofDoctor] = await executors(environment);
    expect(lanes).toMatch(expected);
    expect(described).toBe(lanes as string);
    expect([loop, describedLoop]).toEqual(["loop", "loop"]);
    expect(ofDoctor).toMatch(expected);
  });

if (isLinux)
  test("another executor is refused with those that there are", async () => {
    const script = `
      import { Device } from ${JSON.stringify(join(root, "src/index.ts"))};
      Device.open();`;
    const env = { ...process.env, SOFTMETAL_EXECUTOR: "fibres" };
    const { status, errors } = await run([process.execPath, "-e", script], { env });
    expect(status).not.toBe(0);
    expect(errors).toContain('SOFTMETAL_EXECUTOR is "fibres"; expected vectors or threads');
  });
