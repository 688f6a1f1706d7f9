/// How head vectors lie over the lanes of a SIMD group, which read them as runs of memory: a lane holds WIDTH
/// neighbours of each chunk of coordinates, from chunk * (lanes * WIDTH) + lane * WIDTH on.
///
///   D                64   80, 96, 112   128   192   256   512   576
///   Lanes: a vector over all 32 lanes, as q, dense K and V, the states of blocks and out are
///     WIDTH           2         4         4     2     4     4     2
///     chunks          1         1         1     3     2     4     9
///   RowLanes of codes: two rows at once, 16 lanes each, where a lane has registers for that
///     WIDTH           4         8         8     as above
/// At 80, 96 and 112 the last lanes hold nothing, that is zeros.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "hadamard_transform.h"

using namespace metal;

/// Lanes DISTANCE apart share 2 COUNT values between them, COUNT each, and add them up.
template <int COUNT, int DISTANCE>
inline void halve_values(thread float *values, uint lane) {
  const bool is_upper = (lane & uint(DISTANCE)) != 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < COUNT; i++) {
    // Read first: a choice between two elements is one between their addresses, and keeps the array in memory.
    const float low = values[i];
    const float high = values[i + COUNT];
    const float kept = is_upper ? high : low;
    const float given = is_upper ? low : high;
    values[i] = kept + simd_shuffle_xor(given, ushort(DISTANCE));
  }
}

template <int D>
struct Lanes {
  static constant constexpr int width = D % 128 == 0 || D % 64 != 0 ? 4 : 2;
  static constant constexpr int chunk = 32 * width;
  static constant constexpr int chunks = (D + chunk - 1) / chunk;
  /// Values of a lane.
  static constant constexpr int values = chunks * width;

  /// The lane's first coordinate of chunk c.
  static int first(int c, uint lane) { return c * chunk + int(lane) * width; }
  /// Whether the lane has coordinates in chunk c.
  static bool holds(int c, uint lane) { return D % chunk == 0 || first(c, lane) < D; }
};

/// Rows of K and V. Of two rows of codes the lower half of the lanes has the first: a load brings two keys, a word has
/// twice the codes, and of the sums over lanes half remain. Dense rows gain nothing, as memory bounds them.
template <int D, bool CODED>
struct RowLanes {
  static constant constexpr int rows = CODED && D <= 128 ? 2 : 1;
  static constant constexpr int lanes = 32 / rows;
  static constant constexpr int width = rows * Lanes<D>::width;
  static constant constexpr int chunk = lanes * width;
  static constant constexpr int chunks = Lanes<D>::chunks;
  /// Values of a lane.
  static constant constexpr int values = chunks * width;

  /// Which of the rows the lane reads.
  static uint row_of(uint lane) { return rows == 1 ? 0 : lane / uint(lanes); }
  /// The lane's first coordinate of chunk c.
  static int first(int c, uint lane) { return c * chunk + int(rows == 1 ? lane : lane % uint(lanes)) * width; }
  /// Whether the lane has coordinates in chunk c.
  static bool holds(int c, uint lane) { return D % chunk == 0 || first(c, lane) < D; }

  /// Gives each row the vector that lies over all lanes.
  static void spread(const thread float *vector, uint lane, thread float *of_rows) {
    constexpr int neighbours = Lanes<D>::width;
#pragma clang loop unroll(full)
    for (int i = 0; i < values; i++) {
      const uint source = lane % 16 * 2 + uint(i / neighbours);
      of_rows[i] = rows == 1 ? vector[i] : simd_shuffle(vector[i % neighbours], ushort(source));
    }
  }

  /// The sum of the vectors that the rows have, over all lanes.
  static void fold(thread float *of_rows, uint lane, thread float *vector) {
    if (rows == 2) {
      halve_values<values / 2, 16>(of_rows, lane);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < Lanes<D>::values; i++) {
      const uint source = lane % 2 * 16 + lane / 2;
      vector[i] = rows == 1 ? of_rows[i] : simd_shuffle(of_rows[i], ushort(source));
    }
  }
};

/// Sums of COUNT values over runs of as many lanes: lane l gets that of values[l % COUNT]. Each is added up in one
/// order, lanes furthest apart first, whatever the other values are. Of 32 values 31 shuffles, where 32 times simd_sum
/// would take 160.
template <int COUNT>
inline float sums_of_lanes(thread float *values, uint lane) {
  if (COUNT > 16) {
    halve_values<16, 16>(values, lane);
  }
  halve_values<8, 8>(values, lane);
  halve_values<4, 4>(values, lane);
  halve_values<2, 2>(values, lane);
  halve_values<1, 1>(values, lane);
  return values[0];
}

/// H v for each block of a head vector, without its factor 1 / sqrt(block).
template <int D>
inline void hadamard_lanes(thread float *values, uint lane) {
  typedef Lanes<D> L;
  constexpr int block = int(Head<D>::block);
  butterflies<L::values, 1, L::width>(values);
#pragma clang loop unroll(full)
  for (int step = L::width; step < block && step < L::chunk; step *= 2) {
    const ushort distance = ushort(step / L::width);
    const bool is_upper = (lane & distance) != 0;
#pragma clang loop unroll(full)
    for (int i = 0; i < L::values; i++) {
      const float other = simd_shuffle_xor(values[i], distance);
      values[i] = is_upper ? other - values[i] : values[i] + other;
    }
  }
  butterflies<L::values, L::width, block / 32>(values);
}

/// S v: the signs of the transform.
template <int D>
inline void sign_lanes(thread float *values, uint lane) {
  typedef Lanes<D> L;
#pragma clang loop unroll(full)
  for (int c = 0; c < L::chunks; c++) {
    if (L::holds(c, lane)) {
#pragma clang loop unroll(full)
      for (int i = 0; i < L::width; i++) {
        values[c * L::width + i] *= sign_of(L::first(c, lane) + i);
      }
    }
  }
}
