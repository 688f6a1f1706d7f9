/// The online softmax of the rows of a SIMD group (Milakov and Gimelshein 2018; FlashAttention, Dao 2022).
///
/// TK and TD are the 8x8 matrices of BK keys and of D values, R the blocks of 8 rows; arrays have a block behind
/// the other. A lane holds two scores of its row in each of s[0..TK).
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>
#include <metal_simdgroup_matrix>

#include "common/simdgroup_tile.h"

using namespace metal;

/// Start of the running row maximum. Finite, so that exp2(-inf - m) is 0 and not
/// NaN while every key so far is masked.
constant constexpr float kLowestMaximum = -0.5f * FLT_MAX;

/// The running maximum follows the row's true maximum only when that is higher
/// by this much, in powers of two. P then stays below 2^8, where float is as
/// precise as below 1, and most tiles leave the accumulators alone.
constant constexpr float kRescaleThreshold = 8.0f;

/// Of P in two parts: a power of two that it is times as large as. In halves the lower part of no weight that matters
/// is subnormal then, and the upper one stays below 2^15; a bfloat has the exponents of a float.
template <typename T>
struct SplitUnit {
  static constant constexpr float value = 0.0f;
};
template <>
struct SplitUnit<half> {
  static constant constexpr float value = 7.0f;
};

/// The softmax of a row so far, all in powers of two.
struct RowSoftmax {
  float reference;  ///< P = exp2(S - reference): the maximum of the scores, less P's unit
  float sum;  ///< of P; this lane's part
};

/// The largest of the lane's scores of a row.
template <short TK>
inline float maximum_of_lane(const thread float2 *s) {
  float maximum = max(s[0][0], s[0][1]);
  for (short k = 1; k < TK; k++) {
    maximum = max(maximum, max(s[k][0], s[k][1]));
  }
  return maximum;
}

/// Raises the row's maximum to that of the tile, and rescales what was computed with the old one.
template <short TD>
inline void raise_maximum(thread RowSoftmax &softmax, float maximum, float unit, thread Accumulator *output) {
  maximum = maximum_of_row(maximum);
  const bool moves = maximum > softmax.reference + (unit + kRescaleThreshold);
  const float factor = moves ? fast::exp2(softmax.reference - (maximum - unit)) : 1.0f;
  softmax.reference = moves ? maximum - unit : softmax.reference;
  softmax.sum *= factor;
#pragma clang loop unroll(full)
  for (short d = 0; d < TD; d++) {
    thread auto &elements = output[d].thread_elements();
    elements[0] *= factor;
    elements[1] *= factor;
  }
}

/// The same of all rows, where any of them has more than its maximum.
template <short R, short TK, short TD>
inline void raise_maxima(thread RowSoftmax *softmax, const thread float2 *s, float unit, thread Accumulator *output) {
  float maxima[R];
  bool is_more = false;
  for (short r = 0; r < R; r++) {
    maxima[r] = maximum_of_lane<TK>(s + r * TK);
    is_more = is_more || maxima[r] > softmax[r].reference + (unit + kRescaleThreshold);
  }
  if (simd_any(is_more)) {
#pragma clang loop unroll(full)
    for (short r = 0; r < R; r++) {
      raise_maximum<TD>(softmax[r], maxima[r], unit, output + r * TD);
    }
  }
}

/// P = exp2(S - reference), and its sum.
template <short TK>
inline void exponentiate(thread RowSoftmax &softmax, const thread float2 *s, thread Accumulator *probabilities) {
  for (short k = 0; k < TK; k++) {
    const float p0 = fast::exp2(s[k][0] - softmax.reference);
    const float p1 = fast::exp2(s[k][1] - softmax.reference);
    softmax.sum += p0 + p1;
    thread auto &elements = probabilities[k].thread_elements();
    elements[0] = p0;
    elements[1] = p1;
  }
}

/// 1 / sum; a row that attends nothing has sum 0 and output 0.
inline float normalizer_of(float row_sum) { return row_sum == 0 ? 0.0f : 1.0f / row_sum; }
