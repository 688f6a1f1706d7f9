import type { DeviceRow } from "./row.ts";

/** Matrices of a turn of the loop: rows of the left factor, steps of a sum, columns of the right one. */
const [rows, steps, columns] = [2, 2, 8];
const repeats = 64;
/** SIMD groups of a threadgroup. */
const groups = 4;
const flops = repeats * rows * steps * columns * 2 * 8 ** 3;

/** All matrices stay in registers; a product waits only for the one before of its own sum. */
const source = `
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void bench_matrix_peak(const device bfloat *in [[buffer(0)]], device float *out [[buffer(1)]],
                              uint group [[threadgroup_position_in_grid]],
                              uint simd_group [[simdgroup_index_in_threadgroup]]) {
  simdgroup_bfloat8x8 left[${rows * steps}], right[${steps * columns}];
  simdgroup_float8x8 sums[${rows * columns}];
#pragma clang loop unroll(full)
  for (uint i = 0; i < ${rows * steps}; i++) simdgroup_load(left[i], in + 64 * i, 8);
#pragma clang loop unroll(full)
  for (uint i = 0; i < ${steps * columns}; i++) simdgroup_load(right[i], in + 64 * (${rows * steps} + i), 8);
#pragma clang loop unroll(full)
  for (uint i = 0; i < ${rows * columns}; i++) sums[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint n = 0; n < ${repeats}; n++) {
#pragma clang loop unroll(full)
    for (uint j = 0; j < ${columns}; j++) {
#pragma clang loop unroll(full)
      for (uint k = 0; k < ${steps}; k++) {
#pragma clang loop unroll(full)
        for (uint i = 0; i < ${rows}; i++) {
          simdgroup_multiply_accumulate(sums[i * ${columns} + j], left[i * ${steps} + k], right[j * ${steps} + k],
                                        sums[i * ${columns} + j]);
        }
      }
    }
  }
#pragma clang loop unroll(full)
  for (uint i = 0; i < ${rows * columns}; i++) {
    simdgroup_store(sums[i], out + 64 * ((group * ${groups} + simd_group) * ${rows * columns} + i), 8);
  }
}
`;

/** What products of 8x8 matrices reach where nothing is loaded: prefill's rows are measured against it. */
export const matrixRow: DeviceRow = {
  name: "matrix-bf16",
  about: "products of 8x8 matrices of bf16 in registers, sums in f32",
  unit: "TFLOP/s",
  prepare(room, { tokens }) {
    const pipeline = room.kernel("bench-matrix-peak.metal", source, "bench_matrix_peak");
    const matrices = rows * steps + steps * columns;
    const values = room.normal("bf16", [matrices, 64]);
    const out = room.empty("f32", [tokens * groups, rows * columns, 64]);
    return {
      moved: out.byteLength,
      work: (tokens * groups * flops) / 1e12,
      encode: (pass) =>
        pass.dispatch(pipeline, {
          buffers: { 0: { tensor: values, access: "read" }, 1: out },
          grid: tokens * groups * 32,
          threads: groups * 32,
        }),
    };
  },
};
