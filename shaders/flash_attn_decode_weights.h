/// The softmax where scores lie in 8x8 matrices: a row is a key, and a query has two columns, 4 apart, whose lanes
/// share its keys.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "flash_attn_decode_softmax.h"

using namespace metal;

/// The maximum over the lanes of a column, and of the one four further on.
inline float maximum_of_column(float value) {
  value = max(value, simd_shuffle_xor(value, 2));
  value = max(value, simd_shuffle_xor(value, 4));
  value = max(value, simd_shuffle_xor(value, 8));
  return max(value, simd_shuffle_xor(value, 16));
}

/// The same of the lane's two columns, of which the lanes of columns 4 on take the second.
inline void maxima_of_columns(thread float *values, bool is_second) {
  const float kept = is_second ? values[1] : values[0];
  const float given = is_second ? values[0] : values[1];
  float value = max(kept, simd_shuffle_xor(given, 8));
  value = max(value, simd_shuffle_xor(value, 2));
  value = max(value, simd_shuffle_xor(value, 4));
  value = max(value, simd_shuffle_xor(value, 16));
  const float other = simd_shuffle_xor(value, 8);
  values[0] = is_second ? other : value;
  values[1] = is_second ? value : other;
}

/// The sum over the same lanes.
inline float sum_of_column(float value) {
  value += simd_shuffle_xor(value, 2);
  value += simd_shuffle_xor(value, 4);
  value += simd_shuffle_xor(value, 8);
  return value + simd_shuffle_xor(value, 16);
}

/// 2^(14 - e) for a largest number of 2^e, as far as that is a number: a half holds what it makes of it.
inline float power_for(float largest) {
  const uint exponent = as_type<uint>(largest) >> 23 & 255;
  return as_type<float>(min(268 - exponent, 253u) << 23);
}

/// 1 / power, of a power of two.
inline float inverse_of_power(float power) { return as_type<float>((254u << 23) - as_type<uint>(power)); }

/// The softmax of a lane's two queries, and the scale of their weights.
struct MatrixSoftmax {
  Softmax queries[2];
  /// The largest norm of V so far, and the power of two that weights are multiplied by for it: no weight is larger.
  float largest_norm[2] = {0.0f, 0.0f};
  float power[2] = {1.0f, 1.0f};

  /// Turns the scores of a leaf (-infinity: not seen) into weights times norms of V, of a key for both queries; gives
  /// the factors that what came before takes. The norms of `norm_of_query` are the largest that a query sees.
  void add(const thread float (&scores)[2][2], const thread float *norm_v, const thread float *norm_of_query,
           bool is_low, thread float2 *weights_of_key, thread float *factors) {
    float maxima[2] = {max(scores[0][0], scores[0][1]), max(scores[1][0], scores[1][1])};
    maxima_of_columns(maxima, is_low);
#pragma clang loop unroll(full)
    for (int i = 0; i < 2; i++) {
      thread Softmax &query = queries[i];
      const float maximum = max(maxima[i], query.maximum);
      const float factor = weight_of(query.maximum, maximum);
      const float weights[2] = {weight_of(scores[i][0], maximum), weight_of(scores[i][1], maximum)};
      query.sum = fma(query.sum, factor, weights[0] + weights[1]);
      query.maximum = maximum;
      largest_norm[i] = max(largest_norm[i], norm_of_query[i]);
      const float next_power = power_for(largest_norm[i]);
      factors[i] = factor * (next_power * inverse_of_power(power[i]));
      power[i] = next_power;
#pragma clang loop unroll(full)
      for (int m = 0; m < 2; m++) {
        // The norm of a key that the query does not see may be anything.
        weights_of_key[m][i] = scores[i][m] == -INFINITY ? 0.0f : weights[m] * norm_v[m] * next_power;
      }
    }
  }

 private:
  /// e^(score - maximum). Errors of exp2 are far below those of half.
  static float weight_of(float score, float maximum) {
    return score == -INFINITY ? 0.0f : fast::exp2((score - maximum) * M_LOG2E_F);
  }
};
