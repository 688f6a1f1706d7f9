/** A user's kernel of a built-in one's name is the one that `device.pipeline` finds, however the name is made. */
import { expect, test } from "bun:test";
import { Device, kvCacheCopy } from "../../src/index.ts";
import { countCase, floats } from "./harness.ts";
import { sourceSuite } from "./separate.ts";

const kernel = "kv_cache_copy_f32";
const own = {
  kernel,
  out: "float",
  inputs: [floats([1.5, -2, 3, 4])],
  grid: 4,
  threads: 4,
  expected: [3, -4, 6, 8],
} as const;
const parameters =
  "(device float *out [[buffer(0)]], const device float *in [[buffer(1)]], uint i [[thread_position_in_grid]])";
const body = `${parameters} { out[i] = in[i] * 2; }`;

const ways = [
  { ...own, name: "written out", source: `kernel void ${kernel}${body}` },
  {
    ...own,
    name: "pasted together by a macro",
    source: `#define NAME(op, type) kv_cache_##op##_##type\n#define KERNEL(op, type) kernel void NAME(op, type)\nKERNEL(copy, f32)${body}`,
  },
  {
    ...own,
    name: "the host name of an instance, joined of strings by a macro",
    source: `#define MAKE(T, name) template [[host_name("kv_cache_" #name)]] kernel decltype(twice<T>) twice<T>;\ntemplate <typename T> kernel void twice(device T *out [[buffer(0)]], const device T *in [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] * 2; }\nMAKE(float, copy_f32)`,
  },
  {
    ...own,
    name: "the host name of a kernel that is called otherwise",
    source: `[[host_name("${kernel}")]] kernel void other${body}`,
  },
  {
    ...own,
    name: "the host name of an instance, written out",
    source: `template <typename T> kernel void twice(device T *out [[buffer(0)]], const device T *in [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = in[i] * T(2); }\ntemplate [[host_name("${kernel}")]] kernel void twice<float>(device float *, const device float *, uint);`,
  },
] as const;
sourceSuite("ownNames", ways);

for (const { name, source } of ways) {
  const done = countCase();
  test(`ownNames: the built-in one beside it by its option: ${name}`, () => {
    using device = Device.open();
    device.registerSource("own.metal", `#include <metal_stdlib>\nusing namespace metal;\n${source}\n`);
    using own = device.pipeline(kernel);
    const off = [0, 1].map((index) => ({ index, dtype: "bool", value: false }) as const);
    using builtIn = device.pipeline(kernel, { builtIn: true, constants: off });
    using src = device.tensor("f32", [1, 4]).set([1, 2, 3, 4]);
    using cache = device.tensor("f32", [2, 4]);
    using out = device.tensor("f32", [4]);
    using pass = device.pass();
    // As the library's own: source, cache, and five numbers, of which row 1 of 2 is written.
    const bytes = { 2: Uint32Array.of(1, 4, 1, 2, 0) };
    pass.dispatch(builtIn, { buffers: [src, cache], bytes, grid: [4, 1], threads: [4, 1] });
    pass.dispatch(own, { buffers: [out, src], grid: 4, threads: 4 });
    pass.commitAndWait();
    expect([...cache.toFloat32Array()]).toEqual([0, 0, 0, 0, 1, 2, 3, 4]);
    expect([...out.toFloat32Array()]).toEqual([2, 4, 6, 8]);
    done();
  });
}

const done = countCase();
test("ownNames: the built-in operation beside it stays what it was", () => {
  using device = Device.open();
  device.registerSource("own.metal", `#include <metal_stdlib>\nusing namespace metal;\nkernel void ${kernel}${body}\n`);
  using pipeline = device.pipeline(kernel);
  using src = device.tensor("f32", [1, 4]);
  using cache = device.tensor("f32", [2, 4]);
  src.set([1, 2, 3, 4]);
  using pass = device.pass();
  kvCacheCopy(pass, { src, cache, writePos: 1 });
  pass.commitAndWait();
  expect([...cache.toFloat32Array()]).toEqual([0, 0, 0, 0, 1, 2, 3, 4]);
  expect(pipeline.info.staticThreadgroupMemoryLength).toBe(0);
  done();
});
