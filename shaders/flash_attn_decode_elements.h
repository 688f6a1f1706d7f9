/// Rows of halves or bfloats of K and V as elements of 8x8 matrices.
///
/// What a SIMD group loads at once lies in one piece, whole rows of 2 D bytes: a GPU's memory takes a sixth longer
/// for as many bytes in parts of rows, as lanes of a matrix would read them. So rows go to matrices by threadgroup
/// memory, half a leaf at once, while the registers that they leave take what is needed next.
#pragma once

#include <metal_stdlib>

#include "flash_attn_decode_leaf.h"

using namespace metal;

/// Rows of a leaf on their way: a lane has D / 8 runs of 8 elements.
template <int D, typename T>
struct DenseLeaf {
  /// Of a leaf, in each 16 keys.
  static constant constexpr int parts = 2;
  /// Elements from one row to the next in threadgroup memory, where 8 rows of a matrix meet in no bank.
  static constant constexpr int row = D + 8;
  /// Bytes of threadgroup memory of a SIMD group.
  static constant constexpr int staged_bytes = 32 / parts * row * 2;
  static constant constexpr uint runs_of_row = D / 8;
  static constant constexpr uint rows_of_load = 32 / runs_of_row;

  bool is_aligned;
  threadgroup T *staged;
  uint4 runs[runs_of_row];

  DenseLeaf(bool aligned, threadgroup uint4 *memory) : is_aligned(aligned), staged((threadgroup T *)memory) {}

  void load(const device uchar *rows, LeafRows leaf, MatrixLane at) {
    // The order of a matrix is that of the hardware, whose neighbours are to read side by side.
    const uint lane = at.place();
    uint found[runs_of_row];
    leaf.of<rows_of_load>(lane / runs_of_row, found);
#pragma clang loop unroll(full)
    for (uint n = 0; n < runs_of_row; n++) {
      const device uchar *from = rows + ulong(found[n]) * (2 * D) + lane % runs_of_row * 16;
      if (is_aligned) {
        runs[n] = *(const device uint4 *)from;
      } else {
        const device packed_ushort4 *fours = (const device packed_ushort4 *)from;
        runs[n] = uint4(as_type<uint2>(ushort4(fours[0])), as_type<uint2>(ushort4(fours[1])));
      }
    }
  }

  /// Puts a part where the SIMD group finds it as matrices, in place of the part before.
  void stage(uint part, MatrixLane at) const {
    const uint lane = at.place();
    threadgroup T *first = staged + lane / runs_of_row * row + lane % runs_of_row * 8;
    simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma clang loop unroll(full)
    for (uint n = 0; n < runs_of_row / parts; n++) {
      *(threadgroup uint4 *)(first + n * rows_of_load * row) = runs[part * (runs_of_row / parts) + n];
    }
    simdgroup_barrier(mem_flags::mem_threadgroup);
  }
};

/// K: a row of matrix m, of which there are four, is key 8 m + row, and matrix t has coordinates from 8 t on.
template <int D, typename T>
struct DenseKeys {
  typedef T Element;

  DenseLeaf<D, T> dense;

  static constant constexpr bool is_coded = false;
  /// The limit of a threadgroup, of which 128 are used: it leaves a thread 168 registers of an NVIDIA GPU.
  static constant constexpr int most_threads = 384;
  static constant constexpr int table_words = 0;
  /// Columns that a coordinate has in matrices.
  static constant constexpr int columns = 1;
  static constant constexpr int parts = DenseLeaf<D, T>::parts;
  static constant constexpr int staged_bytes = DenseLeaf<D, T>::staged_bytes;
  /// Elements from one query to the next.
  static constant constexpr int query_row = DenseLeaf<D, T>::row;

  DenseKeys(uint, uint, bool aligned, const threadgroup uint *, uint, threadgroup uint4 *memory)
      : dense(aligned, memory) {}

  void load(const device uchar *rows, LeafRows leaf, MatrixLane at) { dense.load(rows, leaf, at); }
  void stage(uint part, MatrixLane at) const { dense.stage(part, at); }

  /// Where a query has coordinate d.
  static uint place(uint d) { return d; }

  /// Of the part that is staged.
  void load_matrix(thread Matrix<T> &matrix, uint m, uint t) const {
    simdgroup_load(matrix, dense.staged + m % 2 * 8 * dense.row + 8 * t, dense.row);
  }
};

/// V, transposed: a row of matrix j is coordinate 8 j + row, and matrix m has keys from 8 m on.
template <int D, typename T>
struct DenseValues {
  typedef T Element;

  DenseLeaf<D, T> dense;

  static constant constexpr bool is_coded = false;
  static constant constexpr int matrices = 4;
  static constant constexpr int parts = DenseLeaf<D, T>::parts;
  static constant constexpr int staged_bytes = DenseLeaf<D, T>::staged_bytes;

  DenseValues(uint, uint, bool aligned, const threadgroup uint *, uint, threadgroup uint4 *memory)
      : dense(aligned, memory) {}

  void load(const device uchar *rows, LeafRows leaf, MatrixLane at) { dense.load(rows, leaf, at); }
  void stage(uint part, MatrixLane at) const { dense.stage(part, at); }

  /// The coordinate of a row of matrix j of the sums.
  static uint coordinate(uint row, uint j) { return 8 * j + row; }

  /// Of the part that is staged.
  void load_matrix(thread Matrix<T> &matrix, uint m, uint j) const {
    simdgroup_load(matrix, dense.staged + m % 2 * 8 * dense.row + 8 * j, dense.row, ulong2(0, 0), true);
  }

  /// Weights of the keys whose scores the lane has, as matrices.
  static void spread(const thread float2 *of_keys, MatrixLane at, thread Matrix<T> *weights) {
    weights_of_leaf<T>(of_keys, at, weights);
  }
};
