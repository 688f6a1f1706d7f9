/** Vectors of four and three floats that lanes read side by side, and carry around a loop. */
import { expect, test } from "bun:test";
import { Device } from "../../src/index.ts";

const source = `#include <metal_stdlib>
using namespace metal;

float4 passed(float4 a, float4 b) { return a * 2.0f + b.wzyx; }

kernel void carried(const device float4 *in [[buffer(0)]], device float4 *out [[buffer(1)]],
                    constant uint &count [[buffer(2)]], uint lane [[thread_index_in_simdgroup]]) {
  float4 sum = 0.0f, other = float4(1.0f, 2.0f, 3.0f, 4.0f);
  for (uint k = 0; k < count; ++k) {
    const float4 next = passed(sum, in[k * 32 + lane]);
    sum = simd_max(next.x) < 0.0f ? other : next;
    other = sum;
  }
  out[lane] = sum;
}

kernel void some(const device float4 *in [[buffer(0)]], device float4 *out [[buffer(1)]],
                 constant uint &count [[buffer(2)]], uint lane [[thread_index_in_simdgroup]]) {
  if (simd_sum(1u) == 32u && lane * 2 < count) {
    const float3 three = ((const device float3 *)in)[lane];
    out[lane] = in[lane + 32].yxwz + float4(three.zyx, 0.0f);
  }
}
`;

const value = (place: number): number => (place * 7) % 23;
/** Element `index` of the float4 at `place`. */
const at = (place: number, index: number): number => value(4 * place + index);

if (process.platform === "linux") {
  const device = Device.open();
  device.registerSource("halves.metal", source);

  function run(kernel: string, count: number): number[] {
    using input = device.tensor("f32", [4 * 32 * 8]);
    input.set(Float32Array.from({ length: 4 * 32 * 8 }, (_, place) => value(place)));
    using out = device.tensor("f32", [128]);
    using pipeline = device.pipeline(kernel);
    if (process.env["SOFTMETAL_EXECUTOR"] !== "threads") expect(pipeline.executor).toBe("vectors");
    using pass = device.pass();
    pass.dispatch(pipeline, { buffers: [input, out], bytes: { 2: new Uint32Array([count]) }, grid: 32, threads: 32 });
    pass.commitAndWait();
    return Array.from(out.toFloat32Array());
  }

  test.each([0, 1, 2, 8])("a float4 carried around a loop %i times", (count) => {
    const expected = Array.from({ length: 128 }, (_, place) => {
      let sum = 0;
      for (let k = 0; k < count; k++) sum = sum * 2 + at(k * 32 + Math.floor(place / 4), 3 - (place % 4));
      return sum;
    });
    expect(run("carried", count)).toEqual(expected);
  });

  test.each([0, 1, 31, 33, 64])("the first of %i halved lanes read three and four floats", (count) => {
    const expected = Array.from({ length: 128 }, (_, place) => {
      const [lane, index] = [Math.floor(place / 4), place % 4];
      if (lane * 2 >= count) return 0;
      return at(lane + 32, index ^ 1) + (index < 3 ? at(lane, 2 - index) : 0);
    });
    expect(run("some", count)).toEqual(expected);
  });
}
