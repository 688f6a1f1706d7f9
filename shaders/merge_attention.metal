/// Joins results of attention over parts of the keys, by their logarithms of sums of exponentials:
///   O = sum_i exp(lse_i - m) O_i / sum_i exp(lse_i - m),  lse = m + ln(sum_i exp(lse_i - m)),  m = max_i lse_i
/// in the order of the parts. A part with lse = -infinity has seen nothing and is not read.
///
/// Shapes: O_i, O [rows, row_size], lse [rows]; up to 8 parts, all in one dtype, those that are missing bound to the
/// first. Grid: threads (row_size, rows, 1); any threadgroup size; no threadgroup memory. Registers: 32 (nvptx64,
/// sm_90). Reads n_parts values and logarithms a value, and writes one. Work a value: n_parts exponentials and
/// multiplications; bound by memory.
#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/arithmetic.h"
#include "common/element.h"
#include "common/instantiate.h"

using namespace metal;

template <int PARTS>
[[kernel]] void join_parts(const device uchar *out_0 [[buffer(0)]], const device float *lse_0 [[buffer(1)]],
                           const device uchar *out_1 [[buffer(2)]], const device float *lse_1 [[buffer(3)]],
                           const device uchar *out_2 [[buffer(4)]], const device float *lse_2 [[buffer(5)]],
                           const device uchar *out_3 [[buffer(6)]], const device float *lse_3 [[buffer(7)]],
                           const device uchar *out_4 [[buffer(8)]], const device float *lse_4 [[buffer(9)]],
                           const device uchar *out_5 [[buffer(10)]], const device float *lse_5 [[buffer(11)]],
                           const device uchar *out_6 [[buffer(12)]], const device float *lse_6 [[buffer(13)]],
                           const device uchar *out_7 [[buffer(14)]], const device float *lse_7 [[buffer(15)]],
                           constant MergeAttentionParams &params [[buffer(16)]], device uchar *out [[buffer(17)]],
                           device float *lse [[buffer(18)]], uint3 position [[thread_position_in_grid]]) {
  const device uchar *outs[PARTS] = {out_0, out_1, out_2, out_3, out_4, out_5, out_6, out_7};
  const device float *lses[PARTS] = {lse_0, lse_1, lse_2, lse_3, lse_4, lse_5, lse_6, lse_7};
  const uint row = position.y;
  const ulong place = ulong(row) * params.row_size + position.x;
  float maximum = -INFINITY;
  for (uint i = 0; i < PARTS; i++) {
    if (i < params.n_parts) {
      maximum = max(maximum, lses[i][row]);
    }
  }
  float sum = 0.0f;
  float value = 0.0f;
  for (uint i = 0; i < PARTS; i++) {
    if (i < params.n_parts && lses[i][row] != -INFINITY) {
      const float weight = precise::exp(lses[i][row] - maximum);
      sum += weight;
      value = fma(weight, load_element(outs[i], place, params.part_dtype), value);
    }
  }
  const float joined = sum == 0.0f ? 0.0f : value / sum + 0.0f;
  store_run<1>(out, place, &joined, params.out_dtype);
  if (params.has_lse != 0 && position.x == 0) {
    lse[row] = sum == 0.0f ? -INFINITY : maximum + precise::log(sum);
  }
}

// Entry points.

instantiate_kernel("merge_attention", join_parts, 8);
