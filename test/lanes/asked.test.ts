/** Lanes that ask for another by a number that runs of them share, whatever it is computed of. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";

const source = `#include <metal_stdlib>
using namespace metal;

kernel void of_bfloat(const device bfloat *in [[buffer(0)]], device uint *out [[buffer(1)]],
                      uint lane [[thread_index_in_simdgroup]]) {
  out[lane] = simd_shuffle(lane * 3, ushort(in[lane / 8]));
}

kernel void of_product(const device bfloat *in [[buffer(0)]], device uint *out [[buffer(1)]],
                       uint lane [[thread_index_in_simdgroup]]) {
  const float product = float(in[lane / 16]) * 2.0f + 1.0f;
  out[lane] = simd_shuffle(lane * 3, ushort(product) + ushort(lane / 16));
}
`;

const numbers = [7, 0, 31, 16];

if (process.platform === "linux")
  test.each([
    ["of_bfloat", (lane: number) => 3 * (numbers[lane >> 3] as number)],
    ["of_product", (lane: number) => 3 * (2 * (numbers[lane >> 4] as number) + 1 + (lane >> 4))],
  ] as const)("%s", (kernel, expected) => {
    using device = Device.open();
    device.registerSource("asked.metal", source);
    using input = device.tensor("bf16", [4]);
    input.set(Float32Array.from(numbers));
    using out = device.tensor("u32", [32]);
    using pass = device.pass();
    pass.dispatch(device.pipeline(kernel), { buffers: [input, out], grid: 32, threads: 32 });
    pass.commitAndWait();
    expect([...out.view()]).toEqual(Array.from({ length: 32 }, (_, lane) => expected(lane)));
  });
