/// The steps of attention of prompts: what a SIMD group does with a tile of keys, and with its rows at the end.
///
/// TK and TD are the 8x8 matrices of BK keys and of D values, R the blocks of 8 rows. Arrays have a block behind the
/// other. A lane holds scores (8 k + column) and the next of its row of a block in s[k].
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

/// Waits for those that load a tile together: a SIMD group alone where each has a part of D.
template <bool IS_ALONE>
inline void wait_for_tile() {
  if (IS_ALONE) {
    simdgroup_barrier(mem_flags::mem_threadgroup);
  } else {
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

/// log2(e) * bias of an additive mask.
template <typename T>
inline float masked_score(float score, T bias) {
  return score + M_LOG2E_F * float(bias);
}

/// A bool mask: non-zero attends.
inline float masked_score(float score, uchar attends) { return attends != 0 ? score : -INFINITY; }

/// S [8 R, BK] += Q [8 R, D] * K^T [D, BK], from rows LQ and LK apart, D being 8 TD. Two steps follow on each other, so
/// that hardware that multiplies 16 rows in 16 steps may take four products at once.
template <typename T, short R, short TK, short TD, short LQ, short LK>
inline void multiply_scores(const threadgroup T *q_rows, const threadgroup T *k_tile, thread Accumulator *scores) {
#pragma clang loop unroll(full)
  for (short two = 0; two < TD / 2; two++) {
#pragma clang loop unroll(full)
    for (short i = 0; i < 2; i++) {
      const short column = two * 16 + i * 8;
      simdgroup_matrix<T, 8, 8> q[R];
#pragma clang loop unroll(full)
      for (short r = 0; r < R; r++) {
        simdgroup_load(q[r], q_rows + r * 8 * LQ + column, LQ);
      }
      for (short k = 0; k < TK; k++) {
        simdgroup_matrix<T, 8, 8> k_transposed;
        simdgroup_load(k_transposed, k_tile + k * 8 * LK + column, LK, ulong2(0, 0), true);
#pragma clang loop unroll(full)
        for (short r = 0; r < R; r++) {
          simdgroup_multiply_accumulate(scores[r * TK + k], q[r], k_transposed, scores[r * TK + k]);
        }
      }
    }
  }
}

/// Puts the scores of a part of D where the SIMD groups that have the others find them.
template <short N>
inline void put_part(threadgroup float2 *part, uint simd_lane, const thread Accumulator *scores) {
  for (short n = 0; n < N; n++) {
    const thread auto &elements = scores[n].thread_elements();
    part[n * 32 + simd_lane] = float2(elements[0], elements[1]);
  }
}

/// Adds up the scores of WN parts, in their order.
template <short N, short WN>
inline void add_parts(const threadgroup float2 *parts, uint simd_lane, thread Accumulator *scores) {
  for (short n = 0; n < N; n++) {
    float2 sum = parts[n * 32 + simd_lane];
    for (short w = 1; w < WN; w++) {
      sum += parts[(w * N + n) * 32 + simd_lane];
    }
    thread auto &elements = scores[n].thread_elements();
    elements[0] = sum[0];
    elements[1] = sum[1];
  }
}

/// The lane's scores, in powers of two.
template <short TK>
inline void scale_scores(thread Accumulator *scores, float score_scale, thread float2 *s) {
  for (short k = 0; k < TK; k++) {
    thread auto &elements = scores[k].thread_elements();
    s[k] = float2(elements[0] * score_scale, elements[1] * score_scale);
  }
}

/// Applies the mask of the row, `mask_keys` being that of the tile's first key.
template <short TK, typename Mask>
inline void mask_scores(thread float2 *s, const device Mask *mask_keys, short column, int valid_keys) {
  for (short k = 0; k < TK; k++) {
    for (short i = 0; i < 2; i++) {
      const short key = k * 8 + column + i;
      if (key < valid_keys) {
        s[k][i] = masked_score(s[k][i], mask_keys[key]);
      }
    }
  }
}

/// Blocks the tile's keys from `attended` on.
template <short TK>
inline void block_keys(thread float2 *s, short column, int attended) {
  for (short k = 0; k < TK; k++) {
    for (short i = 0; i < 2; i++) {
      s[k][i] = k * 8 + column + i < attended ? s[k][i] : -INFINITY;
    }
  }
}

/// Blocks the tile's keys before `first`.
template <short TK>
inline void block_keys_before(thread float2 *s, short column, int first) {
  for (short k = 0; k < TK; k++) {
    for (short i = 0; i < 2; i++) {
      s[k][i] = k * 8 + column + i < first ? -INFINITY : s[k][i];
    }
  }
}

/// Caps scores softly, and makes powers of two of them.
template <short TK>
inline void cap_scores(thread float2 *s, float softcap) {
  for (short k = 0; k < TK; k++) {
    for (short i = 0; i < 2; i++) {
      s[k][i] = softcap * precise::tanh(s[k][i] / softcap) * M_LOG2E_F;
    }
  }
}

/// Adds a bias that grows by `slope` from key to key, and is 0 at the row's own; `distance` is that of the
/// lane's first key.
template <short TK>
inline void slope_scores(thread float2 *s, float slope, int distance) {
  for (short k = 0; k < TK; k++) {
    for (short i = 0; i < 2; i++) {
      s[k][i] += slope * float(distance + k * 8 + i);
    }
  }
}

/// The softmax of a row so far, all in powers of two.
struct RowSoftmax {
  float maximum;  ///< of the scores
  float sum;      ///< of P; this lane's part
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
inline void raise_maximum(thread RowSoftmax &softmax, float maximum, thread Accumulator *output) {
  maximum = maximum_of_row(maximum);
  const bool moves = maximum > softmax.maximum + kRescaleThreshold;
  const float factor = moves ? fast::exp2(softmax.maximum - maximum) : 1.0f;
  softmax.maximum = moves ? maximum : softmax.maximum;
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
inline void raise_maxima(thread RowSoftmax *softmax, const thread float2 *s, thread Accumulator *output) {
  float maxima[R];
  bool is_more = false;
  for (short r = 0; r < R; r++) {
    maxima[r] = maximum_of_lane<TK>(s + r * TK);
    is_more = is_more || maxima[r] > softmax[r].maximum + kRescaleThreshold;
  }
  if (simd_any(is_more)) {
#pragma clang loop unroll(full)
    for (short r = 0; r < R; r++) {
      raise_maximum<TD>(softmax[r], maxima[r], output + r * TD);
    }
  }
}

/// P = exp2(S - maximum), and its sum.
template <short TK>
inline void exponentiate(thread RowSoftmax &softmax, const thread float2 *s, thread Accumulator *probabilities) {
  for (short k = 0; k < TK; k++) {
    const float p0 = fast::exp2(s[k][0] - softmax.maximum);
    const float p1 = fast::exp2(s[k][1] - softmax.maximum);
    softmax.sum += p0 + p1;
    thread auto &elements = probabilities[k].thread_elements();
    elements[0] = p0;
    elements[1] = p1;
  }
}

/// O [8 R, D] += P [8 R, BK] * V [BK, D], V in rows LD apart, D being 8 TD of the 8 TO columns of O, from
/// 8 FIRST on. Each matrix of V serves all blocks.
template <typename T, short R, short TK, short TD, short TO, short FIRST, short LD>
inline void accumulate(thread Accumulator *probabilities, const threadgroup T *v_tile, thread Accumulator *output) {
#pragma clang loop unroll(full)
  for (short d = 0; d < TD; d++) {
    for (short k = 0; k < TK; k++) {
      simdgroup_matrix<T, 8, 8> v;
      simdgroup_load(v, v_tile + k * 8 * LD + d * 8, LD);
#pragma clang loop unroll(full)
      for (short r = 0; r < R; r++) {
        const short n = r * TO + FIRST + d;
        simdgroup_multiply_accumulate(output[n], probabilities[r * TK + k], v, output[n]);
      }
    }
  }
}

/// 1 / sum; a row that attends nothing has sum 0 and output 0.
inline float normalizer_of(float row_sum) { return row_sum == 0 ? 0.0f : 1.0f / row_sum; }

/// Normalizes the lane's part of O; `output_row` is where its first element belongs.
template <typename T, short TD>
inline void store_row(thread Accumulator *output, float normalizer, device T *output_row, bool stores) {
#pragma clang loop unroll(full)
  for (short d = 0; d < TD; d++) {
    // Adding +0 makes the sign of a zero independent of the tiles that were skipped.
    thread auto &elements = output[d].thread_elements();
    if (stores) {
      output_row[d * 8] = T((elements[0] + 0.0f) * normalizer);
      output_row[d * 8 + 1] = T((elements[1] + 0.0f) * normalizer);
    }
  }
}
