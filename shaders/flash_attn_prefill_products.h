/// The matrix products of a SIMD group with a tile of keys: S = Q K^T and O += P V.
///
/// TK and TD are the 8x8 matrices of BK keys and of D values, R the blocks of 8 rows; arrays have a block behind
/// the other.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup_matrix>

#include "common/simdgroup_tile.h"

using namespace metal;

/// A step of 8 columns of D: the scores of R blocks of 8 rows. Each matrix of K serves all blocks.
template <typename T, short R, short TK, short LD>
inline void multiply_step(const thread simdgroup_matrix<T, 8, 8> *q, const threadgroup T *k_tile,
                          thread Accumulator *scores) {
  for (short k = 0; k < TK; k++) {
    simdgroup_matrix<T, 8, 8> k_transposed;
    simdgroup_load(k_transposed, k_tile + k * 8 * LD, LD, ulong2(0, 0), true);
    for (short r = 0; r < R; r++) {
      simdgroup_multiply_accumulate(scores[r * TK + k], q[r], k_transposed, scores[r * TK + k]);
    }
  }
}

template <short N>
inline void clear_scores(thread Accumulator *scores) {
  for (short n = 0; n < N; n++) {
    scores[n] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
}

/// S [8 R, BK] += Q [8 R, D] * K^T [D, BK], from rows of Q LQ apart and of K LD. Two steps follow on each other, so
/// that hardware that multiplies 16 rows in 16 steps may take four products at once.
template <typename T, short R, short TK, short TD, short LQ, short LD>
inline void multiply_scores(const threadgroup T *q_rows, const threadgroup T *k_tile, thread Accumulator *scores) {
#pragma clang loop unroll(full)
  for (short two = 0; two < TD / 2; two++) {
#pragma clang loop unroll(full)
    for (short i = 0; i < 2; i++) {
      const short column = two * 16 + i * 8;
      simdgroup_matrix<T, 8, 8> q[R];
      for (short r = 0; r < R; r++) {
        simdgroup_load(q[r], q_rows + r * 8 * LQ + column, LQ);
      }
      multiply_step<T, R, TK, LD>(q, k_tile + column, scores);
    }
  }
}

/// The same of Q in registers: TD matrices of each block.
template <typename T, short R, short TK, short TD, short LD>
inline void multiply_scores(const thread simdgroup_matrix<T, 8, 8> *q, const threadgroup T *k_tile,
                            thread Accumulator *scores) {
#pragma clang loop unroll(full)
  for (short d = 0; d < TD; d++) {
    multiply_step<T, R, TK, LD>(q + d * R, k_tile + d * 8, scores);
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

/// P in two parts, T(P) and T(P - T(P)).
template <typename T, short N>
inline void split(thread Accumulator *probabilities, thread simdgroup_matrix<T, 8, 8> *high,
                  thread simdgroup_matrix<T, 8, 8> *low) {
  for (short n = 0; n < N; n++) {
    thread auto &of_high = high[n].thread_elements();
    thread auto &of_low = low[n].thread_elements();
    for (short i = 0; i < 2; i++) {
      const float p = probabilities[n].thread_elements()[i];
      of_high[i] = T(p);
      of_low[i] = T(p - float(of_high[i]));
    }
  }
}

/// O [8 R, D] += P [8 R, BK] * V [BK, D], V in rows LD apart, a block of O TO matrices behind the other. Each matrix of
/// V serves all blocks.
template <typename T, short R, short TK, short TD, short TO, short LD>
inline void accumulate(thread Accumulator *probabilities, const threadgroup T *v_tile, thread Accumulator *output) {
#pragma clang loop unroll(full)
  for (short d = 0; d < TD; d++) {
    for (short k = 0; k < TK; k++) {
      simdgroup_matrix<T, 8, 8> v;
      simdgroup_load(v, v_tile + k * 8 * LD + d * 8, LD);
      for (short r = 0; r < R; r++) {
        simdgroup_multiply_accumulate(output[r * TO + d], probabilities[r * TK + k], v, output[r * TO + d]);
      }
    }
  }
}

/// The same of P in two parts, the smaller one first.
template <typename T, short R, short TK, short TD, short TO, short LD>
inline void accumulate_parts(thread Accumulator *probabilities, const threadgroup T *v_tile,
                             thread Accumulator *output) {
  simdgroup_matrix<T, 8, 8> parts[2][R * TK];
  split<T, R * TK>(probabilities, parts[1], parts[0]);
#pragma clang loop unroll(full)
  for (short d = 0; d < TD; d++) {
    simdgroup_matrix<T, 8, 8> v[TK];
    for (short k = 0; k < TK; k++) {
      simdgroup_load(v[k], v_tile + k * 8 * LD + d * 8, LD);
    }
    for (short part = 0; part < 2; part++) {
      for (short k = 0; k < TK; k++) {
        for (short r = 0; r < R; r++) {
          simdgroup_multiply_accumulate(output[r * TO + d], parts[part][r * TK + k], v[k], output[r * TO + d]);
        }
      }
    }
  }
}
