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

/// Stores the state of a block: the maximum and the sum of a query, and its sums of rows, which nobody reads
/// where there are none.
template <int D>
inline void store_state(device float *states, device float *outputs, ulong state, uint lane, float maximum, float sum,
                        const thread float *output) {
  typedef Lanes<D> L;
  if (lane == 0) {
    states[2 * state] = maximum;
    states[2 * state + 1] = sum;
  }
#pragma clang loop unroll(full)
  for (int c = 0; c < L::chunks; c++) {
    if (L::holds(c, lane)) {
#pragma clang loop unroll(full)
      for (int i = 0; i < L::width; i++) {
        outputs[state * D + uint(L::first(c, lane) + i)] = output[c * L::width + i];
      }
    }
  }
}

/// The end of a block: the queries of a tile, of which query n has its softmax in lane n * 32 / QUERIES, finished where
/// theirs has no other block.
template <int D, int QUERIES>
inline void store_block(constant FlashAttnDecodeParams &params, const device float *sinks, device uchar *out,
                        device float *lse, device float *states, device float *outputs, uint block, uint first_query,
                        uint first_in_head, uint kv_head, uint lane, Softmax softmax, thread float *output) {
  constexpr int values = Lanes<D>::values;
  const uint queries = params.n_heads / params.n_kv_heads * params.n_q;  // that share the head of K and V
// Queries move down: registers have no index.
#pragma clang loop unroll(disable)
  for (int n = 0; n < QUERIES; n++) {
    const float maximum = simd_shuffle(softmax.maximum, ushort(n * (32 / QUERIES)));
    const float sum = simd_shuffle(softmax.sum, ushort(n * (32 / QUERIES)));
    if (first_in_head + uint(n) < queries) {
      const uint index = first_query + uint(n);
      if (params.n_blocks == 1) {
        const uint head = kv_head * (queries / params.n_q) + (first_in_head + uint(n)) / params.n_q;
        finish_row<D>(params, sinks, out, lse, index, head, lane, maximum, sum, output);
      } else {
        store_state<D>(states, outputs, ulong(index) * params.n_blocks + block, lane, maximum, sum, output);
      }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < (QUERIES - 1) * values; i++) {
      output[i] = output[i + values];
    }
  }
}
