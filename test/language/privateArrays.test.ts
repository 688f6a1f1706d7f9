/** Arrays of a thread's own that it indexes by what it reads: each thread has its own, however many run at once. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";

interface Case {
  readonly type: "float" | "float2" | "float4" | "half4" | "packed_float3" | "int3" | "Pair";
  readonly dtype: "f32" | "f16" | "i32";
  /** Elements of a value, and from one to the next in memory. */
  readonly components: number;
  readonly stride: number;
}

const cases: readonly Case[] = [
  { type: "float", dtype: "f32", components: 1, stride: 1 },
  { type: "float2", dtype: "f32", components: 2, stride: 2 },
  { type: "float4", dtype: "f32", components: 4, stride: 4 },
  { type: "half4", dtype: "f16", components: 4, stride: 4 },
  { type: "packed_float3", dtype: "f32", components: 3, stride: 3 },
  { type: "int3", dtype: "i32", components: 3, stride: 4 },
  { type: "Pair", dtype: "f32", components: 2, stride: 2 },
];

const kernels = ({ type }: Case): string => `
kernel void chosen_${type}(const device ${type} *in [[buffer(0)]], const device int *which [[buffer(1)]],
                           device ${type} *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  ${type} t[3];
  t[0] = in[3 * i], t[1] = in[3 * i + 1], t[2] = in[3 * i + 2];
  out[i] = t[which[i]];
}
kernel void placed_${type}(const device ${type} *in [[buffer(0)]], const device int *which [[buffer(1)]],
                           device ${type} *out [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  ${type} t[3] = {in[3 * i], in[3 * i + 1], in[3 * i + 2]};
  t[which[i]] = in[0];
  out[i] = t[(which[i] + which[i + 1]) % 3];
}`;
const lanes =
  "kernel void lanes(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]]) { x[i] = simd_sum(x[i]); }";

/** Alone, and in a source with a kernel whose lanes work together. */
const sources = ["", lanes].map(
  (other) => (type: Case) =>
    `#include <metal_stdlib>
using namespace metal;
struct Pair { float x, y; };
${kernels(type)}
${other}`,
);

test.each(
  cases.flatMap((each) =>
    sources.map((source, form) => [each.type, ["alone", "beside lanes"][form], each, source] as const),
  ),
)("%s, %s", (_type, _form, each, source) => {
  using device = Device.open();
  device.registerSource("arrays.metal", source(each));
  const { dtype, components, stride } = each;
  for (const threads of [1, 7, 64, 301]) {
    using input = device.tensor(dtype, [3 * threads * stride]);
    using which = device.tensor("i32", [threads + 1]);
    input.set(Float32Array.from({ length: 3 * threads * stride }, (_, i) => (i * 5) % 2003));
    which.set(Int32Array.from({ length: threads + 1 }, (_, i) => ((i * i + (i >> 2)) % 7) % 3));
    const read = (tensor: typeof input) =>
      tensor.dtype === "i32" ? Array.from(tensor.view() as ArrayLike<number>) : Array.from(tensor.toFloat32Array());
    const given = read(input);
    const chosen = Array.from(which.view() as ArrayLike<number>);
    const value = (place: number) => given.slice(place * stride, place * stride + components);
    const expected = {
      chosen: (i: number) => value(3 * i + (chosen[i] as number)),
      placed: (i: number) => {
        const place = ((chosen[i] as number) + (chosen[i + 1] as number)) % 3;
        return value(place === chosen[i] ? 0 : 3 * i + place);
      },
    };
    for (const kernel of ["chosen", "placed"] as const) {
      using out = device.tensor(dtype, [threads * stride]);
      using pipeline = device.pipeline(`${kernel}_${each.type}`);
      using pass = device.pass();
      pass.dispatch(pipeline, { buffers: { 0: input, 1: which, 2: out }, grid: threads, threads: 64 });
      pass.commitAndWait();
      const results = read(out);
      for (let i = 0; i < threads; i++)
        expect({ kernel, i, value: results.slice(i * stride, i * stride + components) }).toEqual({
          kernel,
          i,
          value: expected[kernel](i),
        });
    }
  }
});
