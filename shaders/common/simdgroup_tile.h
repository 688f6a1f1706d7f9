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

/// A tile [ROWS, D] of 16-bit elements on its way from memory to a threadgroup's: a thread's part of it, so that loads
/// are under way together. 8 threads share a row: 8 x 16 bytes are one 128-byte line of memory. All rows are there, and
/// begin at multiples of 16 bytes, in the tile too.
template <typename T, short ROWS, short D, short LD, short THREADS>
struct WholeTile {
  static constant constexpr short kRowsAtOnce = THREADS / 8;
  static constant constexpr short kRowSteps = (ROWS + kRowsAtOnce - 1) / kRowsAtOnce;
  static constant constexpr short kColumnSteps = (D + 63) / 64;

  uint4 words[kRowSteps * kColumnSteps];

  /// Whether the thread has a row and a column of a step.
  static bool holds(short step, uint thread_index) {
    return (ROWS % kRowsAtOnce == 0 || row(step, thread_index) < uint(ROWS)) &&
           (D % 64 == 0 || column(step, thread_index) < uint(D));
  }
  static uint row(short step, uint thread_index) { return thread_index / 8 + step / kColumnSteps * kRowsAtOnce; }
  static uint column(short step, uint thread_index) { return thread_index % 8 * 8 + step % kColumnSteps * 64; }
  /// The thread's 16 bytes of a step.
  static const device uint4 *from(const device T *source, long stride, short step, uint thread_index) {
    const device T *first = source + thread_index / 8 * stride + thread_index % 8 * 8;
    return reinterpret_cast<const device uint4 *>(first + step / kColumnSteps * kRowsAtOnce * stride +
                                                  step % kColumnSteps * 64);
  }
  static threadgroup uint4 *place(threadgroup T *tile, short step, uint thread_index) {
    threadgroup T *first = tile + thread_index / 8 * LD + thread_index % 8 * 8;
    return reinterpret_cast<threadgroup uint4 *>(first + step / kColumnSteps * kRowsAtOnce * LD +
                                                 step % kColumnSteps * 64);
  }

  void load(const device T *source, long stride, uint thread_index) {
#pragma clang loop unroll(full)
    for (short step = 0; step < kRowSteps * kColumnSteps; step++) {
      if (holds(step, thread_index)) {
        words[step] = *from(source, stride, step, thread_index);
      }
    }
  }

  void store(threadgroup T *tile, uint thread_index) const {
#pragma clang loop unroll(full)
    for (short step = 0; step < kRowSteps * kColumnSteps; step++) {
      if (holds(step, thread_index)) {
        *place(tile, step, thread_index) = words[step];
      }
    }
  }
};

/// Copies such a tile, which a GPU may do by itself: nothing else is done with what is loaded.
template <typename T, short ROWS, short D, short LD, short THREADS>
inline void copy_tile(threadgroup T *tile, const device T *source, long stride, uint thread_index) {
  typedef WholeTile<T, ROWS, D, LD, THREADS> Tile;
#pragma clang loop unroll(full)
  for (short step = 0; step < Tile::kRowSteps * Tile::kColumnSteps; step++) {
    if (Tile::holds(step, thread_index)) {
      *Tile::place(tile, step, thread_index) = *Tile::from(source, stride, step, thread_index);
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
