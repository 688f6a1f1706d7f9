/// A leaf of 32 keys as 8x8 matrices: where its rows lie, its norms, and the products of both sides.
///
/// K and V each have a type of what a lane has of a leaf (flash_attn_decode_codes.h, flash_attn_decode_elements.h). A
/// lane has two neighbours of a row of a matrix (common/simdgroup_tile.h): row `row`, columns 2 `pair` and the next.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "common/simdgroup_tile.h"

using namespace metal;

/// 8x8 elements of K or V, or of what they are multiplied with.
template <typename T>
using Matrix = simdgroup_matrix<T, 8, 8>;

/// This lane's two elements of a matrix. One by one: all that is known of the type of Metal's `thread_elements()` is
/// that it has them by index.
template <typename T>
inline vec<T, 2> elements_of(thread Matrix<T> &matrix) {
  const thread auto &elements = matrix.thread_elements();
  return vec<T, 2>(elements[0], elements[1]);
}
template <typename T>
inline void set_elements(thread Matrix<T> &matrix, vec<T, 2> values) {
  thread auto &elements = matrix.thread_elements();
  elements[0] = values[0];
  elements[1] = values[1];
}

/// Right factors of eight columns that four queries take, and the elements whose sum a number in them is: two halves,
/// which have 22 bits together, or as many bfloats as have all 24 and one that is 0. Factor r has part 2 r in columns 0
/// to 3, and the next one in the others: what columns four apart add up belongs together.
template <typename T>
struct RightFactors {
  static constant constexpr int count = 1;
};
template <>
struct RightFactors<bfloat> {
  static constant constexpr int count = 2;
};

/// The next part of two numbers, of which it leaves the rest.
template <typename T>
inline vec<T, 2> take_part(thread float2 &rest) {
  const vec<T, 2> part = vec<T, 2>(rest);
  rest -= float2(part);
  return part;
}

/// The row and the pair of columns of a lane.
struct MatrixLane {
  uint row;
  uint pair;

  explicit MatrixLane(uint lane) {
    const LaneElements elements = elements_of_lane(lane);
    row = uint(elements.row);
    pair = uint(elements.column) / 2;
  }

  /// Its number in the order of a matrix, row by row.
  uint place() const { return row * 4 + pair; }

  /// The lane that has the same columns of another row.
  ushort lane_of_row(uint other) const {
    return ushort((other & 4) << 2 | (pair & 2) << 2 | (other & 3) << 1 | (pair & 1));
  }
};

/// The rows of the 32 keys of a leaf.
struct LeafRows {
  uint row;  ///< of key `lane`
  uint first;  ///< of key 0
  bool is_run;

  LeafRows(uint row_of_lane, uint lane)
      : row(row_of_lane), first(simd_broadcast_first(row_of_lane)), is_run(simd_all(row_of_lane == first + lane)) {}

  /// Those of keys STEP apart, from `key` on. Most leaves lie in one piece, where no lane has to ask another.
  template <uint STEP>
  void of(uint key, thread uint (&rows)[32 / STEP]) const {
    if (is_run) {
#pragma clang loop unroll(full)
      for (uint m = 0; m < 32 / STEP; m++) {
        rows[m] = first + key + STEP * m;
      }
    } else {
#pragma clang loop unroll(full)
      for (uint m = 0; m < 32 / STEP; m++) {
        rows[m] = simd_shuffle(row, ushort(key + STEP * m));
      }
    }
  }
};

/// Norms of the two keys whose scores a lane has: those of matrices 0 and 1, or of 2 and 3 where its columns are the
/// last four. Of dense rows they are 1.
struct LeafNorms {
  float k[2] = {1.0f, 1.0f};
  float v[2] = {1.0f, 1.0f};

  template <bool K_CODES, bool V_CODES>
  void load(const device float *norms_k, const device float *norms_v, LeafRows leaf, MatrixLane at) {
    uint rows[4];
    leaf.of<8>(at.row, rows);
#pragma clang loop unroll(full)
    for (int m = 0; m < 2; m++) {
      const uint row = at.pair >= 2 ? rows[m + 2] : rows[m];
      if (K_CODES) {
        k[m] = norms_k[row];
      }
      if (V_CODES) {
        v[m] = norms_v[row];
      }
    }
  }
};

/// Weights of the keys whose scores the lane has as matrices of the leaf, four for each right factor, whose row is a
/// key. A lane has those of two keys, `weights`, for two queries each.
template <typename T>
inline void weights_of_leaf(const thread float2 *weights, MatrixLane at, thread Matrix<T> *of_leaf) {
  constexpr int factors = RightFactors<T>::count;
  const bool is_low = at.pair >= 2;
#pragma clang loop unroll(full)
  for (int m = 0; m < 2; m++) {
    float2 rest = weights[m];
#pragma clang loop unroll(full)
    for (int r = 0; r < factors; r++) {
      const vec<T, 2> high = take_part<T>(rest);
      const vec<T, 2> low = take_part<T>(rest);
      const vec<T, 2> kept = is_low ? low : high;
      const vec<T, 2> given = is_low ? high : low;
      const vec<T, 2> taken = as_type<vec<T, 2>>(simd_shuffle_xor(as_type<uint>(given), 8));
      set_elements(of_leaf[m * factors + r], is_low ? taken : kept);
      set_elements(of_leaf[(m + 2) * factors + r], is_low ? kept : taken);
    }
  }
}

/// K Q^T of one of the `Keys::parts` of a leaf, whose 32 keys are four matrices, with the queries, which lie in rows of
/// `Keys::query_row` elements, eight a right factor. Tensor cores cut off what they add up, by up to
/// 2^-23 of a sum each time; so sums are short, 64 coordinates, and joined in float.
template <int D, int PART, typename Keys>
inline void multiply_leaf(thread const Keys &keys, const threadgroup typename Keys::Element *queries,
                          thread Accumulator *products) {
  typedef typename Keys::Element Element;
  constexpr int factors = RightFactors<Element>::count;
  constexpr int matrices = D / 8 * Keys::columns;
  constexpr int matrices_of_sum = 8 * Keys::columns;
  constexpr int rows_of_part = 4 / Keys::parts;
  constexpr int first_row = PART % Keys::parts * rows_of_part;
#pragma clang loop unroll(full)
  for (int first = 0; first < matrices; first += matrices_of_sum) {
    Accumulator parts[rows_of_part];
#pragma clang loop unroll(full)
    for (int m = 0; m < rows_of_part; m++) {
      parts[m] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    }
#pragma clang loop unroll(full)
    for (int t = first; t < first + matrices_of_sum; t += 2) {
      Matrix<Element> query[2][factors];
      Matrix<Element> rows[2][rows_of_part];
#pragma clang loop unroll(full)
      for (int u = 0; u < 2; u++) {
#pragma clang loop unroll(full)
        for (int r = 0; r < factors; r++) {
          simdgroup_load(query[u][r], queries + 8 * (t + u) + 8 * r * Keys::query_row, Keys::query_row, ulong2(0, 0),
                         true);
        }
#pragma clang loop unroll(full)
        for (int m = 0; m < rows_of_part; m++) {
          keys.load_matrix(rows[u][m], first_row + m, t + u);
        }
      }
      // Two matrices with one right factor, and two steps of a sum, one behind the other: a product of 16 rows and 16
      // steps where the hardware has such.
#pragma clang loop unroll(full)
      for (int r = 0; r < factors; r++) {
#pragma clang loop unroll(full)
        for (int two = 0; two < rows_of_part; two += 2) {
#pragma clang loop unroll(full)
          for (int u = 0; u < 2; u++) {
            simdgroup_multiply_accumulate(parts[two], rows[u][two], query[u][r], parts[two]);
            simdgroup_multiply_accumulate(parts[two + 1], rows[u][two + 1], query[u][r], parts[two + 1]);
          }
        }
      }
    }
#pragma clang loop unroll(full)
    for (int m = 0; m < rows_of_part; m++) {
      thread auto &sum = products[first_row + m].thread_elements();
      const thread auto &of_part = parts[m].thread_elements();
      sum[0] = first == 0 ? of_part[0] : sum[0] + of_part[0];
      sum[1] = first == 0 ? of_part[1] : sum[1] + of_part[1];
    }
  }
}

/// sums = sums * rescale + V^T weights, over one of the `Values::parts` of a leaf: D / 8 matrices of coordinates,
/// `Values::matrices` of keys, each with its weights in every right factor. The products are added up apart, as those
/// of K are.
template <int D, int PART, typename Values>
inline void accumulate_leaf(thread const Values &values, const thread Matrix<typename Values::Element> *weights,
                            const thread float *rescale, thread Accumulator *sums) {
  typedef typename Values::Element Element;
  constexpr int factors = RightFactors<Element>::count;
  constexpr int matrices_of_part = Values::matrices / Values::parts;
  constexpr int first = PART % Values::parts * matrices_of_part;
#pragma clang loop unroll(full)
  for (int j = 0; j < D / 8; j += 2) {
    Accumulator parts[2];
    parts[0] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
    parts[1] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
#pragma clang loop unroll(full)
    for (int m = first; m < first + matrices_of_part; m++) {
      Matrix<Element> rows[2];
      values.load_matrix(rows[0], m, j);
      values.load_matrix(rows[1], m, j + 1);
#pragma clang loop unroll(full)
      for (int r = 0; r < factors; r++) {
        simdgroup_multiply_accumulate(parts[0], rows[0], weights[m * factors + r], parts[0]);
        simdgroup_multiply_accumulate(parts[1], rows[1], weights[m * factors + r], parts[1]);
      }
    }
#pragma clang loop unroll(full)
    for (int u = 0; u < 2; u++) {
      thread auto &sum = sums[j + u].thread_elements();
      const thread auto &of_part = parts[u].thread_elements();
      sum[0] = first == 0 ? fma(sum[0], rescale[0], of_part[0]) : sum[0] + of_part[0];
      sum[1] = first == 0 ? fma(sum[1], rescale[1], of_part[1]) : sum[1] + of_part[1];
    }
  }
}
