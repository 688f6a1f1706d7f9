/** Matrices in threadgroups whose rows are no whole SIMD groups: a SIMD group squares a matrix. */
import { floats, type KernelCase, kernelSuite, range } from "./harness.ts";

const size = 8;
const groups = 2;
const value = (k: number): number => ((k * 7) % 11) - 5;
const at = (group: number, row: number, column: number): number => value((group * size + row) * size + column);
const squares = range(groups * size * size, (k) => {
  const [group, row, column] = [Math.floor(k / 64), (k >> 3) & 7, k & 7];
  return range(size, (n) => at(group, row, n) * at(group, n, column)).reduce((x, y) => x + y, 0);
});

const extents = [
  [64, 1, 1],
  [16, 4, 1],
  [8, 8, 1],
  [3, 1, 32],
] as const;

/** A kernel that knows its SIMD group alone needs one version; one that reads columns needs others. */
const source = `#include <metal_stdlib>
#include <metal_simdgroup_matrix>
using namespace metal;

inline void square(device float *out, const device float *in, uint group) {
  simdgroup_float8x8 m, r;
  simdgroup_load(m, in + 64 * group);
  simdgroup_multiply(r, m, m);
  simdgroup_store(r, out + 64 * group);
}

kernel void squares_alone(device float *out [[buffer(0)]], const device float *in [[buffer(1)]],
                          uint group [[simdgroup_index_in_threadgroup]]) {
  if (group < ${groups}) square(out, in, group);
}

kernel void squares_of_columns(device float *out [[buffer(0)]], const device float *in [[buffer(1)]],
                               uint3 position [[thread_position_in_threadgroup]],
                               uint3 extent [[threads_per_threadgroup]]) {
  const uint index = (position.z * extent.y + position.y) * extent.x + position.x;
  if (index / 32 < ${groups}) square(out, in, index / 32);
}
`;

kernelSuite(
  "matrixThreadgroups",
  source,
  ["squares_alone", "squares_of_columns"].flatMap((kernel) =>
    extents.map(
      (extent): KernelCase => ({
        name: `${kernel} in ${extent.join(" x ")} threads`,
        kernel,
        out: "float",
        inputs: [floats(range(groups * size * size, value))],
        expected: squares,
        grid: extent,
        threads: extent,
      }),
    ),
  ),
);
