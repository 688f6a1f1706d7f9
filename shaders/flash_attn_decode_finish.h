/// The end of a query row: the sink, the division, the rotation back, and what is stored.
#pragma once

#include <metal_stdlib>

#include "ShaderTypes.h"
#include "common/element.h"
#include "flash_attn_decode_lanes.h"
#include "flash_attn_decode_softmax.h"

using namespace metal;

/// 1 / sqrt(block) of the transform, times what a norm is to be divided by: z of
/// hadamard_encode.h has norm 1 a value.
template <int D>
inline float unit_of_codes(constant FlashAttnDecodeParams &params) {
  constexpr float block = float(Head<D>::block);
  return D <= 256 ? 1.0f / sqrt(float(D) * block) : 1.0f / (params.scale_factor_d512 * sqrt(block));
}

/// Divides the sums of a query by that of its weights and stores the row and its
/// logarithm of the sum of exponentials. The sink counts once, as one more key
/// without a value.
template <int D>
inline void finish_row(constant FlashAttnDecodeParams &params, const device float *sinks, device uchar *out,
                       device float *lse, uint query, uint head, uint lane, float maximum, float sum,
                       thread float *output) {
  typedef Lanes<D> L;
  // A row that sees nothing has sum 0 and output 0.
  const bool is_empty = sum == 0.0f;
  float largest = maximum;
  float own = 1.0f;
  if ((params.present & MA_DECODE_SINKS) != 0) {
    const float sink = sinks[head];
    largest = max(maximum, sink);
    own = largest == -INFINITY ? 1.0f : exp_of_difference(maximum - largest);
    sum = sum * own + (largest == -INFINITY ? 0.0f : exp_of_difference(sink - largest));
  }
  float factor = is_empty ? 0.0f : own / sum;
  if ((params.present & MA_DECODE_CODED_V) != 0) {
    hadamard_lanes<D>(output, lane);
    sign_lanes<D>(output, lane);
    factor *= unit_of_codes<D>(params);
  }
#pragma clang loop unroll(full)
  for (int i = 0; i < L::values; i++) {
    // Adding 0 makes -0 a plain 0.
    output[i] = is_empty ? 0.0f : output[i] * factor + 0.0f;
  }
#pragma clang loop unroll(full)
  for (int c = 0; c < L::chunks; c++) {
    if (L::holds(c, lane)) {
      store_run<L::width>(out, ulong(query) * D + L::first(c, lane), output + c * L::width, params.out_dtype);
    }
  }
  if ((params.present & MA_DECODE_LSE) != 0 && lane == 0) {
    lse[query] = sum == 0.0f ? -INFINITY : largest + precise::log(sum);
  }
}
