/** A kernel of your own: a root mean square norm, one threadgroup a row, in the same pass as the library's calls. */
import { Device, struct } from "metal-attention";

const source = `
#include <metal_stdlib>
using namespace metal;

struct Args { uint width; float eps; };

/// y [rows, width] = x / sqrt(mean(x^2) + eps). A threadgroup of 32 threads, one SIMD group, a row.
kernel void rms_norm(device const float *x [[buffer(0)]], device float *y [[buffer(1)]],
                     constant Args &args [[buffer(2)]], uint row [[threadgroup_position_in_grid]],
                     uint lane [[thread_index_in_simdgroup]]) {
  const ulong start = ulong(row) * args.width;
  float sum = 0;
  for (uint i = lane; i < args.width; i += 32) sum = fma(x[start + i], x[start + i], sum);
  const float factor = rsqrt(simd_sum(sum) / float(args.width) + args.eps);
  for (uint i = lane; i < args.width; i += 32) y[start + i] = x[start + i] * factor;
}`;

const [rows, width, eps] = [4, 100, 1e-6];
using device = Device.open();
device.registerSource("rms_norm.metal", source);
using pipeline = device.pipeline("rms_norm");
const values = Float32Array.from({ length: rows * width }, (_, i) => Math.sin(i) * (1 + Math.floor(i / width)));
using x = device.tensor("f32", [rows, width]).set(values);
using y = device.tensor("f32", [rows, width]);
const args = struct({ width: "u32", eps: "f32" }).pack({ width, eps });

using pass = device.pass();
pass.dispatch(pipeline, {
  buffers: { 0: { tensor: x, access: "read" }, 1: y },
  bytes: { 2: args },
  grid: rows * 32,
  threads: 32,
});
await pass.commit();

const result = y.view();
for (let row = 0; row < rows; row++) {
  const squares = result.subarray(row * width, (row + 1) * width).reduce((sum, value) => sum + value * value, 0);
  console.log(`row ${row}: mean square ${(squares / width).toFixed(4)}`); // 1.0000
  if (Math.abs(squares / width - 1) > 1e-4) throw new Error("the row is not normalised");
}
