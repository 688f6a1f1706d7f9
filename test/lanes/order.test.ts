/** Threads that each move a vector of the language: they become vectors of threads, and what is stored in the order in
 * which it was loaded does not change places on the way. */
import { dlopen, ptr } from "bun:ffi";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Device } from "../../src/index.ts";
import { convertBits } from "../../src/reference/rounding.ts";
import { runChecked } from "../helpers/run.ts";
import { lanesPlugin } from "./plugin.ts";

const folder = mkdtempSync(join(tmpdir(), "order-"));
afterAll(() => rmSync(folder, { recursive: true }));

const isLinux = process.platform === "linux";
const source = join(import.meta.dir, "ir/order.ll");
const options = ["-O3", "-march=x86-64-v3", "-w"];

/** Numbers of every kind: halves between two results, infinities, NaN, those too large or too small. */
const special = [0, -0, 1, 1.00390625, 1.01171875, 65504, 65520, 1e-8, -6e-8, 3e38, Infinity, -Infinity, Number.NaN];
const numberAt = (i: number) => special[i % 17] ?? (i % 1000) / 7 - 60;

if (isLinux && process.arch === "x64") {
  test("vectors of threads have no change of places, but where the program has one", async () => {
    const code = await runChecked([
      ...["clang-19", ...options, "-S", "-emit-llvm", `-fpass-plugin=${lanesPlugin()}`],
      ...[source, "-o", "-"],
    ]);
    const body = (name: string) => code.split(new RegExp(`define[^\\n]*@${name}\\(`))[1]?.split("\n}")[0] ?? "";
    for (const [name, stored] of [
      ["moved", /store <\d+ x (float|i32)>/],
      ["rounded", /store <(16|32) x i16>/],
      ["scaled", /store <(16|32) x half>/],
    ] as const) {
      expect(body(name)).toMatch(stored);
      expect({ name, shuffles: body(name).match(/shufflevector/g)?.length ?? 0 }).toEqual({ name, shuffles: 0 });
    }
    expect(body("turned")).toMatch(/shufflevector/);
  });

  test.each([0, 1, 3, 4, 7, 8, 9, 33, 1000])("%d further threads get what each would alone", async (more) => {
    const library = join(folder, "order.so");
    await runChecked([
      "clang-19",
      ...options,
      "-shared",
      "-fPIC",
      `-fpass-plugin=${lanesPlugin()}`,
      source,
      "-o",
      library,
    ]);
    const signature = { args: ["ptr", "ptr", "i32"], returns: "void" } as const;
    const { symbols, close } = dlopen(library, {
      moved: signature,
      rounded: signature,
      scaled: signature,
      turned: signature,
    });
    const count = more + 1;
    const from = Float32Array.from({ length: 4 * count }, (_, i) => numberAt(i));
    const words = new Uint32Array(from.buffer);
    const guard = 0x5a5a;
    const run = (name: keyof typeof symbols, width: number) => {
      const to = new Uint16Array(4 * count * width + 8).fill(guard);
      symbols[name](ptr(from), ptr(to), count);
      expect([...to.subarray(-8)]).toEqual(Array(8).fill(guard));
      return to.subarray(0, -8);
    };
    const isNaN16 = (bits: number, infinity: number) => (bits & 0x7fff) > infinity;
    expect(new Uint32Array(run("moved", 2).slice().buffer)).toEqual(words);
    run("rounded", 1).forEach((bits, i) => {
      if (Number.isNaN(from[i])) expect(isNaN16(bits, 0x7f80)).toBe(true);
      else expect(bits).toBe(convertBits("f32", "bf16", words[i] as number));
    });
    run("scaled", 1).forEach((bits, i) => {
      const [scaled] = new Uint32Array(Float32Array.of((from[i] as number) / 4).buffer);
      if (Number.isNaN(from[i])) expect(isNaN16(bits, 0x7c00)).toBe(true);
      else expect(bits).toBe(convertBits("f32", "f16", scaled as number));
    });
    const turned = new Float32Array(run("turned", 2).slice().buffer);
    turned.forEach((value, i) => {
      const component = 3 - (i % 4);
      expect(value).toBe(Math.fround((from[i - (i % 4) + component] as number) * 2 ** (component + 1)));
    });
    close();
  });
}

/** What a kernel makes of two sources, element i of `n` components a thread. */
interface Case {
  readonly type: string;
  readonly components: number;
  /** Of `a` and `b`, vectors of the type; and the same of numbers, by component, where `v` has all of the thread's. */
  readonly metal: string;
  readonly value: (a: number, b: number, component: number, v: readonly number[]) => number;
}

const cases: readonly Case[] = [
  { type: "float4", components: 4, metal: "a", value: (a) => a },
  { type: "float4", components: 4, metal: "fma(a, b, a)", value: (a, b) => a * b + a },
  { type: "float4", components: 4, metal: "select(a, b, a < b)", value: (a, b) => Math.max(a, b) },
  {
    type: "float4",
    components: 4,
    metal: "float4(a.x < b.x ? a.x : b.x, a.y > b.y ? a.y : b.y, a.z < b.z ? a.z : b.z, a.w > b.w ? a.w : b.w)",
    value: (a, b, c) => (c % 2 === 0 ? Math.min(a, b) : Math.max(a, b)),
  },
  {
    type: "int4",
    components: 4,
    metal:
      "int4(a.x < b.x ? a.x * 3 : b.x, a.y < b.y ? b.y : a.y * 3, a.z < 9 ? a.z * 3 : b.z, a.w > 9 ? a.w * 3 : b.w)",
    value: (a, b, c) => (c === 1 ? b : c === 0 || (c === 2 && a < 9) || (c === 3 && a > 9) ? a * 3 : b),
  },
  { type: "float4", components: 4, metal: "a.wzyx + b", value: (_, b, c, v) => (v[3 - c] as number) + b },
  { type: "float4", components: 4, metal: "a * float4(1, 2, 3, 4) + b.x * 0 + b", value: (a, b, c) => a * (c + 1) + b },
  { type: "float2", components: 2, metal: "a - 2 * b", value: (a, b) => a - 2 * b },
  {
    type: "float2",
    components: 2,
    metal: "float2(a.y, b.x)",
    value: (_a, _b, c, v) => (c === 0 ? (v[1] as number) : (v[0] as number) + 1),
  },
  { type: "float3", components: 3, metal: "a + b", value: (a, b) => a + b },
  { type: "packed_float3", components: 3, metal: "a + b", value: (a, b) => a + b },
  { type: "int4", components: 4, metal: "(a << 3) - (b >> 1)", value: (a, b) => a * 8 - Math.floor(b / 2) },
  { type: "half4", components: 4, metal: "a + b", value: (a, b) => a + b },
  { type: "half4", components: 4, metal: "a.wzyx - b", value: (_, b, c, v) => (v[3 - c] as number) - b },
  { type: "bfloat4", components: 4, metal: "bfloat4(float4(a) + float4(b))", value: (a, b) => a + b },
  { type: "uint2", components: 2, metal: "a / max(b, 1u)", value: (a, b) => Math.floor(a / Math.max(b, 1)) },
];

const dtypeOf = (type: string) =>
  type.includes("bfloat") ? "bf16" : type.includes("half") ? "f16" : type.includes("float") ? "f32" : "i32";

/** One for independent threads, and one for lanes, which ask each other. */
const kernelsOf = ({ type, metal }: Case, index: number) =>
  ["", "if (simd_all(i != ~0u)) "]
    .map(
      (condition, form) => `
kernel void k${index}_${form}(const device ${type} *x [[buffer(0)]], const device ${type} *y [[buffer(1)]],
                      device ${type} *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  const ${type.replace("packed_", "")} a = x[i], b = y[i];
  ${condition}out[i] = ${metal};
}`,
    )
    .join("");

test.each(
  cases.flatMap((each, index) =>
    ["threads", "lanes"].map((who, form) => [who, `${each.type}: ${each.metal}`, each, `k${index}_${form}`] as const),
  ),
)("%s that compute %s", (_who, _what, { type, components, value }, name) => {
  using device = Device.open();
  device.registerSource(
    "order.metal",
    `#include <metal_stdlib>\nusing namespace metal;${cases.map(kernelsOf).join("")}`,
  );
  using pipeline = device.pipeline(name);
  const stride = type === "float3" ? 4 : components;
  for (const threads of [1, 5, 64, 203]) {
    const length = stride * threads;
    using x = device.tensor(dtypeOf(type), [length]);
    using y = device.tensor(dtypeOf(type), [length]);
    using out = device.tensor(dtypeOf(type), [length]);
    x.set(Float32Array.from({ length }, (_, i) => (i * 7) % 53));
    y.set(Float32Array.from({ length }, (_, i) => ((i * 7) % 53) + 1));
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: { 0: x, 1: y, 2: out }, grid: threads, threads: 64 });
    pass.commitAndWait();
    const [a, b, results] = [x, y, out].map((tensor) =>
      dtypeOf(type) === "i32" ? Array.from(tensor.view() as ArrayLike<number>) : Array.from(tensor.toFloat32Array()),
    ) as [number[], number[], number[]];
    for (let thread = 0; thread < threads; thread++) {
      const own = a.slice(thread * stride, thread * stride + components);
      const expected = own.map((each, c) => value(each, b[thread * stride + c] as number, c, own));
      expect({ thread, values: results.slice(thread * stride, thread * stride + components) }).toEqual({
        thread,
        values: expected,
      });
    }
  }
});
