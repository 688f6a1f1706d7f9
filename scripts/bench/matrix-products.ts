/** Products of 8x8 matrices on one thread, in the two styles that kernels are written in. */
import { type Benchmark, usualRounds } from "./benchmark.ts";
import { prepareKernels } from "./kernel.ts";

const tiles = 64;
const repeats = 200;
/** Multiplications and additions of a dispatch: two products for each tile of K, as in a score tile of attention. */
const flops = repeats * tiles * 2 * 2 * 8 ** 3;

/**
 * The loop of attention's scores: bf16 q [8, 512] times two bf16 k [512, 8], sums in float.
 * Matrix style: matrices go from simdgroup_load to simdgroup_store. Element style: every
 * product fills its matrices and reads its result through thread_elements(), with the bf16
 * operands widened to float fragments first, as MLX's attention does.
 */
const source = `
#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

kernel void bench_matrix_style(device float *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup bfloat box[3 * 8 * ${tiles} * 8];
  for (uint i = lane; i < 3 * 8 * ${tiles} * 8; i += 32) { box[i] = bfloat(float(i % 7)); }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 sum0 = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  simdgroup_float8x8 sum1 = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint r = 0; r < ${repeats}; ++r) {
    for (uint t = 0; t < ${tiles}; ++t) {
      simdgroup_bfloat8x8 q, k0, k1;
      simdgroup_load(q, box + t * 8, ${tiles * 8});
      simdgroup_load(k0, box + 8 * ${tiles} * 8 + t * 8, ${tiles * 8}, ulong2(0, 0), true);
      simdgroup_load(k1, box + 16 * ${tiles} * 8 + t * 8, ${tiles * 8}, ulong2(0, 0), true);
      simdgroup_multiply_accumulate(sum0, q, k0, sum0);
      simdgroup_multiply_accumulate(sum1, q, k1, sum1);
    }
  }
  simdgroup_store(sum0, out);
  simdgroup_store(sum1, out + 64);
}

kernel void bench_element_style(device float *out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  threadgroup bfloat box[3 * 8 * ${tiles} * 8];
  for (uint i = lane; i < 3 * 8 * ${tiles} * 8; i += 32) { box[i] = bfloat(float(i % 7)); }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const uint row = (lane / 4 & 4) + lane / 2 % 4, column = (lane / 4 & 2) * 2 + lane % 2 * 2;
  float2 sum0 = 0.0f, sum1 = 0.0f;
  const threadgroup bfloat *q = box + row * ${tiles * 8} + column;
  const threadgroup bfloat *k = box + 8 * ${tiles} * 8 + column * ${tiles * 8} + row;
  for (uint r = 0; r < ${repeats}; ++r) {
    for (uint t = 0; t < ${tiles}; ++t) {
      simdgroup_matrix<float, 8, 8> a, b, c;
      const float2 left = float2(q[t * 8], q[t * 8 + 1]);
      for (uint j = 0; j < 2; ++j) {
        const threadgroup bfloat *key = k + j * 8 * ${tiles} * 8 + t * 8;
        a.thread_elements() = left;
        b.thread_elements() = float2(key[0], key[${tiles * 8}]);
        c.thread_elements() = j == 0 ? sum0 : sum1;
        simdgroup_multiply_accumulate(c, a, b, c);
        if (j == 0) { sum0 = c.thread_elements(); } else { sum1 = c.thread_elements(); }
      }
    }
  }
  out[row * 8 + column] = sum0.x;
  out[row * 8 + column + 1] = sum0.y;
  out[64 + row * 8 + column] = sum1.x;
  out[64 + row * 8 + column + 1] = sum1.y;
}
`;

function products(
  name: string,
  about: string,
  baselineAbout: string,
  kernels: readonly [string, string],
  least: number,
): Benchmark {
  return {
    name,
    unit: "GFLOP/s",
    about,
    baselineAbout,
    target: { text: `at least ${least} GFLOP/s`, met: (value) => value >= least },
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const device = prepareKernels(source, 512);
      const results: number[][] = [];
      const gigaflops = (kernel: string) => {
        const rate = flops / 1e9 / device.seconds({ kernel, grid: 32, threads: 32 });
        results.push(Array.from(new Float32Array(device.buffer.bytes.slice().buffer)));
        return rate;
      };
      return {
        measure: () => gigaflops(kernels[0]),
        baseline: () => gigaflops(kernels[1]),
        dispose() {
          device.dispose();
          // Both styles compute one thing, in one order.
          for (const result of results) {
            if (!Bun.deepEquals(result, results[0])) throw new Error(`${name}: the two styles differ`);
          }
        },
      };
    },
  };
}

const matrixStyle = "matrices from simdgroup_load to simdgroup_store";
const elementStyle = "matrices refilled through thread_elements() around every product";

export const mmaMatrixStyle = products(
  "mma-matrix-style",
  `bf16 8x8 products, ${matrixStyle}, one thread`,
  elementStyle,
  ["bench_matrix_style", "bench_element_style"],
  12,
);

export const mmaElementStyle = products(
  "mma-element-style",
  `bf16 8x8 products, ${elementStyle}, one thread`,
  matrixStyle,
  ["bench_element_style", "bench_matrix_style"],
  4,
);
