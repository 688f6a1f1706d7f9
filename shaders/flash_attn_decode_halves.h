/// How the two SIMD groups of a block come to one state: the second half's goes to the first through threadgroup
/// memory.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "flash_attn_decode_keys.h"
#include "flash_attn_decode_softmax.h"

using namespace metal;

/// Keys of a half of a block, which one SIMD group owns.
constant constexpr int kHalfKeys = kBlockKeys / 2;

/// Pairs of SIMD groups that a threadgroup may have.
constant constexpr int kMostPairs = 2;

/// The state of the second half of a block on its way to the first: of a lane its `Softmax` and VALUES sums of rows.
template <int VALUES>
struct HalfState {
  float maximum[32];
  float sum[32];
  float output[VALUES][32];

  void store(uint lane, Softmax softmax, const thread float *values) threadgroup {
    maximum[lane] = softmax.maximum;
    sum[lane] = softmax.sum;
#pragma clang loop unroll(full)
    for (int i = 0; i < VALUES; i++) {
      output[i][lane] = values[i];
    }
  }

  /// Adds it to the state of the first half, of QUERIES queries.
  template <int QUERIES>
  void join(uint lane, thread Softmax &softmax, thread float *values) const threadgroup {
    constexpr int per_step = 32 / QUERIES;
    const float largest = max(softmax.maximum, maximum[lane]);
    const float reference = largest == -INFINITY ? 0.0f : largest;
    const float first_factor = exp_of_difference(softmax.maximum - reference);
    const float second_factor = exp_of_difference(maximum[lane] - reference);
    softmax.maximum = largest;
    softmax.sum = fma(sum[lane], second_factor, softmax.sum * first_factor);
#pragma clang loop unroll(full)
    for (int n = 0; n < QUERIES; n++) {
      const float first = simd_shuffle(first_factor, ushort(n * per_step));
      const float second = simd_shuffle(second_factor, ushort(n * per_step));
#pragma clang loop unroll(full)
      for (int i = n * (VALUES / QUERIES); i < (n + 1) * (VALUES / QUERIES); i++) {
        values[i] = fma(output[i][lane], second, values[i] * first);
      }
    }
  }
};
