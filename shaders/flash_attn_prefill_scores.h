/// What becomes of a row's scores of a tile of keys before the softmax.
///
/// A lane holds scores (8 k + column) and the next of its row in s[k], TK pairs of BK keys.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup_matrix>

#include "common/simdgroup_tile.h"

using namespace metal;

/// log2(e) * bias of an additive mask.
template <typename T>
inline float masked_score(float score, T bias) {
  return score + M_LOG2E_F * float(bias);
}

/// A bool mask: non-zero attends.
inline float masked_score(float score, uchar attends) { return attends != 0 ? score : -INFINITY; }

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
