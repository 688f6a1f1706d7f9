/// Tiles in threadgroup memory and 8x8 matrices of a SIMD group.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup_matrix>

using namespace metal;

/// 8x8 sums in float.
using Accumulator = simdgroup_matrix<float, 8, 8>;

/// A lane's two elements of an 8x8 matrix: (row, column) and the next column.
/// The four lanes of a row differ in bits 0 and 3.
struct LaneElements {
  short row;
  short column;
};

inline LaneElements elements_of_lane(uint lane) {
  return {short(((lane / 4) & 4) + (lane / 2) % 4), short(((lane / 4) & 2) * 2 + (lane % 2) * 2)};
}

/// The sum over the lanes of a row.
inline float sum_of_row(float value) {
  value += simd_shuffle_xor(value, 1);
  value += simd_shuffle_xor(value, 8);
  return value;
}

/// The maximum over the lanes of a row.
inline float maximum_of_row(float value) {
  value = max(value, simd_shuffle_xor(value, 1));
  return max(value, simd_shuffle_xor(value, 8));
}

/// Copies a whole tile [ROWS, D] of 16-bit elements, which a GPU may do by itself: nothing else is done with what is
/// loaded. 8 threads share a row: 8 x 16 bytes are one 128-byte line of memory. Rows begin at multiples of 16 bytes, in
/// the tile too.
template <typename T, short ROWS, short D, short LD, short THREADS>
inline void copy_tile(threadgroup T *tile, const device T *source, long stride, uint thread_index) {
  constexpr short kRowsAtOnce = THREADS / 8;
  const uint row = thread_index / 8;
  const uint column = thread_index % 8 * 8;
  const device T *from = source + row * stride + column;
  threadgroup T *to = tile + row * LD + column;
#pragma clang loop unroll(full)
  for (short r = 0; r < ROWS; r += kRowsAtOnce) {
#pragma clang loop unroll(full)
    for (short c = 0; c < D; c += 64) {
      if ((ROWS % kRowsAtOnce == 0 || row + r < uint(ROWS)) && (D % 64 == 0 || column + c < uint(D))) {
        *reinterpret_cast<threadgroup uint4 *>(to + r * LD + c) =
            *reinterpret_cast<const device uint4 *>(from + r * stride + c);
      }
    }
  }
}

/// Copies tile [ROWS, D] from rows `stride` apart to rows LD apart; rows from
/// `valid` on become 0 and are not read. Packed vectors have the alignment of an
/// element, since strides may be odd.
template <typename T, short ROWS, short D, short LD, short THREADS>
inline void load_tile(threadgroup T *tile, const device T *source, long stride, int valid, uint thread_index) {
  constexpr uint kRowsAtOnce = THREADS / 8;
  for (uint r = 0; r < ROWS; r += kRowsAtOnce) {
    const uint row = thread_index / 8 + r;
    if (ROWS % kRowsAtOnce != 0 && row >= ROWS) {
      break;
    }
    for (uint c = 0; c < D; c += 64) {
      const uint column = thread_index % 8 * 8 + c;
      if (D % 64 != 0 && column >= D) {
        break;
      }
      threadgroup packed_ushort4 *to = reinterpret_cast<threadgroup packed_ushort4 *>(tile + row * LD + column);
      if (int(row) < valid) {
        const device packed_ushort4 *from =
            reinterpret_cast<const device packed_ushort4 *>(source + row * stride + column);
        to[0] = from[0];
        to[1] = from[1];
      } else {
        to[0] = ushort4(0);
        to[1] = ushort4(0);
      }
    }
  }
}
