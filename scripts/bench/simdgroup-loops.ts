/** Loops of a SIMD group as they are written for a GPU, beside the same sums in C: 32 partial ones, and a tree of them. */
import { FFIType, ptr } from "bun:ffi";
import { normalArray } from "../lib/random.ts";
import { type Benchmark, secondsOf, usualRounds } from "./benchmark.ts";
import { prepareKernels } from "./kernel.ts";
import { compileC } from "./plain-c.ts";

/** Rows and columns of a matrix; keys of a head. */
const extent = 4096;
/** Elements of a key. */
const headDim = 128;
/** Dispatches of a pass of the decode loop, one head each. */
const heads = 16;

const source = `
#include <metal_stdlib>
using namespace metal;

/// y = W x, one SIMD group a row. The buffer holds x, y, then W.
template <typename T>
kernel void gemv(device float *memory [[buffer(0)]], uint thread_index [[thread_position_in_grid]],
                 uint lane [[thread_index_in_simdgroup]]) {
  const uint row = thread_index / 32;
  const device T *weights = reinterpret_cast<const device T *>(memory + ${2 * extent}) + row * ${extent};
  float sum = 0.0f;
  for (uint k = lane; k < ${extent}; k += 32) { sum += float(weights[k]) * memory[k]; }
  sum = simd_sum(sum);
  if (lane == 0) { memory[${extent} + row] = sum; }
}
template [[host_name("bench_gemv_f32")]] kernel void gemv<float>(device float *, uint, uint);
template [[host_name("bench_gemv_bf16")]] kernel void gemv<bfloat>(device float *, uint, uint);

/// Attention of one query, a lane four of its elements. The buffer holds q, o, then the keys, then the values.
kernel void bench_decode_loop(device float4 *memory [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  const device float4 *keys = memory + 64, *values = keys + ${extent * (headDim / 4)};
  const float4 q = memory[lane];
  float4 o = 0.0f;
  float maximum = -INFINITY, total = 0.0f;
  for (uint key = 0; key < ${extent}; key++) {
    const float score = simd_sum(dot(q, keys[key * 32 + lane]));
    const float next = max(maximum, score);
    const float factor = exp(maximum - next), p = exp(score - next);
    o = o * factor + p * values[key * 32 + lane];
    total = total * factor + p;
    maximum = next;
  }
  memory[32 + lane] = o / total;
}

/// Sum and maximum of a row, a threadgroup each. The buffer holds two results a row, then the rows.
kernel void bench_row_reduce(device float *memory [[buffer(0)]], uint row [[threadgroup_position_in_grid]],
                             uint thread_index [[thread_index_in_threadgroup]],
                             uint lane [[thread_index_in_simdgroup]], uint group [[simdgroup_index_in_threadgroup]]) {
  threadgroup float sums[8], maxima[8];
  const device float *values = memory + ${2 * extent} + row * ${extent};
  float sum = 0.0f, maximum = -INFINITY;
  for (uint k = thread_index; k < ${extent}; k += 256) {
    sum += values[k];
    maximum = max(maximum, values[k]);
  }
  sum = simd_sum(sum);
  maximum = simd_max(maximum);
  if (lane == 0) { sums[group] = sum, maxima[group] = maximum; }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (group == 0) {
    sum = simd_sum(lane < 8 ? sums[lane] : 0.0f);
    maximum = simd_max(lane < 8 ? maxima[lane] : -INFINITY);
    if (lane == 0) { memory[2 * row] = sum, memory[2 * row + 1] = maximum; }
  }
}
`;

const plainC = `
#include <math.h>
static float tree(float *sums, int count) {
  for (int half = count / 2; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  return sums[0];
}

#define GEMV(name, T, value)                                                  \\
  void name(float *memory) {                                                  \\
    const T *weights = (const T *)(memory + ${2 * extent});                   \\
    for (long row = 0; row < ${extent}; ++row) {                              \\
      float sums[32] = {0};                                                   \\
      for (long k = 0; k < ${extent}; k += 32)                                \\
        for (int i = 0; i < 32; ++i) {                                        \\
          const T w = weights[row * ${extent} + k + i];                       \\
          sums[i] += (value) * memory[k + i];                                 \\
        }                                                                     \\
      memory[${extent} + row] = tree(sums, 32);                               \\
    }                                                                         \\
  }
static inline float widened(unsigned short bits) {
  union { unsigned bits; float value; } result = {(unsigned)bits << 16};
  return result.value;
}
GEMV(gemv_f32, float, w)
GEMV(gemv_bf16, unsigned short, widened(w))

void decode_loop(float *memory) {
  const float *keys = memory + 256, *values = keys + ${extent * headDim}L;
  float o[${headDim}] = {0}, maximum = -INFINITY, total = 0.0f;
  for (long key = 0; key < ${extent}; ++key) {
    float sums[32];
    const float *k = keys + key * ${headDim};
    for (int i = 0; i < 32; ++i) {
      float sum = memory[4 * i] * k[4 * i];
      for (int j = 1; j < 4; ++j) sum += memory[4 * i + j] * k[4 * i + j];
      sums[i] = sum;
    }
    const float score = tree(sums, 32), next = score > maximum ? score : maximum;
    const float factor = expf(maximum - next), p = expf(score - next);
    for (int i = 0; i < ${headDim}; ++i) o[i] = o[i] * factor + p * values[key * ${headDim} + i];
    total = total * factor + p;
    maximum = next;
  }
  for (int i = 0; i < ${headDim}; ++i) memory[${headDim} + i] = o[i] / total;
}

void row_reduce(float *memory) {
  for (long row = 0; row < ${extent}; ++row) {
    const float *values = memory + ${2 * extent} + row * ${extent};
    float sums[256] = {0}, maxima[256];
    for (int i = 0; i < 256; ++i) maxima[i] = -INFINITY;
    for (long k = 0; k < ${extent}; k += 256)
      for (int i = 0; i < 256; ++i) {
        const float value = values[k + i];
        sums[i] += value;
        maxima[i] = value > maxima[i] ? value : maxima[i];
      }
    for (int half = 128; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) maxima[i] = maxima[i + half] > maxima[i] ? maxima[i + half] : maxima[i];
    memory[2 * row] = tree(sums, 256);
    memory[2 * row + 1] = maxima[0];
  }
}
`;

/** Floats cut to bfloats. */
const upperHalves = (values: Float32Array): Uint16Array =>
  Uint16Array.from(new Uint32Array(values.buffer, values.byteOffset, values.length), (bits) => bits >>> 16);

interface Loop {
  readonly name: string;
  readonly about: string;
  readonly unit: string;
  /** What one run counts, in the unit. */
  readonly count: number;
  readonly kernel: string;
  readonly inC: "gemv_f32" | "gemv_bf16" | "decode_loop" | "row_reduce";
  readonly grid: number;
  readonly threads: number;
  readonly repeats?: number;
  /** Floats in front of what is read. */
  readonly head: number;
  /** Floats, or halves of them, that are read. */
  readonly values: number;
  readonly isBfloat?: boolean;
  /** Of the C loop's speed. */
  readonly least: number;
}

function loop(options: Loop): Benchmark {
  const { name, about, unit, count, kernel, inC, grid, threads, repeats = 1, head, values, least } = options;
  return {
    name,
    unit,
    about: `${about}, one thread`,
    baselineAbout: "the same in C by the same clang",
    target: { text: `at least ${least} of it`, met: (_, ratio) => ratio >= least },
    rounds: usualRounds,
    warmUp: true,
    prepare() {
      const bytes = 4 * head + (options.isBfloat ? 2 : 4) * values;
      const kernels = prepareKernels(source, bytes);
      const library = compileC(plainC, {
        gemv_f32: { args: [FFIType.ptr], returns: FFIType.void },
        gemv_bf16: { args: [FFIType.ptr], returns: FFIType.void },
        decode_loop: { args: [FFIType.ptr], returns: FFIType.void },
        row_reduce: { args: [FFIType.ptr], returns: FFIType.void },
      });
      const memory = kernels.buffer.bytes;
      const normal = normalArray(2 ** 16, 0.1, 1);
      new Float32Array(memory.buffer, memory.byteOffset, head).set(normal.subarray(0, head));
      const filled = options.isBfloat
        ? { view: new Uint16Array(memory.buffer, memory.byteOffset + 4 * head, values), of: upperHalves(normal) }
        : { view: new Float32Array(memory.buffer, memory.byteOffset + 4 * head, values), of: normal };
      for (let i = 0; i < values; i += filled.of.length) filled.view.set(filled.of.subarray(0, values - i), i);
      const address = ptr(memory);
      const run = library.symbols[inC];
      return {
        measure: () => count / kernels.seconds({ kernel, grid, threads, repeats }),
        baseline: () =>
          count /
          secondsOf(() => {
            for (let i = 0; i < repeats; i++) run(address);
          }),
        dispose() {
          kernels.dispose();
          library.close();
        },
      };
    },
  };
}

const matrix = { grid: 32 * extent, threads: 128, head: 2 * extent, values: extent ** 2 };

export const simdgroupLoops: readonly Benchmark[] = [
  loop({
    ...matrix,
    name: "gemv-simdgroup-f32",
    about: `f32 ${extent} x ${extent} times a vector, one SIMD group a row`,
    unit: "GB/s",
    count: (4 * extent ** 2) / 1e9,
    kernel: "bench_gemv_f32",
    inC: "gemv_f32",
    least: 0.9,
  }),
  loop({
    ...matrix,
    name: "gemv-simdgroup-bf16",
    about: `bf16 ${extent} x ${extent} times a vector, one SIMD group a row`,
    unit: "GB/s",
    count: (2 * extent ** 2) / 1e9,
    kernel: "bench_gemv_bf16",
    inC: "gemv_bf16",
    isBfloat: true,
    least: 0.9,
  }),
  loop({
    name: "decode-loop",
    about: `f32 attention of one query, ${extent} keys, D = ${headDim}, a simd_sum a key, ${heads} times`,
    unit: "Mkey/s",
    count: (heads * extent) / 1e6,
    kernel: "bench_decode_loop",
    inC: "decode_loop",
    grid: 32,
    threads: 32,
    repeats: heads,
    head: 2 * headDim,
    values: 2 * extent * headDim,
    least: 0.85,
  }),
  loop({
    ...matrix,
    name: "row-reduce",
    about: `sum and maximum of f32 rows of ${extent}, a threadgroup of 256 a row`,
    unit: "Gelement/s",
    count: extent ** 2 / 1e9,
    kernel: "bench_row_reduce",
    inC: "row_reduce",
    grid: 256 * extent,
    threads: 256,
    least: 0.5,
  }),
];
