/// How a head vector lies over the 32 lanes of a SIMD group: lane l holds WIDTH
/// neighbours of each chunk of 32 WIDTH coordinates, from chunk * 32 WIDTH +
/// l * WIDTH on, so that a load of all lanes is one run of memory.
///
///   D                64   80, 96, 112   128   192   256   512   576
///   WIDTH             2         4         4     2     4     4     2
///   chunks            1         1         1     3     2     4     9
/// At 80, 96 and 112 the last lanes hold nothing, that is zeros.
#pragma once

#include <metal_stdlib>
#include <metal_simdgroup>

#include "hadamard_transform.h"

using namespace metal;

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

/// A step of sums_of_lanes: lanes DISTANCE apart share 2 DISTANCE values between them, DISTANCE each.
template <int DISTANCE>
inline void halve_values(thread float *values, uint lane) {
  const bool is_upper = (lane & uint(DISTANCE)) != 0;
#pragma clang loop unroll(full)
  for (int i = 0; i < DISTANCE; i++) {
    // Read first: a choice between two elements is one between their addresses, and keeps the array in memory.
    const float low = values[i];
    const float high = values[i + DISTANCE];
    const float kept = is_upper ? high : low;
    const float given = is_upper ? low : high;
    values[i] = kept + simd_shuffle_xor(given, ushort(DISTANCE));
  }
}

/// Sums of 32 values over all lanes: lane l gets that of values[l]. Each is
/// added up in one order, lanes 16 apart first, whatever the other values are.
/// 31 shuffles, where 32 times simd_sum would take 160.
inline float sums_of_lanes(thread float *values, uint lane) {
  halve_values<16>(values, lane);
  halve_values<8>(values, lane);
  halve_values<4>(values, lane);
  halve_values<2>(values, lane);
  halve_values<1>(values, lane);
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
