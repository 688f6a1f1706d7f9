/// Rows of halves of K and V as elements of 8x8 matrices: a lane loads what it multiplies, 16 bytes at once.
///
/// Of a matrix of K the row is a key and a lane's pair two coordinates that it has loaded side by side, of one of V
/// (transposed) the row is a coordinate and the pair two keys, of each of which the lane has loaded the coordinate.
/// Which coordinates meet in a matrix is free, as long as queries and sums agree.
#pragma once

#include <metal_stdlib>

#include "flash_attn_decode_leaf.h"

using namespace metal;

/// 8 halves of a row.
struct HalfRun {
  uint4 words;

  void load(const device uchar *from, bool is_aligned) {
    if (is_aligned) {
      words = *(const device uint4 *)from;
    } else {
      const device packed_ushort4 *parts = (const device packed_ushort4 *)from;
      words = uint4(as_type<uint2>(ushort4(parts[0])), as_type<uint2>(ushort4(parts[1])));
    }
  }

  /// The two from half i on, which is even.
  half2 pair(uint i) const { return as_type<half2>(words[i / 2]); }
};

/// What a lane has of a leaf of K: in matrix m, of which there are four, the key is 8 m + row.
template <int D>
struct DenseKeys {
  static constant constexpr bool is_coded = false;
  /// The limit of a threadgroup, of which 128 are used: it leaves a thread 168 registers of an NVIDIA GPU.
  static constant constexpr int most_threads = 384;
  /// Whether there are registers for the next leaf while one is worked on.
  static constant constexpr bool is_ahead = D <= 64;
  /// Columns that a coordinate has in matrices.
  static constant constexpr int columns = 1;
  /// Halves from one query to the next.
  static constant constexpr int query_row = D + 8;

  bool is_aligned;
  HalfRun runs[4][D / 32];

  DenseKeys(uint, bool aligned, const threadgroup half2 *) : is_aligned(aligned) {}

  /// Where a query has coordinate d: a lane has 8 of each 32, of which matrix t has two.
  static uint place(uint d) { return (d / 32 * 4 + d % 8 / 2) * 8 + d % 32 / 8 * 2 + d % 2; }

  void load(const device uchar *k, LeafRows leaf, MatrixLane at) {
    uint rows[4];
    leaf.of(at.row, rows);
#pragma clang loop unroll(full)
    for (int m = 0; m < 4; m++) {
#pragma clang loop unroll(full)
      for (int c = 0; c < D / 32; c++) {
        runs[m][c].load(k + ulong(rows[m]) * (2 * D) + (64 * c + 16 * at.pair), is_aligned);
      }
    }
  }

  half2 elements(uint m, uint t) const { return runs[m][t / 4].pair(t % 4 * 2); }
};

/// What a lane has of a leaf of V: in matrix m the keys are 8 m + 2 pair and the next.
template <int D>
struct DenseValues {
  static constant constexpr bool is_coded = false;
  static constant constexpr int matrices = 4;

  bool is_aligned;
  HalfRun runs[4][2][D / 64];

  DenseValues(uint, bool aligned, const threadgroup half2 *) : is_aligned(aligned) {}

  /// The coordinate of a row of matrix j of the sums: a lane has 8 of each 64.
  static uint coordinate(uint row, uint j) { return j / 8 * 64 + row * 8 + j % 8; }

  void load(const device uchar *v, LeafRows leaf, MatrixLane at) {
#pragma clang loop unroll(full)
    for (uint i = 0; i < 2; i++) {
      uint rows[4];
      leaf.of(2 * at.pair + i, rows);
#pragma clang loop unroll(full)
      for (int m = 0; m < 4; m++) {
#pragma clang loop unroll(full)
        for (int c = 0; c < D / 64; c++) {
          runs[m][i][c].load(v + ulong(rows[m]) * (2 * D) + (128 * c + 16 * at.row), is_aligned);
        }
      }
    }
  }

  half2 elements(uint m, uint j) const {
    const half2 first = runs[m][0][j / 8].pair(j % 8 / 2 * 2);
    const half2 second = runs[m][1][j / 8].pair(j % 8 / 2 * 2);
    return j % 2 == 0 ? half2(first.x, second.x) : half2(first.y, second.y);
  }

  /// Weights of the keys whose scores the lane has, of which `high` and `low` are the halves, as matrices.
  static void spread(const thread half2 *high, const thread half2 *low, MatrixLane at, thread HalfMatrix *weights) {
    half2 of_leaf[4];
    weights_of_leaf(high, low, at, of_leaf);
#pragma clang loop unroll(full)
    for (int m = 0; m < 4; m++) {
      weights[m].thread_elements() = of_leaf[m];
    }
  }
};
