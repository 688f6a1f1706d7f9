import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { Device } from "../../src/index.ts";

const root = join(import.meta.dir, "../..");
const tool = join(root, "build/bin/metal-attention-tool");
const folder = mkdtempSync(join(tmpdir(), "metal-attention-tool-"));
afterAll(() => rmSync(folder, { recursive: true }));

function run(...args: string[]) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([tool, ...args]);
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

function shader(name: string, ...lines: string[]): string {
  const path = join(folder, name);
  writeFileSync(path, ["#include <metal_stdlib>", "using namespace metal;", ...lines, ""].join("\n"));
  return path;
}

test("help names every command", () => {
  const { exitCode, stdout } = run("--help");
  expect(exitCode).toBe(0);
  for (const command of ["device", "layout", "compile", "kernels"])
    expect(stdout).toMatch(new RegExp(`^  ${command} `, "m"));
});

test("output that is lost is no success", () => {
  for (const command of ["kernels", "layout --json"]) {
    const { exitCode, stderr } = Bun.spawnSync(["bash", "-c", `"${tool}" ${command} >/dev/full`]);
    expect(exitCode).toBe(1);
    expect(stderr.toString()).toContain("cannot write to standard output: No space left on device");
  }
});

test("device prints what Device.info says", () => {
  using device = Device.open();
  const { name, backend, maxBufferLength } = device.info;
  const { exitCode, stdout } = run("device");
  expect(exitCode).toBe(0);
  const rows = Object.fromEntries(stdout.split("\n").map((line) => [line.slice(0, 24).trim(), line.slice(25)]));
  expect(rows["name"]).toBe(name);
  expect(rows["backend"]).toBe(backend);
  expect(rows["maximum buffer length"]).toBe(String(maxBufferLength));
  expect(rows["threads per threadgroup"]).toBe("1024 x 1024 x 1024");
});

test("kernels prints the built-in names", () => {
  using device = Device.open();
  const { exitCode, stdout } = run("kernels");
  expect(exitCode).toBe(0);
  expect(stdout.trim().split("\n")).toEqual(device.kernelNames);
});

test("layout prints every struct, as text and as JSON", () => {
  const json = run("layout", "--json");
  const text = run("layout");
  expect([json.exitCode, text.exitCode]).toEqual([0, 0]);
  const layout = JSON.parse(json.stdout) as { structs: { name: string; size: number; alignment: number }[] };
  expect(layout.structs.find(({ name }) => name === "AttnParams")?.size).toBe(160);
  for (const { name, size, alignment } of layout.structs) {
    expect(text.stdout).toContain(`\n${name}: ${size} bytes, alignment ${alignment}\n`);
  }
});

test("compile makes a pipeline of every entry point, those named by macros too", () => {
  const path = shader(
    "fine.metal",
    "constant bool twice [[function_constant(3)]];",
    "constant uint2 shape [[function_constant(4)]];",
    "constant half4 weights [[function_constant(5)]];",
    "constant long far [[function_constant(6)]];",
    "kernel void three(device float *x [[buffer(0)]]) { x[0] = float(weights.w) * shape.y + far; }",
    "kernel void one(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] *= twice ? 2 : 1; }",
    "#define FILL(name, value) kernel void name(device float *x [[buffer(0)]]) { x[0] = value; }",
    "FILL(two, 2)",
  );
  const { exitCode, stdout } = run(
    ...["compile", path, "--constant", "3=bool:true", "--constant", "4=u32:1,2"],
    ...["--constant", "5=f16:1,2,3,4.5", "--constant", "6=i64:-9223372036854775808"],
  );
  expect(stdout).toMatch(
    /^ {2}ok {6}one: up to 1024 threads, SIMD width 32, 0 bytes of threadgroup memory; runs as loop$/m,
  );
  expect(stdout).toMatch(/^ {2}ok {6}two: /m);
  expect(exitCode).toBe(0);
  expect(run("compile", path).exitCode).toBe(0); // without a value the constant is false
  // A value in the wrong place is an error, not another value.
  for (const bad of ["3=bool:1", "3=bool:", "3=u8:256", "3=u8:1,2,3,4,5", "3=u8:1,", "3=u128:1", "x=u8:1", "3"]) {
    expect({ bad, ...run("compile", path, "--constant", bad) }).toMatchObject({ bad, exitCode: 2 });
  }
});

test("compile gives constants the zeros that they need, whatever their index and type are written as", () => {
  const path = shader(
    "indices.metal",
    "#define BASE 20",
    "enum Slot { kFirst = 30, kSecond };",
    "constant constexpr int kShift = 2;",
    "constant unsigned int count [[function_constant(BASE + 1)]];",
    "constant vec<float, 3> scale [[function_constant(kSecond)]];",
    "constant unsigned short small [[ function_constant ( 1 << kShift ) ]], other [[function_constant(40)]];",
    "#define CONSTANT(type, name, at) constant type name [[function_constant(at)]]",
    "CONSTANT(bool, wide, BASE * 2 + 5);",
    "namespace inner { constant half4 weights [[function_constant(50)]]; }",
    "constant bool isWide = is_function_constant_defined(wide) ? wide : false;",
    "kernel void all(device float *x [[buffer(0)]]) { x[0] = count + scale.z + small + other + isWide + inner::weights.w; }",
    "template <typename T> kernel void half_of(device T *x [[buffer(0)]]) { x[0] = T(small) / T(count + 1); }",
    'template [[host_name("half_of_float")]] kernel void half_of<float>(device float *);',
  );
  const { exitCode, stdout } = run("compile", path);
  expect(stdout).toMatch(/^ {2}ok {6}all: /m);
  expect(stdout).toMatch(/^ {2}ok {6}half_of_float: /m);
  expect(exitCode).toBe(0);
  // Those that are given stay, and a wrong one is refused with the type that the compiler knows.
  expect(run("compile", path, "--constant", "31=f32:1,2,3", "--constant", "4=u16:7").exitCode).toBe(0);
  expect(run("compile", path, "--constant", "21=f32:1").stdout).toContain("has type uint, the value has type float");
});

if (process.platform === "linux")
  test.each([
    [undefined, /^ {2}ok {6}summed: .*; runs as vectors$/m],
    ["threads", /^ {2}ok {6}summed: .*; runs as threads \(SOFTMETAL_EXECUTOR is threads\)$/m],
  ])("compile says what runs a kernel, with SOFTMETAL_EXECUTOR %p", (executor, expected) => {
    const path = shader("summed.metal", "kernel void summed(device float *x [[buffer(0)]]) { x[0] = simd_sum(x[0]); }");
    const env = { ...process.env, SOFTMETAL_EXECUTOR: executor, PATH: `${dirname(tool)}:${process.env["PATH"]}` };
    expect(Bun.spawnSync([tool, "compile", path], { env }).stdout.toString()).toMatch(expected);
    // As a shell finds it, which gives a program no more than its name.
    const found = Bun.spawnSync(["bash", "-c", `${basename(tool)} compile ${path}`], { env });
    expect(found.stdout.toString()).toMatch(expected);
  });

test("compile takes a file whose kernels are built in", () => {
  const { exitCode, stdout } = run("compile", join(root, "shaders/kv_cache_copy.metal"));
  expect(stdout).toMatch(/^ {2}ok {6}kv_cache_copy_f32: /m);
  expect(exitCode).toBe(0);
});

test("compile finds the headers that shaders share, and no others", () => {
  const { exitCode, stdout } = run("compile", join(root, "shaders/hadamard_quantize_kv_any.metal"));
  expect(stdout).toMatch(/^ {2}ok {6}hadamard_quantize_kv_seq_dense: /m);
  expect(exitCode).toBe(0);
  // The second time a header says nothing, and lines behind it keep their numbers.
  const includes = ['#include "hadamard_formats.h" // codes', '#include "hadamard_formats.h"'];
  const bad = shader("include.metal", ...includes, "kernel void k(device float *x [[buffer(0)]]) { x[0] = missing; }");
  expect(run("compile", bad).stdout).toMatch(/include\.metal:5:55: error: .*'missing'.*\n.* x\[0\] = missing; /);
  const first = join(folder, "first line.metal");
  writeFileSync(first, "kernel void k(device float *x [[buffer(0)]]) { y; }");
  expect(run("compile", first).stdout).toMatch(/first line\.metal:1:48: error: .*'y'.*\n +kernel void k\(/);
  const unknown = run("compile", shader("unknown.metal", '#include "unknown.h"'));
  expect(unknown).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("'unknown.h' file not found") });
});

test("compile takes what lies beside a file, from the folder of each text on", () => {
  mkdirSync(join(folder, "parts/more"), { recursive: true });
  writeFileSync(
    join(folder, "parts/b.h"),
    '#pragma once\n#include "more/c.h"\n#include "../d.h"\nint b() { return C + D; }',
  );
  writeFileSync(join(folder, "parts/more/c.h"), "#define C 1");
  writeFileSync(join(folder, "d.h"), "#define D 2");
  const kernel = "kernel void beside(device int *x [[buffer(0)]]) { x[0] = b() + EXTRA; }";
  const path = shader("beside.metal", "#define EXTRA 3", '#include "parts/b.h"', '#include "empty.h"', kernel);
  writeFileSync(join(folder, "empty.h"), "");
  const { exitCode, stdout } = run("compile", path);
  expect(stdout).toMatch(/^ {2}ok {6}beside: /m);
  expect(exitCode).toBe(0);
  // By a relative path too, and its errors at their places.
  const relative = Bun.spawnSync([tool, "compile", "./beside.metal"], { cwd: folder });
  expect(relative.exitCode).toBe(0);
  writeFileSync(join(folder, "parts/more/c.h"), "\n\nint c() { return nothing; }\n#define C 1");
  expect(run("compile", path).stdout).toContain(`${join(folder, "parts/more/c.h")}:3:18: error:`);
  // A text with kernels, which needs what comes before it, and a file that includes itself.
  writeFileSync(join(folder, "part.h"), "kernel void partly(device int *x [[buffer(0)]]) { x[0] = N; }");
  const whole = run("compile", shader("whole.metal", "#define N 1", '#include "part.h"'));
  expect(whole).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^ {2}ok {6}partly: /m) });
  const circle = run("compile", shader("circle.metal", '#include "circle.metal"'));
  expect(circle).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("in a circle") });
});

test("compile shows diagnostics with the line of the source, and goes on with the next file", () => {
  const bad = shader("bad.metal", "kernel void k(device float *x [[buffer(0)]]) {", "  x[0] = missing;", "}");
  const fine = shader("next.metal", "kernel void next_one(device float *x [[buffer(0)]]) { x[0] = 1; }");
  const { exitCode, stdout } = run("compile", bad, fine);
  expect(stdout).toContain(`${bad}:4:10: error:`);
  expect(stdout).toContain("missing");
  expect(stdout).toMatch(/^ {2}ok {6}next_one: /m);
  expect(exitCode).toBe(1);
});

test("compile refuses what is no shader", () => {
  const empty = shader("empty.metal", "float helper(float x) { return x; }");
  expect(run("compile", empty)).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("has no kernel") });
  const missing = run("compile", join(folder, "missing.metal"));
  expect(missing).toMatchObject({ exitCode: 1, stdout: expect.stringContaining("cannot be read") });
});

test("wrong arguments are refused with the usage", () => {
  for (const args of [["compile"], ["compile", "x", "--constant", "3=bool"], ["layout", "--yaml"], ["nothing"]]) {
    const { exitCode, stderr } = run(...args);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("Usage: metal-attention-tool");
  }
});
